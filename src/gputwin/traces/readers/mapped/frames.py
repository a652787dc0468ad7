"""From columns of text to drafts of the task and request tables, as a mapping says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import polars as pl

from gputwin.core.errors import InputError, shorten
from gputwin.core.units import CORE_MILLI, WHOLE_GPU_MILLI
from gputwin.traces.cells import Column, Kind, amounts, known, only, times
from gputwin.traces.quality import QualityLog
from gputwin.traces.readers.mapped.fields import fields_of
from gputwin.traces.readers.mapped.mapping import Mapping
from gputwin.traces.schema import Status
from gputwin.traces.sources import Source

_MIB = 1 << 20
_WORDS = {
    Status.COMPLETED: "completed complete succeeded success successful finished done passed pass ok terminated cd 0",
    Status.FAILED: "failed failure fail error errored timeout timed_out timedout out_of_memory oom node_fail crashed to",
    Status.CANCELLED: "cancelled canceled killed stopped aborted deleted revoked preempted interrupted evicted ca",
    Status.RUNNING: "running active started r suspended",
    Status.WAITING: "pending queued waiting submitted held pd created",
    Status.UNKNOWN: "unknown",
}
STATUS_WORDS = {word: status.value for status, words in _WORDS.items() for word in words.split()}


@dataclass
class Clock:
    """What the time columns seen so far mean: dates or seconds from some start, and whether a zone was missing."""

    is_absolute: bool | None = None
    said_by: str = ""
    zoneless: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Parsed:
    """The cells of a table by field, each of the type its field has."""

    table: pl.DataFrame
    mapping: Mapping
    source: Source
    quality: QualityLog
    clock: Clock

    def column(self, name: str) -> pl.Series:
        """Return a field's values: text, seconds, or amounts in base units; all null where it is not mapped."""
        kind = fields_of(self.mapping.table)[name].kind
        meaning = self.mapping.fields.get(name)
        empty = pl.String if kind in (Kind.TEXT, Kind.STATUS) else pl.Float64
        if meaning is None:
            return pl.Series(name, [None], dtype=empty).new_from_index(0, self.table.height)
        cell = pl.lit(meaning.value) if meaning.value is not None else pl.col(meaning.column)
        cells = self.table.select("_row", cell.alias("cell"))
        shown = meaning.column or name
        if kind in (Kind.TEXT, Kind.STATUS):
            text = cells["cell"].str.strip_chars()
            lower = text.str.to_lowercase()
            return only(text, ~lower.is_in(["", "null", "nan", "nat"]).fill_null(True)).alias(name)
        column = Column(known(cells), shown, self.source.label, self.quality)
        if kind == Kind.TIME:
            return self._time(column, meaning.unit).alias(name)
        if kind == Kind.BYTES and not meaning.unit:
            self._check_sizes(column, name)
        return amounts(column, kind, meaning.unit).alias(name)

    def _check_sizes(self, column: Column, name: str) -> None:
        """Raise where a size is a bare number: 16 may be bytes, MB or GiB."""
        bare = column.cells.filter(column.numbers() > 0)
        if bare.height:
            raise InputError(
                f"'{shorten(bare['cell'][0])}' has no unit",
                file=self.source.label,
                row=int(bare["_row"][0]),
                field=column.name,
                remedy=f"say it in the mapping, as in {name}={column.name}:GiB (or B, MB, MiB, GB)",
            )

    def _time(self, column: Column, unit: str) -> pl.Series:
        found = times(column, unit, self.mapping.zone)
        if found.seconds.is_not_null().any():
            if self.clock.is_absolute not in (None, found.is_absolute):
                one, other = (
                    ("dates", "seconds from a start") if found.is_absolute else ("seconds from a start", "dates")
                )
                raise InputError(
                    f"holds {one}, but '{self.clock.said_by}' holds {other}",
                    file=self.source.label,
                    field=column.name,
                    remedy="map times of one kind, or say a column's unit, as in submit=ts:ms",
                )
            self.clock.is_absolute, self.clock.said_by = found.is_absolute, column.name
            if found.is_zoneless and self.mapping.zone is None:
                self.clock.zoneless.append(column.name)
        return found.seconds

    def status(self) -> pl.Series:
        """Return the canonical status; words that no status is known for are counted (rule F08)."""
        text = self.column("status")
        words = {**STATUS_WORDS, **self.mapping.status}
        lower = text.str.to_lowercase()
        # Slurm writes "CANCELLED by 1000".
        found = lower.replace_strict(words, default=None, return_dtype=pl.String).fill_null(
            lower.str.extract(r"^([a-z_]+)[ +]", 1).replace_strict(words, default=None, return_dtype=pl.String)
        )
        strange = (
            self.table.select("_row").with_columns(text.alias("status")).filter(text.is_not_null() & found.is_null())
        )
        self.quality.find("F08", self.source.label, strange.height, detail="status", examples=strange)
        return found.alias("status")


def task_frame(parsed: Parsed) -> pl.DataFrame:
    """Return the draft of the task table."""
    get = parsed.column
    names = ("submit", "start", "end", "duration", "wait", "limit", "instances", "gpus", "total_gpus", "cpus")
    frame = pl.DataFrame([parsed.table["_row"], *(get(n) for n in names), parsed.status()])
    frame = _with_life(frame, "end" in parsed.mapping.fields)
    frame = _with_gpus(frame)
    texts = ("role", "user", "tenant", "qos", "application", "workload", "group", "gpu_model", "gpu_models_allowed")
    return frame.select(
        "_row",
        "status",
        "is_running",
        "instances",
        "gpu_count",
        "gpu_milli",
        _identity(parsed, "job_id"),
        *(get(name) for name in texts),
        *(get(name) for name in ("priority", "attempts", "max_per_node")),
        pl.col("submit").alias("submit_time"),
        pl.col("start").alias("start_time"),
        pl.col("end").alias("end_time"),
        pl.col("duration").alias("duration_seconds"),
        pl.col("limit").alias("requested_seconds"),
        (pl.col("cpus") * CORE_MILLI).alias("cpu_milli"),
        *(_mib(get(name)).alias(f"{name}_mib") for name in ("memory", "gpu_memory", "disk")),
    )


def _mib(size: pl.Series) -> pl.Series:
    # A request of 16 GB is 15,258.8 MiB: rounding up keeps it enough, and is no loss worth a finding.
    return (size / _MIB).round(6).ceil()


def _with_life(frame: pl.DataFrame, has_end: bool) -> pl.DataFrame:
    """Return the frame with start, end and duration as far as the others give them, and whether it still runs."""
    submit, start, end, duration, wait = (pl.col(c) for c in ("submit", "start", "end", "duration", "wait"))
    frame = frame.with_columns(start=pl.coalesce(start, submit + wait, end - duration))
    frame = frame.with_columns(submit=pl.coalesce(submit, start - wait))
    status = pl.col("status")
    # A log that has an end column leaves it empty for what runs.
    open_ended = pl.lit(has_end) & start.is_not_null() & end.is_null() & duration.is_null()
    running = (status == Status.RUNNING) | ((status.is_null() | (status == Status.UNKNOWN)) & open_ended)
    frame = frame.with_columns(running.fill_null(False).alias("is_running"))
    alive = pl.col("is_running")
    return frame.with_columns(
        pl.when(~alive).then(pl.coalesce(end, start + duration)).alias("end"),
        pl.when(~alive).then(duration).alias("duration"),
        pl.when(alive).then(pl.lit(Status.RUNNING.value)).otherwise(status).alias("status"),
    )


def _with_gpus(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with instances, devices of one instance, and the share of each.

    Half a GPU is one device of 500 milli, 2.5 are three of 833. GPUs of a job that do not spread evenly over its
    instances become a gang of single GPUs: the sum is right, the shape is lost.
    """
    total, size = pl.col("total_gpus"), pl.col("instances").fill_null(1).clip(1)
    uneven = (size > 1) & (total > 0) & (total % 1 == 0) & (total % size != 0)
    frame = frame.with_columns(
        instances=pl.when(uneven).then(total).otherwise(pl.col("instances")),
        each=pl.coalesce("gpus", pl.when(uneven).then(1.0).otherwise(total / size)),
    )
    each = pl.col("each")
    count = (each - 1e-9).ceil().clip(0)
    share = (each * WHOLE_GPU_MILLI / count).round()
    return frame.with_columns(
        # A negative amount stays one, for the rule that counts it.
        pl.when(each < 0).then(each).otherwise(count).alias("gpu_count"),
        pl.when(count > 0).then(share).when(each == 0).then(0.0).alias("gpu_milli"),
    )


def request_frame(parsed: Parsed) -> pl.DataFrame:
    """Return the draft of the request table."""
    get = parsed.column
    submit, end, duration = get("submit"), get("end"), get("duration")
    return pl.DataFrame([parsed.table["_row"], submit, end, duration, parsed.status()]).select(
        "_row",
        "status",
        _identity(parsed, "request_id"),
        pl.col("submit").alias("submit_time"),
        pl.coalesce("duration", pl.col("end") - pl.col("submit")).alias("duration_seconds"),
        *(get(name) for name in ("application", "user", "model", "kind", "input_tokens", "output_tokens", "images")),
    )


def _identity(parsed: Parsed, name: str) -> pl.Expr | pl.Series:
    if name in parsed.mapping.fields:
        return parsed.column(name)
    return pl.format("row-{}", "_row").alias(name)


MAKERS: dict[str, Callable[[Parsed], pl.DataFrame]] = {"tasks": task_frame, "requests": request_frame}
