"""Small traces and series made by hand."""

from __future__ import annotations

import numpy as np
import polars as pl

from gputwin.forecasting.series import DemandSeries, Target
from gputwin.traces.dataset import Trace, TraceMeta


def trace_of(rows: list[dict], table: str = "tasks", **meta) -> Trace:
    return Trace.from_frames({table: pl.DataFrame(rows, infer_schema_length=None)}, TraceMeta("made", **meta))


def task(job: str, submit=None, end=None, cpu=1, running=None, application="a", role="main", **more) -> dict:
    return {
        "job_id": job,
        "role": role,
        "application": application,
        "submit_time": submit,
        "start_time": submit,
        "end_time": end,
        "is_running": end is None if running is None else running,
        "was_running": submit is None,
        "cpu_milli": cpu * 1000,
        **more,
    }


def series_of(*columns, bin_seconds=300.0, target=Target.ARRIVALS, **more) -> DemandSeries:
    values = np.stack([np.asarray(c, dtype=np.float64) for c in columns], axis=1)
    names = tuple(f"s{j}" for j in range(values.shape[1]))
    return DemandSeries(target, names, ("",) * len(names), values, bin_seconds, **more)


def daily_wave(days=12, per_day=24, seed=0, noise=0.3, level=5.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    at = np.arange(days * per_day)
    return np.maximum(level + 3 * np.sin(2 * np.pi * at / per_day) + noise * rng.normal(size=len(at)), 0)


def service_trace(days=4, seed=0) -> Trace:
    """Two applications that roll out now and then: new replicas first, the old ones go half an hour later."""
    rng = np.random.default_rng(seed)
    rows = []
    for a, (application, count) in enumerate((("web", 20), ("rank", 8))):
        alive = [(f"{application}-old{k}", None) for k in range(count)]
        for roll in range(days * 4):
            at = roll * 21_600 + a * 5_000 + float(rng.uniform(0, 3_600))
            fresh = [(f"{application}-{roll}-{k}", at + 60.0 * k) for k in range(count)]
            rows += [
                task(n, s, at + 1_800 + 30.0 * k, 2 + a, application=application) for k, (n, s) in enumerate(alive)
            ]
            alive = fresh
        rows += [task(n, s, None, 2 + a, application=application) for n, s in alive]
    return trace_of(rows)
