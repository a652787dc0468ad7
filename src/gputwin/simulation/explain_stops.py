"""Who took a job's place and whose place it took, and which quota held it back: what `explain` says of rules."""

from __future__ import annotations

from typing import Any

import polars as pl

from gputwin.core.units import format_duration
from gputwin.simulation.engine.state.records import WHOLE
from gputwin.simulation.explain_preemption import why_preempted
from gputwin.simulation.result import SimulationResult

_SHOWN = 5
_STOPS = ("preempted", "failed", "drained")


def stops_of(result: SimulationResult, row: int) -> list[dict[str, Any]]:
    """Return when and why the job in this row was stopped, and the job that took its place, if one did."""
    found = _segments(result).filter((pl.col("job") == row) & pl.col("why").is_in(_STOPS))
    job = result.jobs.row(row, named=True)
    return [{**_told(result, s, "by"), "reason": _reason(result, job, s)} for s in found.sort("end_time").to_dicts()]


def _reason(result: SimulationResult, job: dict[str, Any], stop: dict[str, Any]) -> str:
    if stop["why"] != "preempted":
        return ""
    winner = None if stop["by"] is None else result.jobs.row(int(stop["by"]), named=True)
    return why_preempted(result, job, winner)


def displaced_by(result: SimulationResult, row: int) -> list[dict[str, Any]]:
    """Return the running jobs whose place the job in this row took, and when."""
    found = _segments(result).filter(pl.col("by") == row)
    return [_told(result, segment, "job") for segment in found.sort("end_time").to_dicts()]


def sizes_of(result: SimulationResult, row: int) -> list[dict[str, float]]:
    """Return on how many GPUs the job in this row ran, from when and for how long; nothing where it kept one size."""
    milli = (pl.col("gpu_count") * pl.col("gpu_milli")).sum().alias("milli")
    held = result.placements.filter(pl.col("job") == row).group_by("segment").agg(milli)
    segments = result.segments.with_row_index("segment").join(held, on="segment").sort("start_time")
    found: list[dict[str, float]] = []
    for start, end, gpus in segments.select("start_time", "end_time", pl.col("milli") / WHOLE).iter_rows():
        if not found or found[-1]["gpus"] != gpus:
            found.append({"time": start, "gpus": gpus, "seconds": 0.0})
        found[-1]["seconds"] += end - start
    return found if len(found) > 1 else []


def size_lines(sizes: list[dict[str, float]]) -> list[str]:
    """Return a sentence about them."""
    if not sizes:
        return []
    parts = [f"{s['gpus']:g} for {format_duration(s['seconds'])}" for s in sizes[:_SHOWN]]
    more = f", and {len(sizes) - _SHOWN} more sizes" if len(sizes) > _SHOWN else ""
    return [f"It was resized: GPUs held were {', then '.join(parts)}{more}."]


def quota_of(result: SimulationResult, tenant: str, submit: float) -> dict[str, float] | None:
    """Return the GPUs a tenant may hold at most, and held when a job was submitted; None where there is no quota."""
    fairness = result.scenario.fairness if "scenario" in result.manifest else None
    if fairness is None or fairness.policy.name != "quota":
        return None
    given, terms = fairness.policy.parameters, fairness.tenants.get(tenant)
    gpus = given.get("gpus", float("inf")) if terms is None or terms.gpus is None else terms.gpus
    limit = min(gpus, given.get("share", 1.0) * float(result.nodes["gpu_count"].sum()))
    jobs = result.jobs.select(pl.int_range(pl.len(), dtype=pl.UInt32).alias("job"), "tenant", "gpu_milli")
    held = result.segments.filter((pl.col("start_time") <= submit) & (pl.col("end_time") > submit)).join(
        jobs.filter(pl.col("tenant") == tenant), on="job"
    )
    return {"gpus_at_most": limit, "gpus_held_at_submission": float(held["gpu_milli"].sum()) / WHOLE}


def stop_lines(stops: list[dict[str, Any]], displaced: list[dict[str, Any]]) -> list[str]:
    """Return sentences about them."""
    lines = []
    if stops:
        times = "once" if len(stops) == 1 else f"{len(stops):,} times"
        parts = [_sentence(s) for s in stops[:_SHOWN]]
        more = f"; and {len(stops) - _SHOWN:,} more" if len(stops) > _SHOWN else ""
        lines.append(f"It was stopped {times}: {'; '.join(parts)}{more}.")
        # What no other job caused is said once.
        if reason := next((s["reason"] for s in stops if s["reason"] and not s["job_id"]), ""):
            lines.append(f"It was preempted {reason}.")
    if displaced:
        names = ", ".join(f"{d['job_id']} ({d['tenant']})" for d in displaced[:_SHOWN])
        more = f" and {len(displaced) - _SHOWN} more" if len(displaced) > _SHOWN else ""
        lines.append(f"It took the place of {names}{more}.")
    return lines


def _sentence(stop: dict[str, Any]) -> str:
    when = f"{stop['why']} after {format_duration(stop['ran_seconds'])}"
    if stop["job_id"]:
        when = f"{when} by job {stop['job_id']} ({stop['tenant']})"
        return f"{when}, {stop['reason']}" if stop["reason"] else when
    return when


def _segments(result: SimulationResult) -> pl.DataFrame:
    frame = result.segments.with_columns(pl.col("why").cast(pl.String))
    return frame if "by" in frame.columns else frame.with_columns(pl.lit(None, pl.UInt32).alias("by"))


def _told(result: SimulationResult, segment: dict[str, Any], who: str) -> dict[str, Any]:
    other = segment[who]
    job = {} if other is None else result.jobs.row(int(other), named=True)
    return {
        "time": segment["end_time"],
        "why": segment["why"],
        "ran_seconds": segment["end_time"] - segment["start_time"],
        "job_id": job.get("job_id"),
        "tenant": job.get("tenant"),
    }
