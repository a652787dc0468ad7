"""What is wrong with data that a person wrote, from pydantic's errors: one line, with the path of the field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gputwin.core.errors import InputError

_UNION_PARTS = ("Choice", "Cluster", "str", "int", "tuple[str, ...]", "tuple[int, ...]")
"""Pydantic names the tried kind of a value in an error's path; people do not."""


def first_mistake(error: ValidationError, known: Sequence[str], file: Path | None = None) -> InputError:
    """Return the first thing that is wrong as a user error; `known` are the fields at the top."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if not _is_kind(part))
    said = _said(first["type"], first.get("ctx", {}), first["msg"])
    top = first["type"] == "extra_forbidden" and len(first["loc"]) == 1
    others = f"; known: {', '.join(known)}" if top else ""
    return InputError(f"{said[:1].lower()}{said[1:]}{others}", file=file, field=where or None)


def _is_kind(part: int | str) -> bool:
    return part in _UNION_PARTS or (isinstance(part, str) and part.startswith(("constrained-", "function-")))


def _said(kind: str, bounds: Mapping[str, Any], message: str) -> str:
    """Return what is wrong with a value, and what to give instead."""
    if kind == "missing":
        return "it is needed; give a value"
    if kind == "greater_than":
        return f"give more than {bounds['gt']:g}"
    if kind == "greater_than_equal":
        return f"give {bounds['ge']:g} or more"
    if kind == "less_than_equal":
        return f"give {bounds['le']:g} or less"
    if kind == "finite_number":
        return "give a finite number"
    return message.removeprefix("Value error, ")
