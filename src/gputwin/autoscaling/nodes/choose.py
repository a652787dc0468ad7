"""Node pools chosen on the first part of a trace: rule, settings and spot share of least cost within a wait target.

What was chosen is shown on the rest of the trace beside the fixed cluster and the rules as they are set by default.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from gputwin.autoscaling.nodes.spec import NodePools
from gputwin.autoscaling.nodes.study import FIXED, PoolOptions, PoolOutcome, Variant, simulate_variants
from gputwin.core.errors import UserError
from gputwin.core.units import format_duration, parse_duration, percent, short_duration
from gputwin.traces.dataset import Trace

SHARES = (0.0, 0.3, 0.6, 0.9)
"""Spot shares that are tried where the user names none."""
_SETTINGS: Mapping[str, tuple[Mapping[str, float], ...]] = {
    "cluster-autoscaler": tuple(
        {"unneeded_for_s": seconds, "delay_after_add_s": seconds} for seconds in (120.0, 600.0, 1800.0)
    ),
    "karpenter": tuple({"consolidate_after_s": seconds} for seconds in (60.0, 300.0, 1200.0)),
}
_LEAST_JOBS = 20


@dataclass(frozen=True)
class WaitTarget:
    """A quantile of the waits, and the most it may be, s."""

    quantile: int
    seconds: float

    @property
    def name(self) -> str:
        """Return the target as it is written."""
        return f"p{self.quantile}_wait"

    @property
    def words(self) -> str:
        """Return the target as people say it."""
        return f"p{self.quantile} wait"

    def of(self, outcome: PoolOutcome) -> float:
        """Return the wait the target looks at, s."""
        score = outcome.score
        return score.p95_wait_seconds if self.quantile == 95 else score.p99_wait_seconds


def parse_wait_target(text: str) -> WaitTarget:
    """Return the target of `p95_wait=10m` or `p99_wait=600`."""
    match = re.fullmatch(r"p(95|99)_wait=(.+)", text.strip())
    if match is None:
        raise UserError(f"--target '{text}' is none; give p95_wait=10m or p99_wait=1h")
    seconds = match[2]
    return WaitTarget(int(match[1]), float(seconds) if seconds.isdigit() else parse_duration(seconds))


@dataclass(frozen=True)
class Tried:
    """A rule with its settings and spot share: means over the seeds, on one part of the trace."""

    rule: str
    spot_share: float
    settings: Mapping[str, Any]
    cost: float
    wait_seconds: float
    most_wait_seconds: float
    """In the worst seed."""
    unfinished: float
    is_within: bool
    """Whether the wait was within the target on average, and no more jobs than elsewhere were left unserved."""

    def words(self) -> str:
        """Return rule, settings and share in words."""
        settings = ", ".join(f"{name}={value:g}" for name, value in self.settings.items())
        return f"{self.rule}{f' ({settings})' if settings else ''}, {percent(self.spot_share)} spot"


@dataclass(frozen=True)
class Choice:
    """What was tried on the first part, what was chosen, and how that and the others did on the rest."""

    target: WaitTarget
    split_seconds: float
    jobs: tuple[int, int]
    """Of the first part and of the rest."""
    tried: tuple[Tried, ...]
    chosen: Tried
    shown: tuple[Tried, ...]
    """On the rest: the fixed cluster, what was chosen, then each rule with its default settings and no spot nodes."""
    pools: NodePools

    def verdict(self) -> str:
        """Return what the choice came to, in a sentence."""
        fixed, now = self.shown[:2]
        kept = "held" if now.is_within else "was missed"
        reached = "" if self.chosen.is_within else "No setting reached the target; this one waits least. "
        return (
            f"{reached}Chosen on the first part: {self.chosen.words()}. On the rest it costs "
            f"{now.cost:,.0f} {self.pools.cost_unit}, "
            f"{percent(now.cost / max(fixed.cost, 1e-12))} of the fixed cluster, and the target {kept}: "
            f"{self.target.words} {format_duration(now.wait_seconds)}, at most {short_duration(self.target.seconds)}."
        )

    def to_json(self) -> dict[str, Any]:
        """Return the choice as plain data."""
        return {
            "target": {"name": self.target.name, "seconds": self.target.seconds},
            "first_part_seconds": self.split_seconds,
            "jobs_first_part": self.jobs[0],
            "jobs_shown": self.jobs[1],
            "tried": [asdict(t) for t in self.tried],
            "chosen": asdict(self.chosen),
            "shown": [asdict(t) for t in self.shown],
            "verdict": self.verdict(),
        }


def choose_pools(
    pools: NodePools,
    trace: Trace,
    options: PoolOptions,
    target: WaitTarget,
    *,
    rules: Sequence[str],
    shares: Sequence[float] = SHARES,
    seeds: Sequence[int] = (0,),
    first_part: float = 0.5,
    step: Callable[[str], None] = lambda text: None,
) -> Choice:
    """Return the cheapest way to size the pools within the target on the first part, and how it does on the rest.

    Both parts begin with an empty cluster. Spot nodes' availability and prices are those of the trace's beginning in both.
    """
    if not 0.1 <= first_part <= 0.9:
        raise UserError(f"the first part must be 0.1 to 0.9 of the trace, not {first_part:g}")
    submits = trace.tasks["submit_time"].drop_nulls().to_numpy()
    begin, end = float(submits.min()), float(submits.max())
    split = begin + first_part * (end - begin)
    parts = trace.between(-math.inf, split), trace.between(split, math.inf)
    if min(part.tasks.height for part in parts) < _LEAST_JOBS:
        raise UserError("one part of the trace has next to no jobs; choose another --first-part")
    first = list(_candidates(pools, rules, shares))
    found = _judged(first, simulate_variants(first, parts[0], options, seeds, step), target)
    chosen = min(found, key=lambda t: (not t.is_within, t.cost if t.is_within else t.wait_seconds))
    given = dict(pools.settings)
    defaults = [Variant(replace(pools, rule=r, settings=given if r == pools.rule else {}), 0.0) for r in rules]
    later = [Variant(pools, 0.0, is_fixed=True), first[found.index(chosen)], *defaults]
    shown = _judged(later, simulate_variants(later, parts[1], options, seeds, step), target)
    jobs = (parts[0].tasks["job_id"].n_unique(), parts[1].tasks["job_id"].n_unique())
    return Choice(target, split - begin, jobs, tuple(found), chosen, tuple(shown), pools)


def _candidates(pools: NodePools, rules: Sequence[str], shares: Sequence[float]) -> Iterator[Variant]:
    for rule in rules:
        for settings in _SETTINGS[rule]:
            kept = pools.settings if rule == pools.rule else {}
            for share in shares:
                yield Variant(replace(pools, rule=rule, settings={**kept, **settings}), share)


def _judged(variants: Sequence[Variant], outcomes: Sequence[Sequence[PoolOutcome]], target: WaitTarget) -> list[Tried]:
    found = []
    # Some jobs may never be served, whatever one does.
    least = min(float(np.mean([run.score.unfinished for run in runs])) for runs in outcomes)
    for variant, runs in zip(variants, outcomes, strict=True):
        waits = [target.of(run) for run in runs]
        unfinished = float(np.mean([run.score.unfinished for run in runs]))
        found.append(
            Tried(
                FIXED if variant.is_fixed else variant.pools.rule,
                variant.spot_share,
                {} if variant.is_fixed else dict(variant.pools.settings),
                float(np.mean([run.score.cost for run in runs])),
                float(np.mean(waits)),
                max(waits),
                unfinished,
                bool(np.mean(waits) <= target.seconds and unfinished <= least),
            )
        )
    return found
