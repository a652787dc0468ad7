"""Model serving: rate, latency, queue, cold starts, GPU duty, and how they move together."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from gputwin.analysis.arrivals import burstiness, interarrival
from gputwin.analysis.frames import Frame, aggregate, collect, lazy
from gputwin.analysis.spread import spread, tail_bound
from gputwin.analysis.topic import Remark, Topic
from gputwin.analysis.words import duration, metric, share, times
from gputwin.core.units import MINUTE

LATENCY_BY = {
    "model": "base model",
    "kind": "kind of request",
    "adapters": "adapters applied",
    "images": "images asked for",
    "inference_steps": "inference steps",
}
LOAD_SUFFIX = "_load_ms"
DUTY = "gpu_duty_percent"
BIN_SECONDS = 5 * MINUTE
_FEWEST_BINS = 20
_FEWEST_SAMPLES = 30
EVEN_CV, BURSTY_CV = 0.7, 1.5
"""Gaps between arrivals whose CV is below the first are even, above the second bursty."""
_STEP_BOUNDS = (10, 20, 30, 50)
_STEP_LABELS = ("≤10", "11–20", "21–30", "31–50", ">50")
_USAGE = {
    "gpu_milli": (DUTY, 10.0),
    "gpu_memory_mib": ("gpu_memory_gib", 1024.0),
    "memory_percent": ("memory_percent", 1.0),
}
_NOTES = (
    "Correlations are Spearman's, of means over bins of five minutes: first over each container, then over containers, so "
    "that each counts once. Neighbouring bins are alike, so that a correlation of a few tenths may be chance.",
    "Cold start is the time to load a pipeline, a base model, an adapter or a control net, as the containers report it.",
    "GPU duty is the share of time a container's GPU computes; a sample under 5 % counts as idle.",
)


def latency_by(requests: Frame) -> pl.DataFrame:
    """Return time to serve, s, by model, kind, adapters, images and steps: `dimension`, `group`, the spread."""
    frame = requests.with_columns(inference_steps=_step_class())
    bound = tail_bound(frame, "duration_seconds")
    parts = []
    for column in LATENCY_BY:
        found = spread(frame, "duration_seconds", [column], tail_above=bound)
        if found.height < 2:
            continue
        names = [_STEP_LABELS[v] if column == "inference_steps" else str(v) for v in found[column]]
        found = found.drop(column).select(pl.lit(column).alias("dimension"), pl.Series("group", names), pl.all())
        parts.append(found)
    return pl.concat(parts) if parts else pl.DataFrame()


def _step_class() -> nw.Expr:
    total = (nw.col("inference_steps") > _STEP_BOUNDS[0]).cast(nw.Int64)
    for bound in _STEP_BOUNDS[1:]:
        total = total + (nw.col("inference_steps") > bound).cast(nw.Int64)
    return total


def metric_samples(series: Any, usage: Any | None) -> Frame:
    """Return samples of all serving metrics in one long frame: `metric`, `entity`, `time` s, `value`."""
    parts = [lazy(series).select("metric", "entity", "time", "value")]
    if usage is not None:
        rows = lazy(usage).filter(nw.col("scope") == "instance")
        for column, (name, size) in _USAGE.items():
            value = nw.col(column) / size
            part = rows.select(
                metric=nw.lit(name), entity=nw.col("instance_id"), time=nw.col("start_time"), value=value
            )
            parts.append(part.filter(~nw.col("value").is_null() & ~nw.col("time").is_null()))
    return nw.concat(parts, how="vertical")


def metric_spread(samples: Frame) -> pl.DataFrame:
    """Return the spread of each metric in its own unit, most samples first, with the number of `entities`."""
    found = spread(samples, "value", ["metric"])
    entities = aggregate(samples, ["metric"], nw.col("entity").n_unique().alias("entities"))
    return found.join(entities, on="metric").sort(["count", "metric"], descending=[True, False])


def metric_bins(samples: Frame) -> pl.DataFrame:
    """Return each metric's mean per bin of five minutes over containers, each counted once: wide, one row per `bin`."""
    binned = samples.filter(~nw.col("value").is_null())
    binned = binned.with_columns(bin=(nw.col("time") / BIN_SECONDS).floor().cast(nw.Int64))
    own = binned.group_by("metric", "bin", "entity").agg(nw.col("value").mean())
    means = collect(own.group_by("metric", "bin").agg(nw.col("value").mean()), ["metric", "bin"])
    return means.pivot("metric", index="bin", values="value").sort("bin")


def correlations(bins: pl.DataFrame) -> pl.DataFrame:
    """Return Spearman's correlation of each two metrics over the bins both have: `first`, `second`, `rho`, `bins`."""
    names = [c for c in bins.columns if c != "bin"]
    rows = []
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            both = bins.select(first, second).drop_nulls()
            if both.height < _FEWEST_BINS or both[first].n_unique() < 2 or both[second].n_unique() < 2:
                continue
            ranks = both.select(pl.all().rank("average")).to_numpy()
            rho = float(np.corrcoef(ranks, rowvar=False)[0, 1])
            rows.append({"first": first, "second": second, "rho": rho, "bins": both.height})
    return pl.DataFrame(rows, infer_schema_length=None)


def serving(requests: Any | None, series: Any | None, usage: Any | None) -> Topic | None:
    """Return how requests were served; None where the trace has no requests and no serving metrics."""
    tables: dict[str, pl.DataFrame] = {}
    if requests is not None:
        frame = lazy(requests)
        bound = tail_bound(frame, "duration_seconds")
        if bound is not None:
            tables["latency"] = spread(frame, "duration_seconds", tail_above=bound)
            tables["latency_by"] = latency_by(frame)
        tables["request_burstiness"] = burstiness(frame, "submit_time")
        tables["request_gaps"] = interarrival(frame, "submit_time")
    if series is not None:
        samples = metric_samples(series, usage)
        tables["metrics"] = metric_spread(samples)
        bins = metric_bins(samples)
        tables |= {"metric_bins": bins, "correlations": correlations(bins)}
        duty = spread_of_duty(samples)
        if duty is not None:
            tables["gpu_duty"] = duty
    tables = {name: table for name, table in tables.items() if not table.is_empty()}
    if not tables:
        return None
    return Topic("serving", "Serving", tables, _remarks(tables), _NOTES)


def spread_of_duty(samples: Frame) -> pl.DataFrame | None:
    """Return GPU duty over samples: mean, quantiles, `idle_share` under 5 %, and the spread of containers' means."""
    duty = samples.filter(nw.col("metric") == DUTY)
    own = aggregate(duty, ["entity"], nw.col("value").mean().alias("mean"), nw.len().alias("samples"))
    if own.is_empty():
        return None
    idle = aggregate(
        duty.with_columns(_idle=(nw.col("value") < 5).cast(nw.Float64)), (), nw.col("_idle").mean().alias("idle")
    )
    quantiles = {f"container_p{round(q * 100)}": own["mean"].quantile(q, "linear") for q in (0.05, 0.5, 0.95)}
    row = {"containers": own.height, "idle_share": idle["idle"][0], **quantiles}
    return pl.concat([spread(duty, "value").drop("total"), pl.DataFrame([row])], how="horizontal")


def _remarks(tables: dict[str, pl.DataFrame]) -> tuple[Remark, ...]:
    return (*_latency_remarks(tables), *_load_remarks(tables), *_duty_remarks(tables), *_correlation_remarks(tables))


def _latency_remarks(tables: dict[str, pl.DataFrame]) -> list[Remark]:
    remarks = []
    if "latency" in tables:
        r = tables["latency"].row(0, named=True)
        text = (
            f"{r['count']:,} requests have a known time to serve: {duration(r['mean'])} on average, {duration(r['p50'])} in "
            f"the median; the slowest 1 % take over {duration(r['p99'])}, {share(r['tail_share'])} of all serving time."
        )
        remarks.append(Remark(text))
    if "latency_by" in tables:
        by = tables["latency_by"].filter((pl.col("dimension") == "adapters") & (pl.col("count") >= _FEWEST_SAMPLES))
        if by.height > 1:
            first, last = by.row(0, named=True), by.sort("mean").row(-1, named=True)
            if first["group"] != last["group"] and first["mean"] > 0:
                text = f"With {last['group']} adapters a request takes {duration(last['mean'])}, with {first['group']} "
                text += f"it takes {duration(first['mean'])}: {times(last['mean'] / first['mean'])} as long."
                remarks.append(Remark(text))
    if "request_gaps" in tables:
        gaps = tables["request_gaps"].row(0, named=True)
        if gaps["cv"] is not None:
            independent = "as from many independent clients"
            how = "in bursts" if gaps["cv"] > BURSTY_CV else "evenly" if gaps["cv"] < EVEN_CV else independent
            text = f"Requests arrive {how}, {duration(gaps['mean'])} apart on average"
            remarks.append(Remark(f"{text} (the gaps spread {gaps['cv']:.1f} times as much as by chance alone)."))
    return remarks


def _load_remarks(tables: dict[str, pl.DataFrame]) -> list[Remark]:
    if "metrics" not in tables:
        return []
    rows = {r["metric"]: r for r in tables["metrics"].to_dicts()}
    loads = {name: r for name, r in rows.items() if name.endswith(LOAD_SUFFIX)}
    inference = next((rows[n] for n in ("pipeline_inference_ms", "model_predict_ms") if n in rows), None)
    if not loads:
        return []
    words = ", ".join(f"{_plain(name)} {r['mean'] / 1000:.1f} s" for name, r in loads.items())
    text = f"Cold starts take, on average: {words}"
    if inference is not None:
        worst = max(loads.values(), key=lambda r: r["mean"])
        ratio = times(worst["mean"] / inference["mean"])
        text += f". Loading a {_plain(worst['metric'])} costs {ratio} an inference ({inference['mean'] / 1000:.1f} s)"
    return [Remark(f"{text}.")]


def _plain(name: str) -> str:
    return metric(name.removesuffix(LOAD_SUFFIX))


def _duty_remarks(tables: dict[str, pl.DataFrame]) -> list[Remark]:
    if "gpu_duty" not in tables:
        return []
    d = tables["gpu_duty"].row(0, named=True)
    text = (
        f"GPUs compute {d['mean']:.1f} % of the time on average over {d['containers']:,} containers; "
        f"{share(d['idle_share'])} of samples are idle, while the busiest 5 % of containers are over "
        f"{d['container_p95']:.1f} %."
    )
    return [Remark(text, d["idle_share"] > 0.5)]


def _correlation_remarks(tables: dict[str, pl.DataFrame]) -> list[Remark]:
    if "correlations" not in tables:
        return []
    known = tables["correlations"].filter(pl.col("rho").abs() >= 0.5).sort(pl.col("rho").abs(), descending=True)
    if known.is_empty():
        strongest = tables["correlations"].sort(pl.col("rho").abs(), descending=True).row(0, named=True)
        return [
            Remark(
                f"No two metrics move closely together; the strongest is {metric(strongest['first'])} with "
                f"{metric(strongest['second'])} "
                f"(Spearman {strongest['rho']:+.2f} over {strongest['bins']:,} bins)."
            )
        ]
    words = "; ".join(
        f"{metric(r['first'])} with {metric(r['second'])} {r['rho']:+.2f}" for r in known.head(3).to_dicts()
    )
    return [Remark(f"Metrics that rise and fall together (1: always; -1: one falls as the other rises): {words}.")]
