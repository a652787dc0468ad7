"""CSV tables: read fast with the types they should have, and where that fails, say which cell of which row.

The fast path hands the file to Polars with the wanted types. Only when that fails is the file read again as text to
find the cell to blame, so that good files pay nothing for good messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import polars as pl

from gputwin.core.errors import InputError, shorten
from gputwin.traces.csvlines import blame, check_last_line, check_names, ends_in_lone_quote, short_lines
from gputwin.traces.quality import QualityLog
from gputwin.traces.sources import Source

Dtype = type[pl.DataType]
LARGEST_NUMBER = 1e15
PART_ROWS = 1 << 20
_PARSE_FAILURES = (pl.exceptions.PolarsError, pl.exceptions.PanicException)


@dataclass(frozen=True)
class CsvKind:
    """One kind of CSV file: its columns and types, which of them may be absent, and whether it has a header.

    A header-less kind is recognised by `stem` (the file name starts with it) and lists all columns in file order.
    `ignored` are columns known to be of no use; any other surplus column is reported (rule F02).
    """

    kind: str
    columns: Mapping[str, Dtype]
    optional: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    header: bool = True
    stem: str = ""
    nulls: tuple[str, ...] = ()
    required: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "required", frozenset(self.columns) - self.optional)

    def matches(self, source: Source) -> bool:
        """Return whether `source` has this kind's header, or for header-less kinds its name and width."""
        names = source.header
        if self.required <= set(names):
            return source.name.startswith(self.stem) or self.header
        return not self.header and source.name.startswith(self.stem)

    def missing(self, source: Source) -> list[str]:
        """Return required columns that the file's header lacks."""
        return sorted(self.required - set(source.header))


def read_csv(source: Source, kind: CsvKind, quality: QualityLog) -> pl.DataFrame:
    """Return the file's columns with their types, and `_row`, the line each row stands on; counts the rows read."""
    return pl.concat(_read(source, kind, quality, None))


def read_csv_parts(source: Source, kind: CsvKind, quality: QualityLog, rows: int = PART_ROWS) -> Iterator[pl.DataFrame]:
    """Yield what `read_csv` returns in parts of at most `rows` rows, for files that should not be in memory whole."""
    return _read(source, kind, quality, rows)


def _read(source: Source, kind: CsvKind, quality: QualityLog, rows: int | None) -> Iterator[pl.DataFrame]:
    source.check_text()
    has_header = kind.header or kind.required <= set(source.header)
    if has_header and (missing := kind.missing(source)):
        raise InputError(
            f"column {', '.join(repr(m) for m in missing)} is missing",
            file=source.label,
            row=1,
            remedy=f"a {kind.kind} file has {', '.join(kind.columns)}",
        )
    if has_header:
        check_names(source, frozenset(kind.columns))
    width = _width(source, kind, has_header)
    check_last_line(source, width)
    lines, height, may_be_short = int(has_header), 0, False
    for part in _parse(source, kind, has_header, quality, rows):
        lines += part.height
        may_be_short |= _may_be_short(part, source, kind, has_header)
        frame = _with_sane_numbers(_without_blank_lines(part), source, quality)
        absent = [pl.lit(None, dtype).alias(n) for n, dtype in kind.columns.items() if n not in frame.columns]
        quality.read(source.label, frame.height)
        height += frame.height
        yield frame.with_columns(absent).select("_row", *kind.columns)
    if not height:
        raise InputError("the file has no rows", file=source.label, remedy="give a file with rows")
    if may_be_short:
        _report_short(source, width, lines, quality)
    _report_surplus(source, kind, has_header, quality)


def _parse(
    source: Source, kind: CsvKind, has_header: bool, quality: QualityLog, rows: int | None
) -> Iterator[pl.DataFrame]:
    """Yield the rows with their types, in one part where `rows` is None."""
    last = 0
    try:
        if ends_in_lone_quote(source):
            # Polars 2.1 panics on a number's cell that is a lone quote; read as text it is an error like others.
            _scan(source, kind, has_header, as_text=True).collect()
        scan = _scan(source, kind, has_header)
        for part in [scan.collect(engine="streaming")] if rows is None else scan.collect_batches(chunk_size=rows):
            yield part
            last = int(part["_row"][-1]) if part.height else last
    except (*_PARSE_FAILURES, OSError, UnicodeDecodeError) as error:
        if not quality.lenient:
            raise _diagnose(source, kind, has_header, error) from error
        yield _read_leniently(source, kind, has_header, quality).filter(pl.col("_row") > last)


def _scan(source: Source, kind: CsvKind, has_header: bool, *, as_text: bool = False) -> pl.LazyFrame:
    types = {n: pl.String if as_text else t for n, t in kind.columns.items()}
    if not has_header:
        return pl.scan_csv(
            source.path,
            has_header=False,
            schema=types,
            null_values=list(kind.nulls) or None,
            row_index_name="_row",
            row_index_offset=1,
        )
    present = [n for n in kind.columns if n in source.header]
    return pl.scan_csv(
        source.path,
        infer_schema=False,
        schema_overrides={n: types[n] for n in present},
        null_values=list(kind.nulls) or None,
        with_column_names=_stripped,
        row_index_name="_row",
        row_index_offset=2,
    ).select("_row", *present)


def _stripped(names: list[str]) -> list[str]:
    return [name.strip() for name in names]


def _without_blank_lines(frame: pl.DataFrame) -> pl.DataFrame:
    columns = [c for c in frame.columns if c != "_row"]
    if not columns or any(frame[c].null_count() == 0 for c in columns):
        return frame
    return frame.filter(~pl.all_horizontal(pl.col(c).is_null() for c in columns))


def _with_sane_numbers(frame: pl.DataFrame, source: Source, quality: QualityLog) -> pl.DataFrame:
    """Return the frame with NaN, infinite and absurdly large numbers made unknown and counted (rule F11)."""
    for name, dtype in frame.schema.items():
        if dtype.is_float():
            wild = ~(frame[name].abs() <= LARGEST_NUMBER)
            if wild.any():
                examples = frame.filter(wild).select("_row", name)
                quality.find("F11", source.label, int(wild.sum()), detail=name, examples=examples)
                frame = frame.with_columns(pl.when(~wild).then(pl.col(name)).alias(name))
    return frame


def _width(source: Source, kind: CsvKind, has_header: bool) -> int:
    return len(source.header) if has_header else len(kind.columns)


def _may_be_short(part: pl.DataFrame, source: Source, kind: CsvKind, has_header: bool) -> bool:
    """Return whether a line may lack fields: Polars makes them null, so the last column would have nulls."""
    last = source.header[-1] if has_header else list(kind.columns)[-1]
    return last not in part.columns or part[last].null_count() > 0


def _report_short(source: Source, width: int, lines: int, quality: QualityLog) -> None:
    short = short_lines(source, width, lines)
    if short.height and not quality.lenient:
        row, fields = short.row(0)
        raise InputError(
            f"{fields} of {width} fields",
            file=source.label,
            row=row,
            remedy="complete the line, or pass --lenient to treat the others as unknown",
        )
    quality.find("F03", source.label, short.height, detail="line with too few fields", examples=short)


def _report_surplus(source: Source, kind: CsvKind, has_header: bool, quality: QualityLog) -> None:
    if has_header:
        surplus = [n for n in source.header if n not in kind.columns and n not in kind.ignored and n]
        if surplus:
            quality.find("F02", source.label, len(surplus), detail=shorten(", ".join(surplus), 200))


def _as_text(source: Source, kind: CsvKind, has_header: bool) -> pl.DataFrame:
    columns = list(kind.columns) if not has_header else None
    return pl.read_csv(
        source.path,
        has_header=has_header,
        new_columns=columns,
        infer_schema=False,
        encoding="utf8-lossy",
        truncate_ragged_lines=True,
        null_values=list(kind.nulls) or None,
        row_index_name="_row",
        row_index_offset=2 if has_header else 1,
    ).rename(str.strip)


def _bad_cells(text: pl.DataFrame, name: str, dtype: Dtype) -> pl.DataFrame:
    if dtype == pl.String:
        return text.clear()
    return text.filter(pl.col(name).is_not_null() & pl.col(name).str.strip_chars().cast(dtype, strict=False).is_null())


def _read_leniently(source: Source, kind: CsvKind, has_header: bool, quality: QualityLog) -> pl.DataFrame:
    try:
        text = _as_text(source, kind, has_header)
    except _PARSE_FAILURES as error:
        raise _diagnose(source, kind, has_header, error) from error
    for name, dtype in kind.columns.items():
        if name in text.columns:
            bad = _bad_cells(text, name, dtype)
            quality.find("F03", source.label, bad.height, detail=name, examples=bad.select("_row", name))
    present = [n for n in kind.columns if n in text.columns]
    return text.select("_row", *(pl.col(n).str.strip_chars().cast(kind.columns[n], strict=False) for n in present))


def _diagnose(source: Source, kind: CsvKind, has_header: bool, error: Exception) -> InputError:
    """Return the error that names the first row and field at fault."""
    if wrong := blame(source, _width(source, kind, has_header)):
        return wrong
    try:
        text = _as_text(source, kind, has_header)
        worst: tuple[int, str, str] | None = None
        for name, dtype in kind.columns.items():
            if name in text.columns:
                bad = _bad_cells(text, name, dtype)
                if bad.height and (worst is None or bad["_row"][0] < worst[0]):
                    worst = (int(bad["_row"][0]), name, str(bad[name][0]))
        if worst is not None:
            row, name, value = worst
            return InputError(
                f"'{shorten(value)}' is not a number",
                file=source.label,
                row=row,
                field=name,
                remedy="fix the cell, or pass --lenient to treat such cells as unknown",
            )
    except _PARSE_FAILURES:
        pass
    reason = shorten(str(error).splitlines()[0], 160)
    return InputError(f"not a readable CSV table ({reason})", file=source.label, remedy="check the export")
