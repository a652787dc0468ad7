"""Requests to LLM services: Azure's, Mooncake's and Qwen-Bailian's traces, and ServeGen's client rates.

- Azure (Patel et al., "Splitwise", ISCA'24; Stojkovic et al., "DynamoLLM", HPCA'25): CSV, times in UTC.
- Mooncake (Qin et al., FAST'25): JSON lines, `timestamp` in ms from the start of the file.
- Qwen-Bailian (Wang et al., "KVCache Cache in the Wild", ATC'25): the same with a `chat_id`, `timestamp` in s.
- ServeGen (Xiang et al., NSDI'26): rate and burstiness of each client in windows of ten minutes from a midnight, one
  file per model, whose name gives the model; windows without requests are left out.

Each service has a clock of its own, except Azure's. The file's name is the service's, and part of a request's id.
"""

from __future__ import annotations

import codecs
import math
from collections.abc import Mapping, Sequence

import polars as pl

from gputwin.core.errors import shorten
from gputwin.traces.jsonlines import read_json_lines
from gputwin.traces.longform import metric_rows, with_time
from gputwin.traces.quality import QualityLog
from gputwin.traces.reader import READERS, Clock, Draft, Input, Reader
from gputwin.traces.sources import Source
from gputwin.traces.tabular import CsvKind, read_csv, read_csv_parts
from gputwin.traces.walltime import to_unix_seconds

AZURE = CsvKind("azure", {"TIMESTAMP": pl.String, "ContextTokens": pl.Float64, "GeneratedTokens": pl.Float64})
CLIENT_RATES = CsvKind(
    "client_rates",
    {"client": pl.String, "window_start_s": pl.Float64, "rate_rps": pl.Float64, "cv": pl.Float64},
    ignored=frozenset({"arrival_pattern", "param_1", "param_2"}),
)
MOONCAKE, BAILIAN = "mooncake", "bailian"
TICKS_PER_SECOND = {MOONCAKE: 1000.0, BAILIAN: 1.0}
_JSON_FIELDS: Mapping[str, pl.DataType] = {
    "timestamp": pl.Float64(),
    "input_length": pl.Int64(),
    "output_length": pl.Int64(),
    "hash_ids": pl.List(pl.Int64),
    "type": pl.String(),
}
_UNUSED_JSON_FIELDS = frozenset({"chat_id", "parent_chat_id", "turn"})
_RATE_METRICS = {"rate_rps": "request_rate_per_s", "cv": "interarrival_cv"}


def recognise(source: Source) -> str | None:
    """Return the kind of a file of JSON lines by the keys of its first line."""
    first = source.head.removeprefix(codecs.BOM_UTF8).lstrip().split(b"\n", 1)[0]
    if first.startswith(b"{") and all(key in first for key in (b'"timestamp"', b'"input_length"', b'"output_length"')):
        return BAILIAN if b'"chat_id"' in first else MOONCAKE
    return None


def _azure(source: Source, service: str, quality: QualityLog) -> pl.DataFrame:
    frame = pl.concat(_in_unix_seconds(part, source, quality) for part in read_csv_parts(source, AZURE, quality))
    _report_copies(frame, source, quality)
    return frame.select(
        *_identity(service),
        pl.col("TIMESTAMP").alias("submit_time"),
        pl.col("ContextTokens").alias("input_tokens"),
        pl.col("GeneratedTokens").alias("output_tokens"),
    )


def _in_unix_seconds(frame: pl.DataFrame, source: Source, quality: QualityLog) -> pl.DataFrame:
    # The release of 2023 leaves the offset out, that of 2024 writes it.
    frame = frame.with_columns(pl.col("TIMESTAMP").str.replace(r"(\+00:00|Z)$", ""))
    return to_unix_seconds(frame, "TIMESTAMP", "UTC", source.label, quality, "%Y-%m-%d %H:%M:%S%.f")


def _json_requests(source: Source, kind: str, service: str, quality: QualityLog) -> pl.DataFrame:
    frame = read_json_lines(source, _JSON_FIELDS, _UNUSED_JSON_FIELDS, quality)
    _report_copies(frame, source, quality)
    return frame.select(
        *_identity(service),
        (pl.col("timestamp") / TICKS_PER_SECOND[kind]).alias("submit_time"),
        pl.col("input_length").alias("input_tokens"),
        pl.col("output_length").alias("output_tokens"),
        pl.col("hash_ids").alias("prefix_blocks"),
        pl.col("type").alias("kind"),
    )


def _client_rates(source: Source, service: str, quality: QualityLog) -> pl.DataFrame:
    frame = read_csv(source, CLIENT_RATES, quality).rename({"window_start_s": "time"})
    fitted = sorted(CLIENT_RATES.ignored & set(source.header))
    quality.find("F04", source.label, len(fitted), detail=f"{', '.join(fitted)}: fitted to the arrivals")
    nameless = frame.filter(pl.col("client").is_null())
    quality.find("Q01", source.label, nameless.height, detail="client", examples=nameless)
    frame = with_time(frame.filter(pl.col("client").is_not_null()), source.label, quality)
    return metric_rows(frame, _RATE_METRICS, pl.lit(f"{service}/") + pl.col("client"))


def _identity(service: str) -> tuple[pl.Expr, ...]:
    return (
        pl.col("_row"),
        pl.concat_str(pl.lit(f"{service}:"), pl.col("_row")).alias("request_id"),
        pl.lit(service).alias("application"),
    )


def _report_copies(frame: pl.DataFrame, source: Source, quality: QualityLog) -> None:
    copies = frame.filter(~pl.struct(pl.exclude("_row")).is_first_distinct())
    quality.find("F05", source.label, copies.height, examples=copies)


def _services(inputs: Sequence[Input]) -> list[str]:
    """Return a name for each file, from its own; files of one name are numbered."""
    names: list[str] = []
    for item in inputs:
        stem = item.source.path.name.rsplit(".", 1)[0].removesuffix("_client_rates")
        again = sum(name == stem or name.startswith(f"{stem}#") for name in names)
        names.append(f"{stem}#{again + 1}" if again else stem)
    return names


def read(inputs: Sequence[Input], quality: QualityLog) -> Draft:
    """Return requests and client rates; times are absolute where all files are Azure's."""
    azure: list[pl.DataFrame] = []
    others: list[pl.DataFrame] = []
    rates: list[pl.DataFrame] = []
    services = _services(inputs)
    for item, service in zip(inputs, services, strict=True):
        if item.kind == AZURE.kind:
            azure.append(_azure(item.source, service, quality))
        elif item.kind == CLIENT_RATES.kind:
            rates.append(_client_rates(item.source, service, quality))
        else:
            others.append(_json_requests(item.source, item.kind, service, quality))
    clocks = bool(azure) + len(others) + len(rates)
    if clocks > 1:
        quality.find("F06", "files", clocks, detail=shorten(", ".join(services), 200))
        azure = _from_zero(azure)
    tables = {"requests": azure + others, "series": rates}
    clock = Clock.ABSOLUTE if azure and clocks == 1 else Clock.RELATIVE
    return Draft({name: pl.concat(f, how="diagonal_relaxed") for name, f in tables.items() if f}, clock)


def _from_zero(frames: list[pl.DataFrame]) -> list[pl.DataFrame]:
    first = [float(low) for f in frames if (low := f["submit_time"].min()) is not None]  # type: ignore[arg-type]
    origin = math.floor(min(first, default=0.0))
    return [f.with_columns(pl.col("submit_time") - origin) for f in frames]


READER = READERS.add(Reader("requests", "requests to LLM services", (AZURE, CLIENT_RATES), read, recognise))
