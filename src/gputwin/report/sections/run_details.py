"""What else is known of a run: outcomes and the cluster, where jobs' time went, goodput, stops, energy."""

from __future__ import annotations

from typing import Any

from gputwin.analysis.words import share
from gputwin.core.units import format_duration, percent
from gputwin.report.page import Kind, Prose, TablePart
from gputwin.simulation.completion import mean_parts
from gputwin.simulation.goodput import PARTS
from gputwin.simulation.result import SimulationResult
from gputwin.simulation.waits_by_tenant import owner_of

_RESOURCES = {"gpu": "GPUs", "cpu": "CPU", "rdma": "RDMA"}
_ENERGY = {"servers": "servers_kwh", "GPUs idle": "idle_gpus_kwh", "contexts": "contexts_kwh", "load": "load_kwh"}


def details_parts(result: SimulationResult) -> list[TablePart | Prose]:
    """Return the run's outcomes and use of the cluster, then what interrupted its jobs and what it drew, where known."""
    summary = result.summary
    cluster = _cluster(summary, owner_of(result))
    return [cluster, *_times(summary), *_goodput(summary), *_stops(summary), *_energy(summary)]


def _cluster(s: dict[str, Any], who: str) -> TablePart:
    rows = [("outcomes", ", ".join(f"{k.replace('_', ' ')} {v:,}" for k, v in s["outcomes"].items()))]
    rows += [("makespan", format_duration(s["makespan_seconds"]))]
    rows += [(f"{_resource(k)} allocated", share(v)) for k, v in s["allocation"].items() if k != "gpu_unnamed"]
    rows += [("GPUs lost to fragmentation", share(s["fragmentation"]))]
    rows += [(f"{_resource(k)} allocated but unused", percent(v, 1)) for k, v in (s["unused_allocation"] or {}).items()]
    for key, label in (
        ("jain_fairness", f"fairness between {who}s (1: equal)"),
        ("load_balance", "load balance"),
        ("throughput_jobs_per_hour", "jobs per hour"),
    ):
        if s[key] is not None:
            rows.append((label, f"{s[key]:,.3f}"))
    if s["sla_violations"] is not None:
        rows.append(("jobs over the SLA", f"{s['sla_violations']:,}"))
    return TablePart("Cluster", {"what": Kind.TEXT, "value": Kind.NUMBER}, tuple(rows))


def _resource(name: str) -> str:
    """Return a resource as people say it: "GPUs", "GPUs of V100", "CPU"."""
    model = name.removeprefix("gpu_")
    return _RESOURCES.get(name) or (f"GPUs of {model}" if name.startswith("gpu_") else name.replace("_", " "))


def _times(summary: dict[str, Any]) -> list[TablePart]:
    rows = mean_parts(summary)
    if not rows:
        return []
    kinds = {"part": Kind.TEXT, "mean per finished job": Kind.NUMBER, "share": Kind.NUMBER}
    return [TablePart("Where the time from submission to end went", kinds, tuple(rows))]


def _goodput(summary: dict[str, Any]) -> list[TablePart]:
    """Return what became of the GPU-hours held, where not all were useful."""
    goodput = summary.get("goodput")
    if not goodput or goodput["goodput"] is None:
        return []
    hours = {name: goodput[f"{name}_gpu_hours"] for name in PARTS}
    held = max(sum(max(value, 0.0) for value in hours.values()), 1e-12)
    rows = tuple((PARTS[name], f"{value:,.1f}", percent(value / held, 1)) for name, value in hours.items() if value)
    return [TablePart("Goodput: GPU-hours held", _parts_of("GPU-hours"), rows)]


def _stops(summary: dict[str, Any]) -> list[Prose]:
    found = []
    writers, stops = summary.get("checkpoint_writers"), summary.get("stops")
    if writers and writers["saves"]:
        found.append(
            f"Checkpoints: {writers['saves']:,.0f} saves; at most {writers['peak']:,.0f} jobs save at the same time, "
            f"{writers['mean']:.1f} on average while any does."
        )
    if stops:
        found.append("Stops: " + ", ".join(f"{why} {count:,}" for why, count in stops.items()) + ".")
    ratio = summary.get("effective_training_time_ratio")
    if stops and ratio is not None:
        found.append(f"Effective training time: {percent(ratio, 1)} of the GPU time that finished jobs held.")
    return [Prose(text) for text in found]


def _energy(summary: dict[str, Any]) -> list[TablePart | Prose]:
    """Return what drew how much."""
    power = summary.get("power")
    if not power:
        return []
    total = max(power["energy_kwh"], 1e-12)
    rows = tuple((name, f"{power[key]:,.1f}", percent(power[key] / total, 1)) for name, key in _ENERGY.items())
    kwh, kilowatts, carbon = power["energy_kwh"], power["mean_watts"] / 1000, power["carbon_kg"]
    whole = f"{kwh:,.1f} kWh, {kilowatts:,.1f} kW on average, {carbon:,.1f} kg CO2."
    assumed = ", ".join(power["assumed_gpu_models"])
    about = [Prose(f"The draw of these GPU models is assumed: {assumed}.")] if assumed else []
    return [TablePart("Energy, kWh", _parts_of("kWh"), rows), Prose(whole), *about]


def _parts_of(unit: str) -> dict[str, Kind]:
    return {"part": Kind.TEXT, unit: Kind.NUMBER, "share": Kind.NUMBER}
