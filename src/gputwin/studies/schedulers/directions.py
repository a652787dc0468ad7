"""What the literature says about one scheduler against another, and whether it holds in a run: computed, with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gputwin.core.units import HOUR, percent
from gputwin.studies.schedulers.contenders import BACKFILL, FAIRNESS, ORDER, PLACEMENT, PLANNER, PREEMPTION
from gputwin.studies.schedulers.measure import FIGURES, Floats, Measured, Names

HOLDS, NO_DIFFERENCE, FAILS = "holds", "no difference", "does not hold"
_NEGLIGIBLE = 0.01
"""Relative difference of two figures below which neither is better."""
_PER_JOB = ("mean_completion_hours", "p99_completion_hours", "mean_wait_hours", "p99_wait_hours", "mean_slowdown")


@dataclass(frozen=True)
class Direction:
    """A published claim: `figure` is lower (or higher) under `one` than under `other`."""

    family: str
    one: str
    other: str
    figure: str
    lower: bool
    source: str


DIRECTIONS = (
    Direction(ORDER, "sjf", "fifo", "mean_completion_hours", True, "Smith 1956; Weng et al. 2022"),
    Direction(ORDER, "sjf", "fifo", "p99_wait_hours", False, "long jobs starve: Silberschatz et al."),
    Direction(ORDER, "gpu-time", "sjf", "mean_completion_hours", True, "Gu et al. 2019, two-dimensional order"),
    Direction(BACKFILL, "easy", "strict", "mean_wait_hours", True, "Lifka 1995"),
    Direction(BACKFILL, "easy", "strict", "utilisation", False, "Lifka 1995"),
    Direction(BACKFILL, "easy", "conservative", "mean_wait_hours", True, "Mu'alem and Feitelson 2001"),
    Direction(BACKFILL, "conservative", "easy", "p99_wait_hours", True, "Srinivasan et al. 2002"),
    Direction(BACKFILL, "sjf+easy", "easy", "mean_wait_hours", True, "Tsafrir et al. 2007"),
    Direction(FAIRNESS, "drf", "fifo", "share_error", True, "Ghodsi et al. 2011"),
    Direction(FAIRNESS, "wfq", "fifo", "share_error", True, "Demers et al. 1989"),
    Direction(FAIRNESS, "fair-share", "fifo", "share_error", True, "Kay and Lauder 1988"),
    Direction(FAIRNESS, "drf", "fifo", "jain_fairness", False, "Ghodsi et al. 2011"),
    Direction(FAIRNESS, "wfq", "fifo", "jain_fairness", False, "Demers et al. 1989"),
    Direction(FAIRNESS, "fair-share", "fifo", "jain_fairness", False, "Kay and Lauder 1988"),
    Direction(FAIRNESS, "easy+drf", "easy", "share_error", True, "Ghodsi et al. 2011"),
    Direction(FAIRNESS, "quota-10", "fifo", "mean_completion_hours", False, "limits leave GPUs idle: Jeon et al. 2019"),
    Direction(FAIRNESS, "quota-10", "fifo", "utilisation", True, "limits leave GPUs idle: Jeon et al. 2019"),
    Direction(FAIRNESS, "quota-10", "quota-25", "share_error", True, "a limit bounds what others lose"),
    Direction(PLACEMENT, "fgd", "best-fit", "fragmentation", True, "Weng et al. 2023"),
    Direction(PLACEMENT, "fgd", "random", "mean_wait_hours", True, "Weng et al. 2023"),
    Direction(PLACEMENT, "best-fit", "worst-fit", "fragmentation", True, "Weng et al. 2023"),
    Direction(PLACEMENT, "best-fit", "worst-fit", "mean_wait_hours", True, "packing keeps nodes whole for gangs"),
    Direction(PREEMPTION, "srtf", "sjf", "mean_completion_hours", True, "Schrage 1968"),
    Direction(PREEMPTION, "las", "fifo", "mean_completion_hours", True, "Gu et al. 2019, durations unknown"),
    Direction(PREEMPTION, "gittins", "las", "mean_completion_hours", True, "Gittins 1979; Gu et al. 2019"),
    Direction(PREEMPTION, "srtf", "gittins", "mean_completion_hours", True, "Schrage 1968"),
    Direction(PREEMPTION, "srtf", "las", "mean_completion_hours", True, "knowing durations helps: Gu et al. 2019"),
    Direction(PREEMPTION, "round-robin", "fifo", "mean_slowdown", True, "Xiao et al. 2018"),
    Direction(PREEMPTION, "round-robin", "las", "wasted_gpu_hours", False, "each slice costs a switch"),
    Direction(PLANNER, "max-min", "fifo", "jain_fairness", False, "Narayanan et al. 2020"),
    Direction(PLANNER, "max-min", "fifo", "utilisation", True, "GPUs left within a round idle until the next"),
    Direction(PLANNER, "finish-time", "max-min", "mean_completion_hours", True, "Mahajan et al. 2020"),
)


@dataclass(frozen=True)
class Judgement:
    """A direction in one setting: what came of it, both figures, and a sentence."""

    direction: Direction
    outcome: str
    one: float
    other: float
    sentence: str


def judge(direction: Direction, runs: Mapping[str, Measured]) -> Judgement | None:
    """Return whether the direction holds in these runs; None where one of the two did not run."""
    if direction.one not in runs or direction.other not in runs:
        return None
    one, other = runs[direction.one], runs[direction.other]
    a, b = one.figures[direction.figure], other.figures[direction.figure]
    scale = max(abs(a), abs(b))
    if scale == 0 or abs(a - b) / scale < _NEGLIGIBLE:
        outcome = NO_DIFFERENCE
    else:
        outcome = HOLDS if (a < b) == direction.lower else FAILS
    return Judgement(direction, outcome, a, b, _sentence(direction, outcome, one, other))


def _sentence(direction: Direction, outcome: str, one: Measured, other: Measured) -> str:
    figure = FIGURES[direction.figure]
    a, b = one.figures[direction.figure], other.figures[direction.figure]
    way = "lower" if direction.lower else "higher"
    claim = f"{direction.one} should have a {way} {figure.words} than {direction.other} ({direction.source})"
    found = f"{a:,.{figure.digits}f} against {b:,.{figure.digits}f}"
    if b:
        found += f" ({percent(a / b - 1, 1 if outcome == NO_DIFFERENCE else 0, signed=True)})"
    if outcome == HOLDS:
        return f"{claim}: {outcome}, {found}."
    if outcome == NO_DIFFERENCE and direction.figure in _PER_JOB and direction.family != PLACEMENT:
        return f"{claim}: {outcome}, {found}. {_how_alike(one, other)}"
    return f"{claim}: {outcome}, {found}. {_why(direction, one, other)}"


def _why(direction: Direction, one: Measured, other: Measured) -> str:
    """Return what in the two runs the surprise comes from."""
    if direction.family == PLACEMENT:
        sizes = f" {_by_size(one, other)}" if direction.figure == "mean_wait_hours" else ""
        return f"{_fragmentation_matters(one, other)}{sizes}"
    if direction.figure in _PER_JOB and "p99" not in direction.figure:
        return _whose_difference(one, other)
    if "p99" in direction.figure:
        return _whose_tail(one, other)
    if direction.figure in ("jain_fairness", "share_error"):
        return _who_waits(one, other)
    if direction.figure == "utilisation":
        return _how_long(one, other)
    return _cost_of_stops(one, other)


def _gap(one: Measured, other: Measured, figure: str) -> float:
    return one.figures[figure] - other.figures[figure]


def _fragmentation_matters(one: Measured, other: Measured) -> str:
    parts = []
    for run in (one, other):
        total = sum(run.causes.values())
        share = run.causes.get("fragmentation", 0.0) / total if total else 0.0
        parts.append(f"{percent(share)} of waiting under {run.contender.name}")
    fractions = float(((one.gpus > 0) & (one.gpus < 1)).mean())
    return f"Fragmentation causes {' and '.join(parts)}; {percent(fractions)} of jobs ask for a part of a GPU."


def _by_size(one: Measured, other: Measured) -> str:
    """Return what small and large jobs wait under both: who overtakes decides about the mean."""
    many = one.gpus > 1
    if not many.any() or many.all():
        return "All jobs are of one size."
    small, large = ([f"{_mean_wait(run, rows):.2f} h" for run in (one, other)] for rows in (~many, many))
    return (
        f"Jobs of at most one GPU, {percent(float((~many).mean()))} of all, wait {small[0]} under {one.contender.name} and "
        f"{small[1]} under {other.contender.name}, larger ones {large[0]} and {large[1]}."
    )


def _mean_wait(run: Measured, rows: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> float:
    return float(np.nan_to_num(run.completion - run.duration)[rows].mean()) / HOUR


def _how_alike(one: Measured, other: Measured) -> str:
    """Return for how many jobs it makes a difference at all."""
    gap: Floats = np.nan_to_num(one.completion - other.completion)
    worse, better = int((gap > 1).sum()), int((gap < -1).sum())
    return (
        f"{better:,} of {gap.size:,} jobs end earlier under {one.contender.name} and {worse:,} later; "
        f"{percent(float((one.gpus <= 1).mean()))} ask for at most one GPU."
    )


def _cost_of_stops(one: Measured, other: Measured) -> str:
    """Return how many preemptions there are and what one costs."""
    parts = []
    for run in (one, other):
        stops, wasted = run.figures["preemptions"], run.figures["wasted_gpu_hours"]
        each = f", {wasted / stops:.2f} GPU-hours each" if stops else ""
        parts.append(f"{stops:,.0f} preemptions{each} under {run.contender.name}")
    return f"There are {' and '.join(parts)}: what one costs grows with the GPUs of the job that is stopped."


def _classes(run: Measured) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.bool_]]]:
    """Return the jobs by length (against the median) and GPUs."""
    long = run.duration > np.median(run.duration)
    many = run.gpus > 1
    return {
        "short jobs of at most one GPU": ~long & ~many,
        "short jobs of several GPUs": ~long & many,
        "long jobs of at most one GPU": long & ~many,
        "long jobs of several GPUs": long & many,
    }


def _whose_difference(one: Measured, other: Measured) -> str:
    """Return which jobs the difference of the means comes from."""
    gap: Floats = np.nan_to_num(one.completion - other.completion)
    total = float(gap.sum())
    by_class = {name: float(gap[rows].sum()) for name, rows in _classes(one).items()}
    most = max(by_class, key=lambda name: by_class[name] * np.sign(total or 1.0))
    count = int(_classes(one)[most].sum())
    part = f"{percent(by_class[most] / total)} of the difference" if total else "nothing"
    worse, better = int((gap > 1).sum()), int((gap < -1).sum())
    return (
        f"{count:,} {most} account for {part}; {better:,} jobs end earlier under {one.contender.name}, {worse:,} later, "
        f"and {_gap(one, other, 'preemptions'):+,.0f} preemptions cost "
        f"{_gap(one, other, 'wasted_gpu_hours'):+,.0f} GPU-hours."
    )


def _whose_tail(one: Measured, other: Measured) -> str:
    """Return how many wait long and how long the longest waits: the 99th percentile lies between the two."""
    waits = [np.nan_to_num(run.completion - run.duration) / HOUR for run in (one, other)]
    shares = [percent(float((wait > 1.0).mean()), 1) for wait in waits]
    names = one.contender.name, other.contender.name
    return (
        f"{shares[0]} of the jobs wait more than an hour under {names[0]} and {shares[1]} under {names[1]}; the longest "
        f"wait is {waits[0].max():.1f} h and {waits[1].max():.1f} h."
    )


def _who_waits(one: Measured, other: Measured) -> str:
    """Return which tenants gain and which lose, and what jobs those have that lose most."""
    names = np.unique(one.tenants)
    a, b = _served(one, names), _served(other, names)
    better, worse = int((a > b + _NEGLIGIBLE).sum()), int((a < b - _NEGLIGIBLE).sum())
    lost = (b - a) * [(one.tenants == name).sum() for name in names]
    loser = names[int(np.nanargmax(lost))]
    rows = one.tenants == loser
    longer = np.median(one.duration[rows]) / max(np.median(one.duration), 1e-9)
    return (
        f"Of {names.size:,} tenants {better:,} are served for a larger part of their time in the system under "
        f"{one.contender.name}, {worse:,} for a smaller one; over its jobs {loser} loses most "
        f"({percent(b[names == loser][0])} to {percent(a[names == loser][0])}), which has {percent(float(rows.mean()))} of "
        f"the jobs, with {longer:.1f} times the median duration of all. {_contention(one, other)}"
    )


def _served(run: Measured, names: Names) -> Floats:
    """Return the part of its jobs' time in the system in which each tenant is served."""
    ended = run.completion > 0
    tenants = np.searchsorted(names, run.tenants[ended])
    served = np.bincount(tenants, run.duration[ended], names.size)
    return np.asarray(served / np.maximum(np.bincount(tenants, run.completion[ended], names.size), 1e-9))


def _contention(one: Measured, other: Measured) -> str:
    """Return how much waiting there is to divide."""
    parts = [f"{percent(_waiting(run))} under {run.contender.name}" for run in (one, other)]
    return f"Waiting is {' and '.join(parts)} of the time in the system; fairness can only share that out differently."


def _waiting(run: Measured) -> float:
    total = float(np.nansum(run.completion))
    return 1.0 - float(run.duration[run.completion > 0].sum()) / total if total else 0.0


def _how_long(one: Measured, other: Measured) -> str:
    """Return the GPU-hours of work and what comes on top, and in how long."""
    parts = [
        f"{float((run.duration * run.gpus).sum()) / HOUR + run.figures['wasted_gpu_hours']:,.0f} GPU-hours in "
        f"{run.figures['makespan_hours']:,.0f} h under {run.contender.name}"
        for run in (one, other)
    ]
    return f"The share follows from the same work in the makespan: {' and '.join(parts)}."
