"""Frozen dataclasses and named tuples to JSON values and back, with errors that name the path of the wrong value."""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar, Union

from gputwin.core.errors import UserError, shorten

T = TypeVar("T")


def record_fields(kind: type[Any]) -> tuple[str, ...] | None:
    """Return the names of a dataclass's or named tuple's fields; None for anything else."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return kind._fields if issubclass(kind, tuple) and hasattr(kind, "_fields") else None


def to_plain(value: Any) -> Any:
    """Return `value` as numbers, text, None, lists and dicts; a rule also carries its name under "rule"."""
    names = record_fields(type(value))
    if names is not None:
        plain = {name: to_plain(getattr(value, name)) for name in names}
        return {"rule": getattr(value, "name", ""), **plain} if hasattr(value, "decide") else plain
    if isinstance(value, Mapping):
        return {str(key): to_plain(entry) for key, entry in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_plain(entry) for entry in value]
    return value


def from_plain(kind: type[T], plain: object, where: str = "") -> T:
    """Return a `kind` from JSON values. Unknown names, missing ones and wrong types are user errors with their path."""
    if isinstance(plain, kind):
        return plain
    if not isinstance(plain, Mapping):
        raise UserError(f"{where or kind.__name__}: give a mapping, not {shorten(plain)!r}")
    if hasattr(kind, "decide") and plain.get("rule") == getattr(kind, "name", None):
        plain = {key: value for key, value in plain.items() if key != "rule"}
    hints, required = _fields(typing.cast(Any, kind))
    for key in plain:
        if key not in hints:
            raise UserError(f"{where}: there is no '{shorten(key)}'; it has: {', '.join(hints)}")
    for key in required:
        if key not in plain:
            raise UserError(f"{where}: '{key}' is missing")
    values = {key: _typed(hints[key], value, f"{where}.{key}" if where else str(key)) for key, value in plain.items()}
    try:
        return kind(**values)
    except ValueError as error:
        raise UserError(f"{where or kind.__name__}: {error}") from None


@functools.cache
def _fields(kind: type[Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    hints = typing.get_type_hints(kind)
    if not dataclasses.is_dataclass(kind):
        return hints, tuple(name for name in kind._fields if name not in kind._field_defaults)
    fields = dataclasses.fields(kind)
    missing = dataclasses.MISSING
    required = [f.name for f in fields if f.default is missing and f.default_factory is missing]
    return {f.name: hints[f.name] for f in fields}, tuple(required)


def _typed(hint: Any, value: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or origin is ClassVar:
        return value
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        first = next(entry for entry in arguments if entry is not type(None))
        return _typed(first, value, where)
    if origin is tuple:
        return _sequence(arguments, value, where)
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise UserError(f"{where}: give a mapping, not {shorten(value)!r}")
        return {_key(arguments[0], k, where): _typed(arguments[1], v, f"{where}.{k}") for k, v in value.items()}
    if isinstance(hint, type) and record_fields(hint) is not None:
        return from_plain(hint, value, where)
    if getattr(hint, "_is_protocol", False) or getattr(origin, "_is_protocol", False):
        from gputwin.autoscaling.decisions.registry import rule_from_plain

        return rule_from_plain(value, where)
    return _scalar(hint, value, where)


def _sequence(arguments: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise UserError(f"{where}: give a list, not {shorten(value)!r}")
    if arguments[-1] is Ellipsis:
        return tuple(_typed(arguments[0], entry, f"{where}[{i}]") for i, entry in enumerate(value))
    if len(value) != len(arguments):
        raise UserError(f"{where}: give {len(arguments)} values, not {len(value)}")
    return tuple(
        _typed(hint, entry, f"{where}[{i}]") for i, (hint, entry) in enumerate(zip(arguments, value, strict=True))
    )


def _key(hint: Any, key: Any, where: str) -> Any:
    if hint is not float:
        return key
    try:
        return float(key)
    except (TypeError, ValueError):
        raise UserError(f"{where}: the key {shorten(key)!r} must be a number") from None


def _scalar(hint: Any, value: Any, where: str) -> Any:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is float and number:
        if math.isnan(value):
            raise UserError(f"{where}: give a number, not NaN")
        return value
    if hint is int and number and value == math.floor(value):
        return int(value)
    if hint in (str, bool) and isinstance(value, hint):
        return value
    words = {float: "a number", int: "a whole number", str: "text", bool: "true or false"}
    raise UserError(f"{where}: give {words.get(hint, str(hint))}, not {shorten(value)!r}")
