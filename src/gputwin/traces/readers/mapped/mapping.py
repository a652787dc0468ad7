"""A mapping: which column of a log means which field. Written as `--map` text or as a small YAML file."""

from __future__ import annotations

import difflib
from collections.abc import Mapping as Dict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

import yaml

from gputwin.core.errors import InputError, UserError, shorten
from gputwin.traces.cells import UNITS, Kind
from gputwin.traces.readers.mapped.fields import FIELDS, Field, fields_of
from gputwin.traces.schema import Status
from gputwin.traces.sources import Source

FILE_NAME = "map.yaml"
_HEADING = "gputwin-map"
_VERSION = 1
_MOST_BYTES = 1 << 20
_KEYS = {_HEADING, "table", "zone", "fields", "status"}


@dataclass(frozen=True)
class Meaning:
    """Where the values of one field come from: a column, with the unit or format of its cells, or one fixed value."""

    column: str = ""
    unit: str = ""
    """Of bare numbers; for a time also a format such as `%d/%m/%Y %H:%M`."""
    value: str | None = None
    """The same for every row; then there is no column."""

    def text(self, name: str) -> str:
        """Return it as one part of a `--map`."""
        if self.value is not None:
            return f"{name}=={self.value}"
        return f"{name}={self.column}{':' + self.unit if self.unit else ''}"


@dataclass(frozen=True)
class Mapping:
    """Which table the rows become, what each field is read from, and the zone of times that name none."""

    fields: Dict[str, Meaning]
    table: str = "tasks"
    zone: str | None = None
    status: Dict[str, str] = field(default_factory=dict)
    """The log's own words for how a job ended -> completed, failed, cancelled, running, waiting or unknown."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns it reads."""
        return tuple(dict.fromkeys(m.column for m in self.fields.values() if m.value is None))

    def text(self) -> str:
        """Return the fields as `--map` takes them."""
        return ",".join(meaning.text(name) for name, meaning in self.fields.items())

    def to_yaml(self) -> str:
        """Return the mapping as the file that `read_mapping` reads."""
        fields: dict[str, Any] = {}
        for name, meaning in self.fields.items():
            if meaning.value is not None:
                fields[name] = {"value": meaning.value}
            else:
                fields[name] = {"column": meaning.column, "unit": meaning.unit} if meaning.unit else meaning.column
        data: dict[str, Any] = {_HEADING: _VERSION, "table": self.table}
        if self.zone:
            data["zone"] = self.zone
        data["fields"] = fields
        if self.status:
            data["status"] = dict(self.status)
        return yaml.safe_dump(data, sort_keys=False, allow_unicode=True)


def parse_map(text: str, table: str = "tasks", zone: str | None = None) -> Mapping:
    """Return the mapping that `job_id=id,submit=submitted_at:ms,gpu_model==A100` spells."""
    fields: dict[str, Meaning] = {}
    check_table(table)
    for part in _parts(text):
        name, equals, rest = part.partition("=")
        name = name.strip()
        if not equals or not rest.strip():
            raise UserError(f"'{shorten(part)}' is not FIELD=COLUMN; write for example submit=submitted_at")
        known = _known_field(name, table)
        if known.name in fields:
            raise UserError(f"the mapping names '{name}' twice; name one column for it")
        fields[known.name] = _checked(
            known, Meaning(value=rest[1:].strip()) if rest[0] == "=" else _column(known, rest)
        )
    return checked(Mapping(fields, table, zone))


def _parts(text: str) -> list[str]:
    """Return the parts between commas; a comma that no field and equals sign follows belongs to the part before."""
    parts: list[str] = []
    for part in text.split(","):
        if parts and "=" not in part:
            parts[-1] += "," + part
        elif part.strip():
            parts.append(part)
    return parts


def _column(known: Field, text: str) -> Meaning:
    """Return the column and unit of `submitted_at:ms`; a colon that no known unit follows is part of the name."""
    if known.kind == Kind.TIME and ":%" in text:
        column, _, form = text.partition(":%")
        return Meaning(column.strip(), "%" + form.strip())
    column, colon, unit = text.rpartition(":")
    if colon and column and unit.strip() in UNITS.get(known.kind, {}):
        return Meaning(column.strip(), unit.strip())
    return Meaning(text.strip())


def _known_field(name: str, table: str) -> Field:
    known = fields_of(table)
    if name in known:
        return known[name]
    # People who know the trace's tables write their column names.
    without = name.removesuffix("_time").removesuffix("_seconds")
    if without in known and known[without].kind in (Kind.TIME, Kind.DURATION):
        return known[without]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"fields: {', '.join(known)}"
    raise UserError(f"a {table} mapping has no field '{shorten(name)}'; {hint}")


def _checked(known: Field, meaning: Meaning) -> Meaning:
    units = UNITS.get(known.kind, {})
    is_format = known.kind == Kind.TIME and meaning.unit.startswith("%")
    if meaning.unit and not is_format and meaning.unit not in units:
        hint = f"units: {', '.join(units)}" if units else "leave the unit out"
        raise UserError(f"'{shorten(meaning.unit)}' is no unit of the field '{known.name}'; {hint}")
    return meaning


def checked(mapping: Mapping) -> Mapping:
    """Return the mapping, or raise a UserError where it cannot make a table."""
    if mapping.zone is not None:
        check_zone(mapping.zone)
    timed = ("submit", "start", "end") if mapping.table == "tasks" else ("submit",)
    if not any(name in mapping.fields for name in timed):
        raise UserError(f"the mapping names no time; add one of {', '.join(f'{n}=COLUMN' for n in timed)}")
    if {"gpus", "total_gpus"} <= set(mapping.fields):
        raise UserError("the mapping names both gpus (of one instance) and total_gpus (of the job); keep one")
    return mapping


def check_table(table: str) -> None:
    """Raise a UserError unless rows can become this table."""
    if table not in FIELDS:
        raise UserError(f"rows cannot become the table '{shorten(table)}'; tables: {', '.join(FIELDS)}")


def check_zone(zone: str) -> None:
    """Raise a UserError unless the zone is known."""
    try:
        ZoneInfo(zone)
    except (ValueError, KeyError, OSError):
        raise UserError(f"'{shorten(zone)}' is no time zone; write one like Europe/Berlin or UTC") from None


def is_mapping_file(source: Source) -> bool:
    """Return whether the file starts like a mapping file."""
    return source.head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(_HEADING.encode() + b":")


def read_mapping(source: Source) -> Mapping:
    """Return the mapping in a file; what is wrong with it is said with the file's name."""
    try:
        return _from_yaml(source)
    except InputError:
        raise
    except UserError as error:
        raise InputError(str(error), file=source.label) from None


def _from_yaml(source: Source) -> Mapping:
    if source.path.stat().st_size > _MOST_BYTES:
        raise UserError("too large for a mapping; give one with fields only")
    try:
        data = yaml.safe_load(source.path.read_bytes())
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        row = None if line is None else line + 1
        raise InputError("not YAML", file=source.label, row=row, remedy="fix the line") from None
    if not isinstance(data, dict) or data.get(_HEADING) != _VERSION:
        raise UserError(f"not a mapping file; its first line is '{_HEADING}: {_VERSION}'")
    if strange := sorted(str(key) for key in data if key not in _KEYS):
        raise UserError(f"unknown key '{shorten(strange[0])}'; keys: {', '.join(sorted(_KEYS))}")
    table, zone = data.get("table", "tasks"), data.get("zone")
    if not isinstance(table, str) or not isinstance(zone, str | None):
        raise UserError("table and zone are text; write for example 'table: tasks'")
    check_table(table)
    fields = data.get("fields")
    if not isinstance(fields, dict) or not fields:
        raise UserError("no fields; write for example 'fields: {job_id: id, submit: submitted_at}'")
    meanings = {}
    for name, given in fields.items():
        known = _known_field(str(name), table)
        meanings[known.name] = _checked(known, _meaning(str(name), given))
    return checked(Mapping(meanings, table, zone, _status_words(data.get("status"))))


def _meaning(name: str, given: object) -> Meaning:
    if isinstance(given, str | int | float) and not isinstance(given, bool) and str(given):
        return Meaning(str(given))
    if isinstance(given, dict):
        parts = {str(key): str(value) for key, value in given.items() if not isinstance(value, dict | list)}
        if len(parts) == len(given):
            if set(parts) == {"value"}:
                return Meaning(value=parts["value"])
            if parts.get("column") and set(parts) <= {"column", "unit"}:
                return Meaning(**parts)
    raise UserError(f"field '{shorten(name)}' is neither a column's name nor {{column: …, unit: …}} nor {{value: …}}")


def _status_words(given: object) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise UserError("status is not a list of words; write for example 'status: {OK: completed}'")
    words = {str(key).strip().lower(): str(value) for key, value in given.items()}
    known: Sequence[str] = [s.value for s in Status]
    for word, value in words.items():
        if value not in known:
            raise UserError(f"status '{shorten(word)}' cannot be '{shorten(value)}'; known: {', '.join(known)}")
    return words
