"""In words: where theory, simulation and trace part, and which assumption does not hold there."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from gputwin.core.units import DAY, format_duration, percent
from gputwin.queueing.fit.offered import Offered
from gputwin.simulation.cluster import Cluster
from gputwin.studies.validation.assumption_steps import AssumptionStep
from gputwin.studies.validation.theory import Figures, Prediction

_FACTOR = 1.5
_SECONDS = 5.0
"""Waits that differ by less than this factor or by fewer seconds are as good as the same."""


def verdicts(
    jobs: Offered,
    cluster: Cluster,
    said: Sequence[Prediction],
    steps: Sequence[AssumptionStep],
    trace: Figures | None,
    *,
    is_generated: bool = False,
) -> tuple[str, ...]:
    """Return sentences: the load, the step where the wait jumps, what the data show there, and the trace's own part."""
    gpus = cluster.gpu_count
    own = _trace_against_simulation(steps[-1].figures, trace, is_generated)
    if jobs.load >= gpus:
        return (
            f"There is no steady state: jobs ask for {jobs.load:,.0f} GPUs on average and there are {gpus:,.0f}. "
            "Waits below are of a queue that grows as long as the trace lasts.",
            *own,
        )
    return (
        *_load(jobs, gpus),
        *_broken(jobs, cluster, said, steps),
        *_best(said, steps[-1].figures),
        *own,
    )


def _load(jobs: Offered, gpus: float) -> list[str]:
    said = f"Jobs ask for {jobs.load:,.1f} of {gpus:,.0f} GPUs on average ({percent(jobs.load / gpus, 1)})"
    if jobs.steady_load > 1.05 * jobs.load:
        said += (
            f"; {percent(1 - jobs.load / jobs.steady_load)} of their work lies beyond the end of the record, which is short "
            f"beside its longest jobs: were arrivals to go on, they would ask for {jobs.steady_load:,.0f}"
        )
        if jobs.steady_load >= gpus:
            said += ", and the queue would grow without end"
    return [said + "."]


def _broken(jobs: Offered, cluster: Cluster, said: Sequence[Prediction], steps: Sequence[AssumptionStep]) -> list[str]:
    """Return which assumptions of M/M/c matter, the one that moves the wait most first."""
    jumps = []
    for before, after in pairwise(steps):
        a, b = before.figures.mean_wait or 0.0, after.figures.mean_wait or 0.0
        # A step that is not drawn is one draw of what it stands for: it scatters no less than those before it.
        noise = 2 * (before.spread + max(before.spread, after.spread))
        if abs(b - a) > max(_SECONDS, noise) and max(a, b) > _FACTOR * min(a, b):
            jumps.append((abs(b - a), after, a, b))
    first = steps[0].figures.mean_wait or 0.0
    sentences = []
    theory = said[0].figures.mean_wait
    if theory is not None:
        sentences.append(_granted(theory, first, steps[0].spread))
    if not jumps:
        sentences.append("No assumption of M/M/c changes the simulated wait by much here: the simple model will do.")
        return sentences
    for place, (_, step, a, b) in enumerate(sorted(jumps, key=lambda jump: -jump[0])):
        lead = "The assumption that breaks theory is" if place == 0 else "It also matters"
        sentences.append(
            f"{lead} that {step.dropped}; without it the mean wait goes from {_s(a)} to {_s(b)}. "
            f"{_evidence(jobs, cluster, step.name)}"
        )
    return sentences


def _granted(theory: float, first: float, spread: float) -> str:
    """Return whether M/M/c is right where the simulation keeps all of its assumptions."""
    apart = abs(theory - first)
    if apart <= 0.25 * max(theory, first):
        return f"Where its assumptions hold, M/M/c is right: {_s(theory)} by theory, {_s(first)} simulated."
    if apart <= max(_SECONDS, 3 * spread):
        how = "no further apart than seeds scatter" if apart <= 3 * spread else "both next to nothing"
        return f"Where its assumptions hold, M/M/c gives {_s(theory)} and simulation {_s(first)}: {how}."
    return (
        f"Even with its assumptions granted, M/M/c's steady state ({_s(theory)}) is not what so short a record "
        f"shows ({_s(first)})."
    )


def _evidence(jobs: Offered, cluster: Cluster, step: str) -> str:
    arrivals = jobs.arrivals
    if step == "real run times":
        text = f"Run times have a squared variation of {jobs.run_scv:,.3g} where exponential ones have 1"
        if jobs.tail is not None and jobs.tail.heavy:
            text += (
                f", and a tail that falls as a power of {jobs.tail.index:.2f} from {_s(jobs.tail.start)} on: "
                "below 2 the variance is that of the longest job seen, and formulas that use it are of no use"
            )
        return text + "."
    if step == "real sizes":
        largest = float(jobs.gpus.max())
        return f"Jobs take {jobs.gpus.mean():.2g} GPUs on average and up to {largest:,.0f} at once."
    if step == "real arrivals":
        text = (
            f"Arrivals per {_s(jobs.mean_run)} (the mean run time) vary {arrivals.dispersion_at(jobs.mean_run):,.3g} "
            "times as much as Poisson ones"
        )
        if arrivals.hourly.size:
            quiet, busy = float(arrivals.hourly.min()), float(arrivals.hourly.max())
            text += (
                f", and the busiest hour of the day brings {busy * 3600:,.1f} jobs, the quietest {quiet * 3600:,.1f}"
            )
        return text + "."
    reasons = ["spread over more nodes than a job may use"]
    if any(g.cpu_milli is not None or g.memory_mib is not None for g in cluster.groups):
        reasons.insert(0, "on nodes short of CPU or memory")
    if len(cluster.gpus_by_model()) > 1:
        reasons.insert(0, "of the wrong model")
    return f"Free GPUs are {', or '.join(reasons)}; gputwin simulate splits each wait by these causes."


def _best(said: Sequence[Prediction], simulation: Figures) -> list[str]:
    """Return which model came nearest to the simulated mean wait, and how near."""
    target = simulation.mean_wait
    able = [(p, p.figures.mean_wait) for p in said if p.figures.mean_wait is not None]
    if target is None or not able:
        return []
    nearest, value = min(able, key=lambda pair: abs((pair[1] or 0.0) - target))
    if value is None:
        return []
    if abs(value - target) <= max(_SECONDS, 0.2 * target):
        return [f"The nearest model is {nearest.model}: {_s(value)} against {_s(target)} simulated."]
    ratio = max(value, target) / max(min(value, target), 1e-9)
    by = f"{ratio:,.1f} times" if ratio < 1e4 else "thousands of times"
    side = "too short" if value < target else "too long"
    if ratio <= 2:
        return [f"The nearest model, {nearest.model}, is {by} {side}: {_s(value)} against {_s(target)} simulated."]
    return [
        f"No model comes near the simulation: the nearest, {nearest.model}, is {by} {side} "
        f"({_s(value)} against {_s(target)}). Plan by simulation here."
    ]


def _trace_against_simulation(simulation: Figures, trace: Figures | None, is_generated: bool) -> list[str]:
    if trace is None or trace.mean_wait is None:
        return ["The trace does not say when jobs started, so it has no waits of its own to compare with."]
    ours = simulation.mean_wait or 0.0
    theirs = trace.mean_wait
    if is_generated:
        return [
            f"The trace is generated: its waits ({_s(theirs)} on average) are drawn to look like those published, and come "
            f"from no scheduler on this cluster; {_s(ours)} in simulation is not to be held against them."
        ]
    if abs(ours - theirs) <= max(_SECONDS, 0.25 * theirs):
        return [f"Simulation and trace agree on the mean wait: {_s(ours)} and {_s(theirs)}."]
    text = f"The trace's jobs waited {_s(theirs)} on average, {_s(ours)} in simulation"
    if theirs > ours:
        text += (
            ": what made them wait is not in the trace (limits per user or project, reservations, outages, "
            "staged data, another size of the cluster then)"
        )
        if theirs > DAY / 24 and (trace.p95_wait or 0.0) < theirs:
            text += "; a few very long waits make up the mean, since 95 % waited less than it"
    else:
        text += ": the real scheduler did better than these rules, or the cluster was larger than the one given"
    return [text + "."]


def _s(seconds: float) -> str:
    return format_duration(seconds) if seconds >= 1e-3 else "0 s"
