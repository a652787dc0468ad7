"""Damaged files, for the property that no damage is more than an input error: JSON documents, and bytes of any kind."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

_NUMBERS = [0, -1, 3.7, 1e300, 10**30]
_TEXTS = ["", "x", "-5", "1e5", "\ud800", "0001-01-01T00:00:00Z"]
_JUNK = [None, True, [], {}, [{}], {"a": 1}, *_NUMBERS, *_TEXTS]

NASTY_CELLS = [
    *["", " ", "-", "-0", "-1", "0", "1.5", "1e5", "1e300", "-1e300", "99999999999999999999", "nan", "NaN", "inf"],
    *["-Infinity", "NULL", "null", "None", "N/A", "Unknown", "true", "0x1F", "1_000", "1,5", "1 000", "١٢", "½"],
    *['"', '""', '"a', 'a"b', '"a""b"', "'", "|", "a|b", "\t", "\\", "é", "\U0001f600", "a\u2028b", "\x7f"],
    *["2020-02-30 00:00:00", "2020-06-09 18:41:01", "9999-12-31 23:59:59", "0000-00-00", "2017-11-05 01:30:00"],
    *["2024-01-31T12:00:00", "24:61:61", "1-00:00:00", "gpu[01-99999999999]", "101_[1-999999999999]"],
    *["a=1,b=", "x" * 300],
]
NASTY_BYTES = [
    *[b"\0", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\xe9", b"\x1f\x8b"],
    *[b"\r", b"\r\n", b"\n", b"\n\n", b",", b'"', b"{"],
]
_SEPARATORS = (b",", b"|", b" ")


def _places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if path:
        yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from _places(value[key], (*path, key))


@st.composite
def mutated(draw: st.DrawFn, document: Any) -> Any:
    """Draw `document` with a few values replaced, removed or repeated."""
    document = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(document))
        if not places:
            break
        *path, key = draw(st.sampled_from(places))
        parent = document
        for step in path:
            parent = parent[step]
        action = draw(st.sampled_from(["replace", "remove", "repeat"]))
        if action == "remove":
            del parent[key]
        elif action == "repeat" and isinstance(parent, list):
            parent.append(copy.deepcopy(parent[key]))
        else:
            parent[key] = copy.deepcopy(draw(st.sampled_from(_JUNK)))
    return document


def _with_other_cell(draw: st.DrawFn, lines: list[bytes], separator: bytes) -> None:
    """Put a nasty value into one cell."""
    row = draw(st.integers(0, len(lines) - 1))
    cells = lines[row].split(separator)
    cells[draw(st.integers(0, len(cells) - 1))] = draw(st.sampled_from(NASTY_CELLS)).encode()
    lines[row] = separator.join(cells)


def _with_swapped_columns(draw: st.DrawFn, lines: list[bytes], separator: bytes) -> None:
    """Swap two columns, in the header too or only below it."""
    a, b = draw(st.integers(0, 12)), draw(st.integers(0, 12))
    for i in range(draw(st.integers(0, 1)), len(lines)):
        cells = lines[i].split(separator)
        if max(a, b) < len(cells):
            cells[a], cells[b] = cells[b], cells[a]
            lines[i] = separator.join(cells)


def _with_other_lines(draw: st.DrawFn, lines: list[bytes], _: bytes) -> None:
    """Delete, repeat or move one line."""
    line = lines.pop(draw(st.integers(0, len(lines) - 1)))
    for _again in range(draw(st.integers(0, 2))):
        lines.insert(draw(st.integers(0, len(lines))), line)


_BY_LINE = (_with_other_cell, _with_swapped_columns, _with_other_lines)


def _with_other_bytes(draw: st.DrawFn, data: bytes) -> bytes:
    """Cut the file, flip a bit, or put nasty bytes somewhere."""
    at = draw(st.integers(0, max(len(data) - 1, 0)))
    action = draw(st.sampled_from(["cut", "flip", "insert"]))
    if action == "cut":
        return data[:at]
    if action == "flip" and data:
        return data[:at] + bytes([data[at] ^ (1 << draw(st.integers(0, 7)))]) + data[at + 1 :]
    return data[:at] + draw(st.sampled_from(NASTY_BYTES)) + data[at:]


def _parsed(data: bytes) -> Any:
    """Return the JSON document that `data` is, or None."""
    try:
        return json.loads(data)
    except ValueError:
        return None


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Draw the file's bytes `data` with a few cells, lines, columns, JSON values or bytes not as they were."""
    document = _parsed(data)
    if isinstance(document, (dict, list)) and draw(st.booleans()):
        return json.dumps(draw(mutated(document))).encode()
    for _ in range(draw(st.integers(1, 3))):
        lines = data.split(b"\n")
        damage = draw(st.sampled_from([*_BY_LINE, None]))
        if damage is None:
            data = _with_other_bytes(draw, data)
        else:
            separator = max(_SEPARATORS, key=lines[0].count)
            damage(draw, lines, separator)
            data = b"\n".join(lines)
    return data


def strange_files() -> st.SearchStrategy[bytes]:
    """Return a strategy for files of nobody's format: random bytes, text, or tables of nasty cells."""
    cells = st.sampled_from(NASTY_CELLS)
    table = st.lists(st.lists(cells, min_size=1, max_size=5).map(",".join), min_size=1, max_size=5).map("\n".join)
    text = st.one_of(st.text(max_size=200), table).map(lambda t: t.encode(errors="replace"))
    return st.one_of(st.binary(max_size=200), text)
