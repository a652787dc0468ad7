"""Reading a manifest with errors that name file and path."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from gputwin.autoscaling.manifests.quantities import duration, quantity
from gputwin.core.errors import InputError, shorten

T = TypeVar("T")
OWN = "gputwin.dev/"
"""Prefix of annotations for settings that Kubernetes keeps elsewhere (flags of a controller) or does not have."""


class Section:
    """A mapping within a manifest, with its place."""

    def __init__(self, value: object, path: str, file: str | None = None) -> None:
        self.path, self.file = path, file
        if not isinstance(value, Mapping):
            raise self.error("give a mapping", value)
        self.values: Mapping[Any, Any] = value

    def error(self, what: str, value: object = None, field: str = "") -> InputError:
        """Return the error for a value here."""
        path = ".".join(part for part in (self.path, field) if part)
        # A nested value is named, not shown: YAML's aliases can make it very long.
        if isinstance(value, (dict, list)):
            shown = f", not a {'mapping' if isinstance(value, dict) else 'list'}"
        else:
            shown = "" if value is None else f", not '{shorten(value)}'"
        return InputError(f"{what}{shown}", file=self.file, field=path)

    def section(self, name: str) -> Section:
        """Return a mapping within, empty where it is absent."""
        given = self.values.get(name)
        return Section({} if given is None else given, f"{self.path}.{name}" if self.path else name, self.file)

    def sections(self, name: str) -> Iterator[Section]:
        """Return the mappings of a list within."""
        given = self.values.get(name)
        if given is None:
            return
        if not isinstance(given, list):
            raise self.error("give a list", given, name)
        for i, entry in enumerate(given):
            yield Section(entry, f"{self.path}.{name}[{i}]", self.file)

    def whole(self, name: str, default: int) -> int:
        """Return a whole number."""
        return self._read(name, default, _whole, "give a whole number")

    def number(self, name: str, default: float) -> float:
        """Return a quantity."""
        return self._read(name, default, quantity, "give a quantity as in 500m, 2 or 4Gi")

    def seconds(self, name: str, default: float) -> float:
        """Return a duration in seconds."""
        return self._read(name, default, duration, "give a duration as in 30s, 5m or 1h30m")

    def text(self, name: str, default: str) -> str:
        """Return text."""
        return self._read(name, default, _text, "give text")

    def flag(self, name: str, default: bool) -> bool:
        """Return true or false, also where it is written as text, as annotations are."""
        return self._read(name, default, _flag, "give true or false")

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts."""
        given = self.values.get(name)
        if given is None:
            return ()
        if not isinstance(given, list) or not all(isinstance(entry, str) for entry in given):
            raise self.error("give a list of texts", given, name)
        return tuple(given)

    def has(self, name: str) -> bool:
        """Return whether there is a value."""
        return self.values.get(name) is not None

    def made(self, make: Callable[[], T]) -> T:
        """Return what `make` makes; its `ValueError` becomes an error of this place."""
        try:
            return make()
        except ValueError as error:
            raise self.error(str(error)) from None

    def _read(self, name: str, default: T, convert: Callable[[Any], T], what: str) -> T:
        given = self.values.get(name)
        if given is None:
            return default
        try:
            return convert(given)
        except (ValueError, OverflowError, ArithmeticError):
            raise self.error(what, given, name) from None


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError
    number = int(value)
    if abs(number) >= 2**31:
        raise ValueError
    return number


def _text(value: object) -> str:
    if isinstance(value, (dict, list)):
        raise ValueError
    return str(value)


def _flag(value: object) -> bool:
    if str(value).lower() not in ("true", "false"):
        raise ValueError
    return str(value).lower() == "true"
