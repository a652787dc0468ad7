"""When will each pending job start, and what does it wait for: from the state at one time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.display import Shown
from gputwin.core.errors import UserError
from gputwin.core.units import DAY, HOUR, WHOLE_GPU_MILLI, format_duration, short_duration
from gputwin.profiling.alignment import align
from gputwin.profiling.jobs import Floats, Submitted
from gputwin.profiling.store import Saved
from gputwin.simulation.cause_words import CAUSE_WORDS
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.engine.attribution.causes import CAUSE_NAMES
from gputwin.simulation.scenario import Scenario
from gputwin.simulation.simulate import simulate_scenario
from gputwin.studies.eta.ahead import Future, Rules, check
from gputwin.studies.eta.backtest import moments_of
from gputwin.studies.eta.calibration import calibrated
from gputwin.studies.eta.durations import Durations, learned, limits_hold
from gputwin.studies.eta.points import HELD, STATES, Points, points_at, points_of
from gputwin.studies.eta.record import Record
from gputwin.traces.dataset import Trace
from gputwin.traces.lifetimes import observed
from gputwin.traces.slicing import before

MOST_ARRIVALS = 2_000_000
"""Later arrivals that one command simulates, in all futures together; with more, they come for a shorter time."""
BACKTEST_DRAWS = 20
SOON_SECONDS = 1.0
_SHOWN_HOLDERS = 3


@dataclass(frozen=True, repr=False)
class Estimate(Shown):
    """`frame` has one row per pending job, in order of submission, with s from `at` on.

    `low_seconds`, `median_seconds` and `high_seconds` are its start with an 80 % interval, `simulated_…` the same as the
    simulation says it before calibration; null where nobody can say. `why` is in words, `holders` are the jobs that hold
    most of what it could use while it waits.
    """

    at: float
    running: int
    frame: pl.DataFrame
    calibration_points: int
    """Earlier pending jobs on whose waits intervals are calibrated."""
    arrivals_seconds: float
    notes: tuple[str, ...] = ()

    def _title(self) -> str:
        return f"Starts of {self.frame.height:,} pending jobs"

    def _lines(self) -> list[str]:
        return [verdict(self)]

    def to_json(self) -> dict[str, Any]:
        """Return the estimate as plain data."""
        return {
            "at_seconds": self.at,
            "running_jobs": self.running,
            "pending_jobs": self.frame.height,
            "calibration_points": self.calibration_points,
            "arrivals_seconds": self.arrivals_seconds,
            "notes": list(self.notes),
            "jobs": self.frame.to_dicts(),
        }


def rules_of(record: Record, scenario: Scenario, cluster: Cluster, draws: int, futures: int, arrivals: bool) -> Rules:
    """Return how to look ahead: `futures` in all, each with arrivals for up to a day."""
    check(scenario)
    span = max(record.last - record.first, DAY)
    per_second = record.size / span
    horizon = min(DAY, MOST_ARRIVALS / max(futures, 1) / max(per_second, 1e-9)) if arrivals else 0.0
    believes = bool((~np.isnan(record.limit)).any())
    return Rules(scenario.scheduler, cluster, draws, horizon, believes, scenario.seed)


def estimate(
    trace: Trace,
    scenario: Scenario,
    cluster: Cluster,
    at: float | None = None,
    *,
    draws: int = 100,
    calibrate: int = 200,
    arrivals: bool = True,
    profile: Saved | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Estimate:
    """Return when each job that waits at `at` (the trace's end where not given) starts, from what was known then.

    `calibrate` is how many earlier moments intervals are calibrated on; `profile` a saved duration model that stands in
    for one learned from the trace.
    """
    if at is not None and at > (last := observed(trace.tasks).last):
        raise UserError(
            f"--at is {short_duration(at)} after the trace's time zero, and its last event {short_duration(last)}: "
            "nothing is known of who waits then"
        )
    part = trace if at is None else before(trace, at)
    record = Record.of(part, cluster, scenario.share)
    now = record.last if at is None else at
    moment = record.moment(now)
    durations, notes = _durations(part, record, now, profile, scenario.seed)
    earlier = None
    if calibrate and moment.pending.size:
        progress("calibrating on earlier waits")
        rules = rules_of(record, scenario, cluster, BACKTEST_DRAWS, calibrate * BACKTEST_DRAWS, arrivals)
        moments = [m for m in moments_of(record, calibrate, now) if m.pending.size and record.ended_by(m.at).any()]
        earlier = points_of(record, moments, rules, durations if profile is not None else None) if moments else None
    progress("simulating ahead")
    rules = rules_of(record, scenario, cluster, draws, draws, arrivals)
    ((points, future),) = points_at(record, [moment], durations, rules, explained=True)
    frame, count = _frame(record, points, future, earlier)
    return Estimate(now, moment.running.size, frame, count, rules.horizon, notes)


def _durations(
    trace: Trace, record: Record, at: float, profile: Saved | None, seed: int
) -> tuple[Durations, tuple[str, ...]]:
    if profile is None:
        return learned(record, at, seed=seed), ()
    aligned = align(profile.recording, trace)
    profile.check(Submitted.of(record.tasks))
    notes = () if aligned.assumption is None else (aligned.assumption,)
    return Durations(profile.model, limits_hold(record, at), aligned.shift_seconds), notes


def _frame(record: Record, points: Points, future: Future, earlier: Points | None) -> tuple[pl.DataFrame, int]:
    """Return the rows of the estimate, and on how many points intervals are calibrated."""
    quantiles, count = points.simulated, 0
    if earlier is not None and points.size:
        found = calibrated(Points.together([earlier, points]))[earlier.size :]
        is_known = ~np.asarray(np.isnan(found).any(axis=1))
        quantiles = np.where(is_known[:, None], found, quantiles)
        count = earlier.size if is_known.any() else 0
    workload = record.workload
    jobs = workload.jobs[points.job]
    names = workload.job_ids.gather(points.job)
    reasons = [_why(record, points, future, k) for k in range(points.size)]
    frame = pl.DataFrame(
        {
            "job_id": names,
            "tenant": pl.Series(workload.tenants, dtype=pl.String).gather(jobs["tenant"]),
            "gpus": jobs["gpu_milli"] / WHOLE_GPU_MILLI,
            "instances": points.instances.astype(np.int64),
            "state": pl.Series([STATES[s] for s in points.state], dtype=pl.String),
            "waited_seconds": points.waited,
            **{f"{end}_seconds": quantiles[:, k] for k, end in enumerate(("low", "median", "high"))},
            **{f"simulated_{end}_seconds": points.simulated[:, k] for k, end in enumerate(("low", "median", "high"))},
            "cause": pl.Series([cause for cause, _, _ in reasons], dtype=pl.String),
            "why": pl.Series([why for _, why, _ in reasons], dtype=pl.String),
            "holders": pl.Series(
                [holders for _, _, holders in reasons],
                dtype=pl.List(pl.Struct({"job_id": pl.String, "gpus": pl.Float64, "gpu_hours": pl.Float64})),
            ),
        }
    )
    order = np.lexsort((points.job, record.submit[points.job]))
    return frame.with_columns(pl.col(pl.Float64).fill_nan(None))[order], count


def _why(record: Record, points: Points, future: Future, k: int) -> tuple[str, str, list[dict[str, Any]]]:
    """Return the dominant cause, the reason in words, and who holds most of what the job could use."""
    if points.state[k] == HELD:
        count = int(points.overtaken[k])
        jobs = "a job that asks" if count == 1 else f"{count:,} jobs that ask"
        return "held", f"held by something the trace does not show: {jobs} for no less came later and started", []
    if np.isnan(future.wait[k]).all():
        return "never_fits", "never fits this cluster", []
    causes = future.causes[k]
    if np.nanmedian(future.wait[k]) <= SOON_SECONDS or causes.sum() <= 0:
        return "none", "there is room for it: starts when the scheduler next looks", []
    cause = CAUSE_NAMES[int(causes.argmax())]
    holders = _holders(record, future, future.held[k])
    held = f"; job {holders[0]['job_id']} holds {holders[0]['gpus']:g} GPUs" if holders else ""
    return cause, f"waits {CAUSE_WORDS[cause]}{held}", holders


def _holders(record: Record, future: Future, held: Floats) -> list[dict[str, Any]]:
    largest = [int(j) for j in np.argsort(-held, kind="stable")[:_SHOWN_HOLDERS] if held[j] > 0]
    rows = future.moment.running[largest]
    return [
        {
            "job_id": record.workload.job_ids[int(row)],
            "gpus": float(record.workload.jobs["gpu_milli"][row]) / WHOLE_GPU_MILLI,
            "gpu_hours": float(held[j]) / HOUR,
        }
        for row, j in zip(rows, largest, strict=True)
    ]


def with_simulated_waits(trace: Trace, scenario: Scenario, cluster: Cluster) -> Trace:
    """Return the trace with the starts and ends that its jobs have in a run of the scenario; who never ran is left out."""
    check(scenario)
    result = simulate_scenario(scenario, trace, cluster)
    times = result.jobs.select("job_id", "submit_time", "start_time", "end_time").drop_nulls()
    if times.is_empty():
        raise UserError("no job of the trace starts on this cluster, so nobody waits")
    columns = [c for c in trace.tasks.columns if c not in ("submit_time", "start_time", "end_time")]
    tasks = trace.tasks.select(columns).join(times, on="job_id", how="inner", maintain_order="left")
    tasks = tasks.with_columns(
        (pl.col("end_time") - pl.col("start_time")).alias("duration_seconds"),
        pl.lit(False).alias("is_running"),
        pl.lit(False).alias("was_running"),
    )
    return Trace.from_frames({"tasks": tasks, "nodes": trace.nodes}, trace.meta)


def verdict(found: Estimate) -> str:
    """Return in a sentence when the pending jobs start."""
    frame = found.frame
    if frame.is_empty():
        return f"No job waits; {found.running:,} run."
    known = frame.drop_nulls("median_seconds")
    held = frame.filter(pl.col("cause") == "held").height
    text = f"{frame.height:,} jobs wait and {found.running:,} run."
    if known.height:
        soon = known.filter(pl.col("median_seconds") <= HOUR).height
        last = known.sort("median_seconds")[-1]
        text += (
            f" {soon:,} will probably start within an hour; the last, {last['job_id'][0]}, in about "
            f"{format_duration(last['median_seconds'][0])} (80 %: {format_duration(last['low_seconds'][0])} to "
            f"{format_duration(last['high_seconds'][0])})."
        )
    if held:
        text += f" {held:,} are held by something the trace does not show."
    if not found.calibration_points:
        text += " Intervals are the simulation's alone: no earlier waits to calibrate them on."
    return text
