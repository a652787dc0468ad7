"""How an analysis looks in a terminal: its main tables and what they say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gputwin.cli.console import say, table
from gputwin.core.units import format_duration

if TYPE_CHECKING:
    import polars as pl

    from gputwin.analysis import Analysis
    from gputwin.analysis.topic import Topic

_MOST_ROWS = 24
_LARGEST = 8
_FEW = 5
_TIMES = ("mean", "low", "high", "p50", "p95", "p99", "max", "km_mean", "km_p50")
_PUBLISHED = ("published_seconds", "trace_seconds")


class _Shown(NamedTuple):
    """A table to print: its columns with their titles, and those that are durations."""

    name: str
    title: str
    columns: Mapping[str, str]
    durations: Sequence[str] = ()


_SPREAD = {"count": "tasks", "mean": "mean", "p50": "p50", "p95": "p95", "p99": "p99", "low": "mean (95 %)"}
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
        _Shown("wait", "Wait", _WAIT, _TIMES),
        _Shown("wait_by", "Wait", _GROUP | _WAIT | {"share_of_total": "of all %"}, _TIMES),
        _Shown(
            "wait_over_completion",
            "Wait over completion time",
            {"tasks": "tasks"} | {k: k for k in ("mean", "p50", "p95")},
        ),
    ),
    "runtimes": (
        _Shown("runtime", "Runtime", _SPREAD, _TIMES),
        _Shown("runtime_by", "Runtime", _GROUP | _SPREAD | {"share_of_total": "of all %"}, _TIMES),
        _Shown(
            "survival",
            "Runtime with those still alive counted",
            _GROUP
            | {"tasks": "tasks", "censored": "still alive", "mean": "plain mean", "km_mean": "Kaplan–Meier mean"}
            | {"p50": "plain p50", "km_p50": "Kaplan–Meier p50"},
            _TIMES,
        ),
    ),
    "placement": (
        _Shown(
            "rules",
            "Wait",
            _GROUP | {"count": "tasks", "mean": "mean", "p50": "p50", "waited_share": "waited %"},
            _TIMES,
        ),
        _Shown(
            "rules_by_role", "Wait", _GROUP | {"role": "role", "count": "tasks", "mean": "mean", "p50": "p50"}, _TIMES
        ),
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
            "Published",
            {
                "claim": "claim",
                "published_seconds": "published",
                "trace_seconds": "this trace",
                "reproduces": "reproduces",
            },
            _PUBLISHED,
        ),
    ),
}


_MAIN = {
    "delays": ("wait", "wait_by"),
    "runtimes": ("runtime",),
    "efficiency": ("use",),
    "requests": ("tokens", "clients"),
}
"""Topic → its tables that are shown without --full; of a table by several dimensions the first."""


def show_analysis(analysis: Analysis, written: Mapping[str, str]) -> None:
    """Print what the analysis comes to, its main findings and tables, and where the rest is."""
    from gputwin.analysis.verdict import main_findings, verdict
    from gputwin.cli.settings import settings

    say(verdict(analysis).text)
    if settings().full:
        _show_all(analysis)
    else:
        for remark in main_findings(analysis):
            say(f"{'!' if remark.is_warning else '·'} {remark.text}")
        for topic in analysis.topics:
            for shown in _TABLES.get(topic.name, ()):
                found = topic.table(shown.name)
                if found is not None and shown.name in _MAIN.get(topic.name, ()):
                    _show(*next(_parts(found, shown.title, _LARGEST)), shown)
            _show_tenants(topic)
        say("All tables and findings: --full; as a report: -o DIR")
    for what, path in written.items():
        say(f"{what}: {path}")


def _show_all(analysis: Analysis) -> None:
    for topic in analysis.topics:
        say(f"\n{topic.title}\n{'─' * len(topic.title)}")
        for shown in _TABLES.get(topic.name, ()):
            found = topic.table(shown.name)
            if found is not None:
                for title, part in _parts(found, shown.title):
                    _show(title, part, shown)
        _show_tenants(topic)
        for remark in topic.remarks:
            say(f"{'!' if remark.is_warning else '·'} {remark.text}")


def _show_tenants(topic: Topic) -> None:
    from gputwin.cli.tenants import show_tenant_tables

    if topic.name == "tenants":
        blocking = topic.table("blocking")
        found = topic.tables["tenants"]
        show_tenant_tables(
            found, found.clear() if blocking is None else blocking, _FEW, topic.title.removeprefix("Per ")
        )


def _parts(found: pl.DataFrame, title: str, most: int = _MOST_ROWS) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield a table, or one for each dimension of it with the largest groups where there are many."""
    from gputwin.analysis.dimensions import BY_NAME

    if "dimension" not in found.columns:
        yield title, found.head(most)
        return
    for part in found.partition_by("dimension", maintain_order=True):
        name = part["dimension"][0]
        by = f"{title} by {BY_NAME[name].title}" if name in BY_NAME else title
        count = next((c for c in ("count", "tasks") if c in part.columns), None)
        if part.height > _MOST_ROWS and count is not None:
            yield f"{by}: the {_LARGEST} largest of {part.height:,}", part.sort(count, descending=True).head(_LARGEST)
        else:
            yield by, part


def _show(title: str, part: pl.DataFrame, shown: _Shown) -> None:
    if "low" in shown.columns and "high" in part.columns:
        part = _with_interval(part)
    columns = {c: name for c, name in shown.columns.items() if c in part.columns}
    rows = [
        [_cell(name, v, column in shown.durations) for (column, name), v in zip(columns.items(), row, strict=True)]
        for row in _rows(part, columns)
    ]
    table(title, list(columns.values()), rows)


def _with_interval(part: pl.DataFrame) -> pl.DataFrame:
    """Return the table with both ends of the mean's interval as one text, so that a narrow terminal shows both or none."""
    import polars as pl

    ends = part.select("low", "high").rows()
    texts = ["–" if low is None else f"{format_duration(low)} to {format_duration(high)}" for low, high in ends]
    return part.with_columns(pl.Series("low", texts, pl.String))


def _rows(part: pl.DataFrame, columns: Mapping[str, str]) -> Sequence[tuple[Any, ...]]:
    return part.select(list(columns)).rows()


def _cell(name: str, value: Any, is_duration: bool) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if name.endswith("%"):
            return f"{value * 100:.1f}"
        if is_duration:
            return format_duration(value)
        return f"{value:,.2f}" if abs(value) < 10_000 else f"{value:,.0f}"
    return str(value)
