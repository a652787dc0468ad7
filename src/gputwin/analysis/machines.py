"""Machines: how busy, how evenly loaded, how much they wait for disks and the network, how full of neighbours."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from gputwin.analysis.frames import aggregate, lazy
from gputwin.analysis.topic import Remark, Topic
from gputwin.analysis.words import share
from gputwin.core.units import HOUR
from gputwin.traces.lifetimes import Window

METRICS = {
    "cpu_percent": "CPU busy, %",
    "cpu_user_percent": "CPU in user mode, %",
    "cpu_kernel_percent": "CPU in kernel mode, %",
    "cpu_iowait_percent": "CPU waiting for I/O, %",
    "gpu_percent": "GPU busy, %",
    "load_1min": "load average",
    "network_receive_bytes": "received, bytes/s",
    "workers": "instances on the machine",
}
HOT_PERCENT = 80.0
_CURVE = np.linspace(0, 1, 101)
_NOTES = (
    "Each machine counts once: its metrics are means over the samples taken there, weighed by how long each lasted.",
    "A machine is hot where its mean CPU is busy over 80 % of the time.",
)


def machine_means(usage: Any) -> pl.DataFrame:
    """Return the mean of each metric on each machine, weighed by the length of the samples; `samples` of it."""
    rows = lazy(usage).filter((nw.col("scope") == "node") & ~nw.col("node_id").is_null())
    length = (nw.col("end_time") - nw.col("start_time")).clip(1.0, None)
    rows = rows.select("node_id", *METRICS, _weight=nw.coalesce(length, nw.lit(1.0)))
    weighed = rows.with_columns(
        **{f"_w_{m}": nw.when(~nw.col(m).is_null()).then(nw.col("_weight")) for m in METRICS},
        **{m: nw.col(m) * nw.col("_weight") for m in METRICS},
    )
    sums = [nw.col(c).sum().alias(c) for m in METRICS for c in (m, f"_w_{m}")]
    found = aggregate(weighed, ["node_id"], nw.len().alias("samples"), *sums)
    means = [pl.when(pl.col(f"_w_{m}") > 0).then(pl.col(m) / pl.col(f"_w_{m}")).alias(m) for m in METRICS]
    return found.select("node_id", "samples", *means)


def machine_curves(means: pl.DataFrame) -> pl.DataFrame:
    """Return quantiles over machines of each metric that is known: `metric`, `share` (probability), `value`."""
    parts = []
    for metric in METRICS:
        values = means[metric].drop_nulls().sort()
        if values.len() > 1:
            quantiles = np.quantile(values.to_numpy(), _CURVE)
            parts.append(pl.DataFrame({"metric": [metric] * _CURVE.size, "share": _CURVE, "value": quantiles}))
    return pl.concat(parts) if parts else pl.DataFrame()


def placements(instances: Any, window: Window) -> pl.DataFrame:
    """Return what each machine ran: `instances`, and `instance_hours` in the window.

    Those alive at the end count until then; of others without an end the hours are not known.
    """
    rows = lazy(instances).filter(~nw.col("node_id").is_null())
    end = nw.coalesce(nw.col("end_time"), nw.when(nw.col("is_running")).then(nw.lit(window.last)))
    within = end.clip(window.begin, window.until) - nw.col("start_time").clip(window.begin, window.until)
    rows = rows.with_columns(_held=within.clip(0.0, None) / HOUR)
    found = aggregate(rows, ["node_id"], nw.len().alias("instances"), nw.col("_held").sum().alias("instance_hours"))
    return found.sort(["instance_hours", "node_id"], descending=[True, False])


def machines(usage: Any | None, instances: Any | None, window: Window) -> Topic | None:
    """Return how machines stood; None where the trace has nothing on them."""
    tables: dict[str, pl.DataFrame] = {}
    if usage is not None:
        means = machine_means(usage)
        if not means.is_empty():
            tables |= {"machines": means, "curves": machine_curves(means)}
    if instances is not None:
        placed = placements(instances, window)
        if placed.height > 1:
            tables["placements"] = placed
    tables = {name: table for name, table in tables.items() if not table.is_empty()}
    if not tables:
        return None
    return Topic(
        "machines", "Machines", tables, (*_metric_remarks(tables), *_placement_remarks(tables, window.seconds)), _NOTES
    )


def _metric_remarks(tables: dict[str, pl.DataFrame]) -> list[Remark]:
    if "machines" not in tables:
        return []
    means, remarks = tables["machines"], []
    cpu = means["cpu_percent"].drop_nulls()
    if cpu.len() > 1:
        hot = float((cpu > HOT_PERCENT).mean())  # type: ignore[arg-type]
        text = f"Over {means.height:,} machines CPU is busy {_mean(cpu):.1f} % of the time; {share(hot)} run hot "
        top = float(cpu.max())  # type: ignore[arg-type]
        remarks.append(Remark(f"{text}(over {HOT_PERCENT:.0f} %), and the busiest stands at {top:.1f} %."))
    wait, kernel, user = (means[f"cpu_{k}_percent"].drop_nulls() for k in ("iowait", "kernel", "user"))
    if wait.len() > 1 and user.len() > 1:
        p99 = float(wait.quantile(0.99, "linear") or 0.0)
        verdict = "disks do not hold the machines up" if p99 < 5 else "on some machines disks hold the work up"
        text = (
            f"Waiting for I/O takes {_mean(wait):.2f} % of CPU time on the mean machine and {p99:.2f} % on the worst 1 % "
            f"({_mean(user):.1f} % is user, {_mean(kernel):.1f} % kernel mode): {verdict}."
        )
        remarks.append(Remark(text))
    return remarks


def _mean(values: pl.Series) -> float:
    return float(values.mean() or 0.0)  # type: ignore[arg-type]


def _placement_remarks(tables: dict[str, pl.DataFrame], span: float) -> list[Remark]:
    if "placements" not in tables or span <= 0:
        return []
    placed = tables["placements"]
    total, count = float(placed["instance_hours"].sum()), int(placed["instances"].sum())
    at_a_time = total / (span / HOUR) / placed.height
    some = f"{at_a_time:,.1f}" if at_a_time >= 0.05 else "fewer than 0.1"
    text = f"{placed.height:,} machines ran {count:,} instances, {some} at a time on each on average"
    if total > 0 and placed.height >= 100:
        top = max(round(placed.height / 100), 1)
        held = float(placed["instance_hours"].head(top).sum()) / total
        text += f"; the fullest 1 % of machines ({top:,}) hold {share(held)} of instance-hours"
    return [Remark(f"{text}.")]
