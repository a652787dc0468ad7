"""How an analysis looks in a terminal: its main tables and what they say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gputwin.cli.console import say, table

if TYPE_CHECKING:
    import polars as pl

    from gputwin.analysis import Analysis

_MOST_ROWS = 24
_LARGEST = 8
_HOUR = 3600.0


class _Shown(NamedTuple):
    """A table to print: its columns with their titles, and what to divide numbers by."""

    name: str
    title: str
    columns: Mapping[str, str]
    scale: float = 1.0


_SPREAD = {"count": "tasks", "mean": "mean", "low": "from", "high": "to", "p50": "p50", "p95": "p95", "p99": "p99"}
_WAIT = _SPREAD | {"max": "max", "zero_share": "zero %", "tail_share": "tail %"}
_GROUP = {"group": "group"}
_TABLES: Mapping[str, tuple[_Shown, ...]] = {
    "workload": (
        _Shown(
            "burstiness",
            "Arrivals per bin",
            {"scale": "bin", "mean": "mean", "dispersion": "variance / mean", "peak_over_mean": "peak / mean"}
            | {"empty_share": "empty %", "lag_one": "lag-1 correlation"},
        ),
        _Shown(
            "composition",
            "Tasks",
            _GROUP
            | {"tasks": "tasks", "task_share": "tasks %", "gpu_hours": "GPU-hours", "gpu_hour_share": "GPU-hours %"},
        ),
    ),
    "delays": (
        _Shown("wait", "Wait, s", _WAIT),
        _Shown("wait_by", "Wait, s,", _GROUP | _WAIT | {"share_of_total": "of all %"}),
        _Shown(
            "wait_over_completion",
            "Wait over completion time",
            {"tasks": "tasks"} | {k: k for k in ("mean", "p50", "p95")},
        ),
    ),
    "runtimes": (
        _Shown("runtime", "Runtime, h", _SPREAD, _HOUR),
        _Shown("runtime_by", "Runtime, h,", _GROUP | _SPREAD | {"share_of_total": "of all %"}, _HOUR),
        _Shown(
            "survival",
            "Runtime with those still alive counted, h,",
            _GROUP
            | {"tasks": "tasks", "censored": "still alive", "mean": "plain mean", "km_mean": "Kaplan–Meier mean"}
            | {"p50": "plain p50", "km_p50": "Kaplan–Meier p50"},
            _HOUR,
        ),
    ),
    "tenants": (
        _Shown(
            "tenants",
            "Tenants",
            {"tenant": "tenant", "jobs": "jobs", "gpu_hours": "GPU-hours", "mean_wait_seconds": "mean wait, s"}
            | {"waited_gpu_hours": "waits, GPU-h", "others_wait_gpu_hours": "others wait for it, GPU-h"}
            | {"used_share": "used %"},
        ),
        _Shown(
            "blocking",
            "Who waits while whose jobs hold GPUs",
            {"waiting": "waiting", "holding": "GPUs held by", "gpu_hours": "GPU-hours of waiting"},
        ),
    ),
    "placement": (
        _Shown(
            "rules", "Wait, s,", _GROUP | {"count": "tasks", "mean": "mean", "p50": "p50", "waited_share": "waited %"}
        ),
        _Shown("rules_by_role", "Wait, s,", _GROUP | {"role": "role", "count": "tasks", "mean": "mean", "p50": "p50"}),
    ),
    "efficiency": (
        _Shown(
            "limits",
            "Request over limit",
            {"resource": "resource", "count": "instances", "mean_of_ratios": "mean of ratios %"}
            | {"ratio_of_sums": "ratio of sums %", "below_share": "below limit %"},
        ),
        _Shown(
            "use",
            "Request against use (cores, GPUs, GiB)",
            {
                "resource": "resource",
                "count": "instances",
                "request": "request",
                "use": "use",
                "over_share": "asks more %",
            }
            | {"under_share": "uses more %", "reclaimable_share": "idle %"},
        ),
    ),
    "requests": (
        _Shown(
            "tokens",
            "Tokens per request",
            {
                "what": "what",
                "count": "requests",
                "mean": "mean",
                "p50": "p50",
                "p95": "p95",
                "p99": "p99",
                "max": "max",
            },
        ),
        _Shown(
            "clients",
            "Clients",
            {"client": "client", "requests": "requests", "share": "of all %", "cv": "CV of gaps"}
            | {"mean_input_tokens": "tokens in", "mean_output_tokens": "tokens out"}
            | {"mean_duration_seconds": "time to serve, s"},
        ),
        _Shown(
            "client_rates",
            "Clients",
            {"client": "client", "rate_per_s": "requests/s", "peak_rate_per_s": "peak", "share": "of all %"}
            | {"active_share": "active %", "cv": "CV of gaps"},
        ),
    ),
    "published": (
        _Shown(
            "claims",
            "Published, s",
            {
                "claim": "claim",
                "published_seconds": "published",
                "trace_seconds": "this trace",
                "reproduces": "reproduces",
            },
        ),
    ),
}


def show_analysis(analysis: Analysis, written: Mapping[str, str]) -> None:
    """Print the analysis."""
    if not analysis.topics:
        say("The trace has nothing that could be analysed.")
    for topic in analysis.topics:
        say(f"\n{topic.title}\n{'─' * len(topic.title)}")
        for shown in _TABLES.get(topic.name, ()):
            found = topic.table(shown.name)
            if found is not None:
                for title, part in _parts(found, shown.title):
                    _show(title, part, shown)
        for remark in topic.remarks:
            say(f"{'!' if remark.is_warning else '·'} {remark.text}")
    for what, path in written.items():
        say(f"{what}: {path}")


def _parts(found: pl.DataFrame, title: str) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield a table, or one for each dimension of it with the largest groups where there are many."""
    from gputwin.analysis.dimensions import BY_NAME

    if "dimension" not in found.columns:
        yield title, found.head(_MOST_ROWS)
        return
    for part in found.partition_by("dimension", maintain_order=True):
        name = part["dimension"][0]
        by = f"{title} by {BY_NAME[name].title}" if name in BY_NAME else title.rstrip(",")
        count = next((c for c in ("count", "tasks") if c in part.columns), None)
        if part.height > _MOST_ROWS and count is not None:
            yield f"{by}: the {_LARGEST} largest of {part.height:,}", part.sort(count, descending=True).head(_LARGEST)
        else:
            yield by, part


def _show(title: str, part: pl.DataFrame, shown: _Shown) -> None:
    columns = {c: name for c, name in shown.columns.items() if c in part.columns}
    rows = [
        [_cell(name, v, shown.scale) for name, v in zip(columns.values(), row, strict=True)]
        for row in _rows(part, columns)
    ]
    table(title, list(columns.values()), rows)


def _rows(part: pl.DataFrame, columns: Mapping[str, str]) -> Sequence[tuple[Any, ...]]:
    return part.select(list(columns)).rows()


def _cell(name: str, value: Any, scale: float) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if name.endswith("%"):
            return f"{value * 100:.1f}"
        value = value / scale
        return f"{value:,.2f}" if abs(value) < 10_000 else f"{value:,.0f}"
    return str(value)
