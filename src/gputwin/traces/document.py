"""JSON files from strangers: parsed within bounds, and walked with an error that names the item and field at fault."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gputwin.core.errors import InputError, shorten
from gputwin.traces.sources import Source

MOST_BYTES = 1 << 30
_LARGEST_NUMBER = 1e15
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_KINDS = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}


def read_json(source: Source) -> Any:
    """Return the parsed file; one that is too large, cut, too deeply nested or no JSON is one clear error."""
    size = source.path.stat().st_size
    if size > MOST_BYTES:
        raise InputError(
            f"the JSON file is {size / 2**30:.1f} GiB, more than is read at once",
            file=source.label,
            remedy="split it into files of at most 1 GiB",
        )
    source.check_text()
    try:
        return json.loads(source.path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError("the text is not UTF-8", file=source.label, remedy="convert the file to UTF-8") from None
    except RecursionError:
        raise InputError("nested too deeply to be a trace", file=source.label, remedy="check the export") from None
    except json.JSONDecodeError as error:
        at_end = error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated")
        raise InputError(
            f"{'the JSON text is cut short' if at_end else 'not JSON'} ({error.msg}, column {error.colno})",
            file=source.label,
            row=error.lineno,
            remedy="export or copy the file again",
        ) from None
    except ValueError as error:
        raise InputError(f"not JSON ({shorten(error)})", file=source.label, remedy="check the export") from None


@dataclass(frozen=True)
class Item:
    """A JSON object and where it stands, so that a wrong type inside it can be named."""

    file: str
    path: str
    value: dict[str, Any]

    @classmethod
    def of(cls, file: str, path: str, value: object) -> Item:
        """Return `value` as an item, or raise where it is no JSON object."""
        if not isinstance(value, dict):
            raise InputError(
                f"expected an object, found {_KINDS.get(type(value), 'nothing')}",
                file=file,
                field=path or "the whole file",
                remedy="check the export",
            )
        return cls(file, path, value)

    def where(self, key: str) -> str:
        """Return the full path of one field."""
        return f"{self.path}.{key}" if self.path else key

    def wrong(self, key: str, problem: str) -> InputError:
        """Return the error that blames one field."""
        return InputError(problem, file=self.file, field=shorten(self.where(key), 200), remedy="check the export")

    def text(self, key: str) -> str | None:
        """Return a text field; None where it is absent or null."""
        value = self.value.get(key)
        if value is None:
            return None
        if isinstance(value, str):
            # JSON may escape half a character ("\ud800"), which no UTF-8 text can hold.
            return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
        raise self.wrong(key, f"expected text, found {_KINDS[type(value)]}")

    def name(self, key: str) -> str:
        """Return a text field that must be there."""
        value = self.text(key)
        if not value:
            raise self.wrong(key, "is missing")
        return value

    def number(self, key: str) -> float | None:
        """Return a numeric field; None where it is absent or null."""
        value = self.value.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.wrong(key, f"expected a number, found {_KINDS[type(value)]}")
        if not abs(value) <= _LARGEST_NUMBER:
            raise self.wrong(key, "the number is absurdly large or not finite")
        return float(value)

    def flag(self, key: str) -> bool:
        """Return a true-or-false field; False where it is absent or null."""
        value = self.value.get(key)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise self.wrong(key, f"expected true or false, found {_KINDS[type(value)]}")

    def child(self, key: str) -> Item:
        """Return the object in a field; an empty one where it is absent or null."""
        value = self.value.get(key)
        return Item.of(self.file, self.where(key), {} if value is None else value)

    def children(self, key: str) -> Iterator[Item]:
        """Yield the objects of a list field; none where it is absent or null."""
        for i, value in enumerate(self._list(key)):
            yield Item.of(self.file, f"{self.where(key)}[{i}]", value)

    def texts(self, key: str) -> list[str]:
        """Return the texts of a list field; none where it is absent or null."""
        values = self._list(key)
        if not all(isinstance(v, str) for v in values):
            raise self.wrong(key, "expected a list of text")
        return [_LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", v) for v in values]

    def text_fields(self) -> dict[str, str]:
        """Return the object itself as names and texts, as labels and resource lists are."""
        return {_LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", key): self.text(key) or "" for key in self.value}

    def _list(self, key: str) -> list[Any]:
        value = self.value.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.wrong(key, f"expected a list, found {_KINDS[type(value)]}")
        return value
