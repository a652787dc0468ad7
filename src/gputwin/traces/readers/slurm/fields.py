"""The fields of a `sacct` or `squeue` text: which there are, and their cells as times, durations, counts and names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from gputwin.core.errors import InputError, UserError, shorten
from gputwin.core.units import parse_slurm_duration
from gputwin.traces.quality import QualityLog
from gputwin.traces.readers.slurm.names import expand_array, expand_hosts
from gputwin.traces.sources import Source
from gputwin.traces.walltime import to_unix_seconds

_USED_TEXT = """
JobID JobName User Account Partition QOS Cluster State Submit Start End Elapsed ElapsedRaw Timelimit
TimelimitRaw ReqTRES AllocTRES ReqCPUS AllocCPUS NCPUS ReqMem NNodes AllocNodes ReqNodes NodeList Priority
Restarts
"""
USED = tuple(_USED_TEXT.split())
_UNUSED_TEXT = """
JobIDRaw AdminComment AssocID AveCPU AveCPUFreq AveDiskRead AveDiskWrite AvePages AveRSS AveVMSize BlockID
Comment Constraints ConsumedEnergy ConsumedEnergyRaw Container CPUTime CPUTimeRAW DBIndex DerivedExitCode
Eligible ExitCode Extra FailedNode Flags GID Group Layout Licenses MaxDiskRead MaxDiskReadNode MaxDiskReadTask
MaxDiskWrite MaxDiskWriteNode MaxDiskWriteTask MaxPages MaxPagesNode MaxPagesTask MaxRSS MaxRSSNode MaxRSSTask
MaxVMSize MaxVMSizeNode MaxVMSizeTask McsLabel MinCPU MinCPUNode MinCPUTask NTasks Planned PlannedCPU
PlannedCPURAW QOSRAW QOSREQ Reason ReqCPUFreq ReqCPUFreqGov ReqCPUFreqMax ReqCPUFreqMin Reservation
ReservationId Reserved ResvCPU ResvCPURAW SegmentSize SLUID StdErr StdIn StdOut SubmitLine Suspended
SystemComment SystemCPU TotalCPU TRESUsageInAve TRESUsageInMax TRESUsageInMaxNode TRESUsageInMaxTask
TRESUsageInMin TRESUsageInMinNode TRESUsageInMinTask TRESUsageInTot TRESUsageOutAve TRESUsageOutMax
TRESUsageOutMaxNode TRESUsageOutMaxTask TRESUsageOutMin TRESUsageOutMinNode TRESUsageOutMinTask TRESUsageOutTot
UID UserCPU WCKey WCKeyID WorkDir
"""
_UNUSED = tuple(_UNUSED_TEXT.split())
_SQUEUE = {
    "name": "JobName",
    "submit_time": "Submit",
    "start_time": "Start",
    "end_time": "End",
    "time": "Elapsed",
    "time_limit": "Timelimit",
    "nodes": "NNodes",
    "tres_alloc": "ReqTRES",
}
"""Headers of `squeue` that are spelled otherwise than the field of `sacct` that means the same."""
_BY_LOWER_CASE = {name.lower(): name for name in (*USED, *_UNUSED)} | _SQUEUE
JOB_ID = r"^(\d+)(?:_(\d+|\[[^\]]*\]))?(?:\+(\d+))?(?:\.(.+))?$"
_NOTHING = ["unknown", "none", "n/a", "unlimited", "partition_limit", "invalid"]
_TIME_FORMAT = "%Y-%m-%dT%H:%M:%S"


def _header(source: Source) -> list[str]:
    """Return the names in the first line, as `sacct` spells them."""
    first = source.head.split(b"\n", 1)[0].decode("utf-8-sig", errors="replace").rstrip("\r")
    return [_BY_LOWER_CASE.get(name.strip().lower(), name.strip()) for name in first.split("|")]


def present(source: Source) -> set[str]:
    """Return the names of the fields the file has."""
    return set(_header(source))


def recognise(source: Source) -> str | None:
    """Return "jobs" where the first line is a `sacct` header with a job's id and something about the job."""
    names = present(source)
    return "jobs" if names & {"JobID", "JobIDRaw"} and names & (set(USED) - {"JobID"}) else None


def read_table(source: Source, quality: QualityLog) -> pl.DataFrame:
    """Return the fields in use as text (null for blank and absent ones), with `_row`; counts the rows read."""
    source.check_text()
    header = _header(source)
    # Only names can hold bytes that are not UTF-8, so a stray one is worth no refusal.
    text = source.path.read_bytes().decode("utf-8-sig", errors="replace")
    lines = pl.DataFrame({"line": text.split("\n")}).with_row_index("_row", offset=1)
    lines = lines.with_columns(pl.col("line").str.strip_chars_end("\r"))
    # Joined files repeat the header; the first line is one, too.
    lines = lines.filter((pl.col("line").str.strip_chars() != "") & (pl.col("line") != lines["line"][0]))
    if lines.is_empty():
        raise InputError("the file has no rows", file=source.label, remedy="give a file with jobs")
    quality.read(source.label, lines.height)
    surplus = [name for name in header if name and name not in _BY_LOWER_CASE.values()]
    quality.find("F02", source.label, len(surplus), detail=shorten(", ".join(surplus), 200))
    cells = _complete(lines.with_columns(pl.col("line").str.split("|")), len(header), source, quality)
    id_field = "JobID" if "JobID" in header else "JobIDRaw"
    columns = []
    for name in USED:
        field = id_field if name == "JobID" else name
        if field in header:
            cell = pl.col("line").list.get(header.index(field)).str.strip_chars()
            columns.append(pl.when(cell != "").then(cell).alias(name))
        else:
            columns.append(pl.lit(None, pl.String).alias(name))
    return cells.select("_row", *columns)


def _complete(lines: pl.DataFrame, width: int, source: Source, quality: QualityLog) -> pl.DataFrame:
    """Return the lines with as many fields as the header; another is an error, or dropped where that is allowed."""
    found = lines["line"].list.len()
    odd = lines.filter(found != width)
    if odd.height and not quality.lenient:
        raise InputError(
            f"{odd['line'].list.len()[0]} fields instead of {width}",
            file=source.label,
            row=int(odd["_row"][0]),
            remedy="a name may contain '|': export with --delimiter, or pass --lenient to drop such lines",
        )
    quality.find("F20", source.label, odd.height, examples=odd.select("_row", pl.col("line").list.join("|")))
    return lines.filter(found == width)


def check(frame: pl.DataFrame, name: str, is_bad: pl.Series, problem: str, source: Source, quality: QualityLog) -> None:
    """Raise for the first cell of a field that is bad, or count such cells as unknown where that is allowed."""
    bad = frame.filter(is_bad & frame[name].is_not_null()).select("_row", name)
    if bad.height and not quality.lenient:
        raise InputError(
            f"'{shorten(bad[name][0])}' {problem}",
            file=source.label,
            row=int(bad["_row"][0]),
            field=name,
            remedy="fix the cell, or pass --lenient to treat such cells as unknown",
        )
    quality.find("F03", source.label, bad.height, detail=name, examples=bad)


def _known(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return `_row` and the field, null where Slurm writes a word for "no value"."""
    cell = pl.col(name)
    return frame.select("_row", pl.when(~cell.str.to_lowercase().is_in(_NOTHING)).then(cell).alias(name))


def times(frame: pl.DataFrame, name: str, source: Source, quality: QualityLog, zone: str) -> pl.Series:
    """Return a field as Unix seconds; wall times are those of `zone`."""
    cells = _known(frame, name)
    epoch = cells[name].str.extract(r"^(\d{9,11})$").cast(pl.Float64)
    wall = cells.filter(epoch.is_null())
    wall = to_unix_seconds(wall, name, zone, source.label, quality, _TIME_FORMAT)
    joined = cells.select("_row").join(wall, on="_row", how="left", maintain_order="left")
    return joined[name].cast(pl.Float64).fill_null(epoch)


def numbers(frame: pl.DataFrame, name: str, source: Source, quality: QualityLog) -> pl.Series:
    """Return a field as numbers; Slurm may shorten large counts with K or M (1024 each)."""
    cells = _known(frame, name)
    scale = cells[name].str.extract(r"([KM])$").replace_strict({"K": 1024.0, "M": 1024.0**2}, default=1.0)
    values = cells[name].str.extract(r"^(\d{1,15}(?:\.\d{1,9})?)[KM]?$").cast(pl.Float64) * scale.cast(pl.Float64)
    check(cells, name, values.is_null(), "is not a number", source, quality)
    return values.alias(name)


def durations(frame: pl.DataFrame, name: str, source: Source, quality: QualityLog) -> pl.Series:
    """Return a field of [days-]hours:minutes:seconds as seconds."""
    return mapped(frame, name, parse_slurm_duration, pl.Float64(), "a duration", source, quality)


def hosts(frame: pl.DataFrame, source: Source, quality: QualityLog) -> pl.Series:
    """Return the node list as lists of node names."""
    cells = frame.select("_row", pl.when(pl.col("NodeList") != "None assigned").then("NodeList").alias("NodeList"))
    return mapped(cells, "NodeList", expand_hosts, pl.List(pl.String), "a list of nodes", source, quality)


def array_numbers(frame: pl.DataFrame, source: Source, quality: QualityLog) -> tuple[pl.Series, pl.Series]:
    """Return the task numbers of each pending array, and whether Slurm cut them short."""
    inside = frame.select("_row", pl.col("JobID").str.extract(r"\[([^\]]*)\]").alias("JobID"))
    names = mapped(inside, "JobID", expand_array, pl.List(pl.String), "a list of array tasks", source, quality)
    return names, inside["JobID"].str.contains("...", literal=True)


def mapped(
    frame: pl.DataFrame,
    name: str,
    parse: Callable[[str], Any],
    dtype: pl.DataType,
    what: str,
    source: Source,
    quality: QualityLog,
) -> pl.Series:
    """Return `parse` of each cell of a field, worked out once per distinct text; `what` it is, for messages."""
    texts = frame[name].drop_nulls().unique(maintain_order=True)
    values: list[Any] = []
    bad: list[str] = []
    for text in texts:
        try:
            values.append(parse(text))
        except UserError:
            bad.append(text)
            values.append(None)
    if bad:
        check(frame, name, frame[name].is_in(bad).fill_null(False), f"is not {what}", source, quality)
    table = pl.DataFrame({name: texts, "_value": pl.Series(values, dtype=dtype)})
    return frame.select(name).join(table, on=name, how="left", maintain_order="left")["_value"].alias(name)
