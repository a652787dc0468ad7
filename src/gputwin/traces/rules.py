"""The cleaning rules on canonical tables: for each numbered rule, which rows it concerns and how it repairs them.

Rules are applied in the order below, each to what the earlier ones left. A repair makes a wrong value unknown, or
brings it to the nearest possible one; it never invents a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import polars as pl

from gputwin.core.units import HOUR, WHOLE_GPU_MILLI
from gputwin.traces.quality import RULES, Action, QualityLog
from gputwin.traces.schema import Table

_REQUESTS = ("cpu_milli", "memory_mib", "gpu_count", "disk_mib", "rdma_percent")
_LIMITS = {
    "cpu_milli": "cpu_limit_milli",
    "memory_mib": "memory_limit_mib",
    "disk_mib": "disk_limit_mib",
    "rdma_percent": "rdma_limit_percent",
}
_MOST_NODE_SHAPES = 256
_JUMP_STEPS = 100
_JUMP_SECONDS = 6 * HOUR


@dataclass(frozen=True)
class Check:
    """A rule at work: the rows it concerns, what to put into which column there, and what to show of them.

    A function for `concerns` is given the frame as the rules before left it.
    """

    rule: str
    concerns: pl.Expr | Callable[[pl.DataFrame], pl.Series]
    repair: tuple[pl.Expr, ...] = ()
    detail: str = ""
    show: tuple[str, ...] = ()


@dataclass
class Context:
    """What earlier tables leave behind for rules that compare tables."""

    nodes: pl.DataFrame | None = None
    task_keys: pl.Series | None = None
    task_sizes: pl.DataFrame | None = field(default=None)


def clean(table: Table, frame: pl.DataFrame, context: Context, quality: QualityLog) -> pl.DataFrame:
    """Return `frame` after all rules of its table; findings go to the log, what other tables need to `context`."""
    for check in _checks(table, frame):
        frame = _apply(check, table, frame, quality)
    for check in _cross_checks(table, frame, context):
        frame = _apply(check, table, frame, quality)
    _remember(table, frame, context)
    return frame.drop("_row", strict=False)


def _apply(check: Check, table: Table, frame: pl.DataFrame, quality: QualityLog) -> pl.DataFrame:
    concerns = check.concerns
    mask = frame.select(concerns).to_series() if isinstance(concerns, pl.Expr) else concerns(frame)
    mask = mask.fill_null(False)
    count = int(mask.sum() or 0)
    if not count:
        return frame
    shown = [c for c in dict.fromkeys(("_row", *table.key, *check.show)) if c in frame.columns]
    quality.find(check.rule, table.name, count, detail=check.detail, examples=frame.select(shown).filter(mask))
    if RULES[check.rule].action == Action.DROPPED:
        return frame.filter(~mask)
    if check.repair:
        return frame.with_columns(
            pl.when(pl.lit(mask)).then(new).otherwise(pl.col(new.meta.output_name())).alias(new.meta.output_name())
            for new in check.repair
        )
    return frame


def _unknown(column: str) -> pl.Expr:
    return pl.lit(None).alias(column)


def _checks(table: Table, frame: pl.DataFrame) -> Iterator[Check]:
    """Yield the checks that need nothing but the table itself. Each mask is taken when its turn comes."""
    required = [c.name for c in table.columns if c.required]
    if required:
        missing = pl.any_horizontal(_is_missing(c, table.schema[c]) for c in required)
        yield Check("Q01", missing, show=tuple(required))
    if table.key:
        yield Check("Q02", partial(_repeats, key=table.key), show=("submit_time",))
    for column in table.time_columns:
        bad = (pl.col(column) < 0) | ~pl.col(column).is_finite()
        yield Check("Q10", bad, (_unknown(column),), column, (column,))
    if "submit_time" in table.time_columns and "start_time" in table.time_columns:
        yield Check(
            "Q11",
            pl.col("start_time") < pl.col("submit_time"),
            (_unknown("submit_time"),),
            "",
            ("submit_time", "start_time"),
        )
    if "end_time" in table.time_columns:
        ended = [_unknown(c) for c in ("end_time", "duration_seconds") if c in table.schema]
        yield Check("Q12", pl.col("end_time") < pl.col("start_time"), tuple(ended), "", ("start_time", "end_time"))
    if "duration_seconds" in table.schema:
        bad = (pl.col("duration_seconds") < 0) | ~pl.col("duration_seconds").is_finite()
        yield Check("Q18", bad, (_unknown("duration_seconds"),), "", ("duration_seconds",))
        yield Check("Q16", pl.col("duration_seconds") == 0)
    if table.name != "series":
        yield from _amount_checks(table)
    if "is_running" in table.schema:
        yield Check("Q14", pl.col("is_running"))
    if table.name == "tasks":
        yield from _task_checks(frame)
    if table.name in ("tasks", "requests"):
        yield Check("Q17", partial(_jumps_in, column="submit_time"), show=("submit_time",))
    if table.name == "series":
        yield Check("Q17", _series_jumps, show=("metric", "entity", "time"))


def _is_missing(column: str, dtype: pl.DataType) -> pl.Expr:
    value = pl.col(column)
    if dtype == pl.String:
        return value.is_null() | (value == "")
    # A required number is a time (series): one that is no time cannot be made unknown, so its row goes.
    return value.is_null() | ~value.is_finite() | (value < 0)


def _amount_checks(table: Table) -> Iterator[Check]:
    apart = {*table.time_columns, "duration_seconds", "priority"}
    for column in table.columns:
        if not column.dtype.is_numeric() or column.name in apart:
            continue
        bad = pl.col(column.name) < 0
        if column.dtype.is_float():
            bad = bad | ~pl.col(column.name).is_finite()
        yield Check("Q20", bad, (pl.lit(column.default).alias(column.name),), column.name, (column.name,))


def _task_checks(frame: pl.DataFrame) -> Iterator[Check]:
    whole = pl.lit(WHOLE_GPU_MILLI, pl.Int32).alias("gpu_milli")
    yield Check("Q21", pl.col("gpu_milli") > WHOLE_GPU_MILLI, (whole,), show=("gpu_count", "gpu_milli"))
    yield Check("Q25", pl.col("instances") < 1, (pl.lit(1, pl.Int32).alias("instances"),))
    if frame["submit_time"].is_not_null().any() and frame["start_time"].is_not_null().any():
        yield Check("Q13", pl.col("was_running"))
        timeless = pl.col("submit_time").is_null() & pl.col("start_time").is_null()
        yield Check("Q19", timeless & ~pl.col("was_running"), show=("end_time", "status"))
        never = pl.col("start_time").is_null() & pl.col("duration_seconds").is_null()
        yield Check(
            "Q15",
            pl.col("submit_time").is_not_null() & never & ~pl.col("is_running"),
            show=("submit_time", "status"),
        )
    for request, limit in _LIMITS.items():
        yield Check("Q24", pl.col(request) > pl.col(limit), detail=request, show=(request, limit))


def _repeats(frame: pl.DataFrame, key: tuple[str, ...]) -> pl.Series:
    """Return true on the second and later rows of one key.

    Keys are compared by a 64-bit hash first; only rows whose hash repeats are compared in full.
    """
    repeats = frame.select(pl.struct(key).hash().is_duplicated()).to_series()
    if not repeats.any():
        return repeats
    suspects = frame.select(pl.int_range(pl.len()).alias("_index"), *key).filter(repeats)
    firsts = suspects.filter(pl.struct(key).is_first_distinct())["_index"]
    return repeats.scatter(firsts, False)


def _jumps_in(frame: pl.DataFrame, column: str) -> pl.Series:
    """Return true on rows that come after a gap of over six hours and over a hundred times the 99th percentile gap."""
    times = frame[column].drop_nulls().unique().sort()
    gaps = times.diff().drop_nulls()
    if gaps.len() < _JUMP_STEPS:
        return pl.Series([False]).new_from_index(0, frame.height)
    usual = float(gaps.quantile(0.99, "linear") or 0.0)
    after = times.slice(1).filter(gaps > max(_JUMP_SECONDS, _JUMP_STEPS * usual))
    return frame[column].is_in(after.implode()) & frame[column].is_first_distinct()


def _series_jumps(frame: pl.DataFrame) -> pl.Series:
    """Return true on the first sample of a metric after a gap of over ten times its usual step and over six hours."""
    hits = []
    for (metric,), part in frame.select("metric", "time").unique().group_by("metric"):
        times = part["time"].drop_nulls().sort()
        gaps = times.diff().drop_nulls()
        if gaps.len() < 3:
            continue
        after = times.slice(1).filter(gaps > max(_JUMP_SECONDS, 10 * float(gaps.median() or 0.0)))  # type: ignore[arg-type]
        hits += [(metric, t) for t in after]
    if not hits:
        return pl.Series([False]).new_from_index(0, frame.height)
    jumps = pl.DataFrame(hits, schema={"metric": pl.String, "time": pl.Float64}, orient="row")
    marked = frame.with_columns(pl.struct("metric", "time").is_in(jumps.to_struct().implode()).alias("_jump"))
    return marked.select(pl.col("_jump") & pl.struct("metric", "time").is_first_distinct()).to_series()


def _cross_checks(table: Table, frame: pl.DataFrame, context: Context) -> Iterator[Check]:
    """Yield the checks of this table against earlier ones."""
    nodes = context.nodes
    if nodes is not None and nodes.height:
        if table.name == "tasks":
            yield Check("Q22", ~_fits_some_node(nodes), show=_REQUESTS)
            models = nodes["gpu_model"].drop_nulls().unique()
            allowed = pl.col("gpu_models_allowed").str.split("|").list.set_intersection(models.to_list())
            yield Check("Q23", allowed.list.len() == 0, show=("gpu_models_allowed",))
        if table.name in ("instances", "usage"):
            known = nodes["node_id"].implode()
            yield Check("Q30", pl.col("node_id").is_not_null() & ~pl.col("node_id").is_in(known), show=("node_id",))
        if table.name == "usage":
            yield Check("Q33", partial(_beyond_machine, nodes=nodes), show=("instance_id", "node_id"))
    if table.name == "instances" and context.task_keys is not None and context.task_sizes is not None:
        key = frame.select(_task_key()).to_series()
        strangers = ~key.is_in(context.task_keys.implode())
        yield Check("Q31", lambda _: strangers)
        found = key.value_counts(name="_found").rename({key.name: "_key"})
        # A task that was started again may list its instances once per attempt.
        times = pl.col("_found") / pl.col("instances")
        differing = context.task_sizes.join(found, on="_key").filter(
            (times != 1) & (times != pl.col("attempts").fill_null(1))
        )
        first_of_task = key.is_first_distinct() & key.is_in(differing["_key"].implode())
        yield Check("Q32", lambda _: first_of_task)


def _task_key() -> pl.Expr:
    return pl.struct("job_id", "role").hash().alias("_key")


def _fits_some_node(nodes: pl.DataFrame) -> pl.Expr:
    """Return the expression that is true where an empty node of some shape can hold one instance."""
    shapes = nodes.select(_REQUESTS).unique(maintain_order=True).head(_MOST_NODE_SHAPES)
    fits = []
    for shape in shapes.to_dicts():
        parts = [pl.col(name).fill_null(0) <= capacity for name, capacity in shape.items() if capacity is not None]
        fits.append(pl.all_horizontal(parts))
    return pl.any_horizontal(fits)


def _beyond_machine(frame: pl.DataFrame, nodes: pl.DataFrame) -> pl.Series:
    capacity = nodes.select(
        "node_id",
        pl.col("cpu_milli").alias("_cpu"),
        pl.col("memory_mib").alias("_memory"),
        (pl.col("gpu_count").cast(pl.Int64) * WHOLE_GPU_MILLI).alias("_gpu"),
    ).unique("node_id")
    wide = frame.select("node_id", "cpu_milli", "memory_mib", "gpu_milli").join(
        capacity, on="node_id", how="left", maintain_order="left"
    )
    over = (
        (pl.col("cpu_milli") > pl.col("_cpu")).fill_null(False)
        | (pl.col("memory_mib") > pl.col("_memory")).fill_null(False)
        | (pl.col("gpu_milli") > pl.col("_gpu")).fill_null(False)
    )
    return wide.select(over).to_series()


def _remember(table: Table, frame: pl.DataFrame, context: Context) -> None:
    if table.name == "nodes":
        context.nodes = frame
    elif table.name == "tasks":
        context.task_sizes = frame.select(_task_key(), "instances", "attempts")
        context.task_keys = context.task_sizes["_key"]
