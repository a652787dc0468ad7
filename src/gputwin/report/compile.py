"""What the demonstration simulates, and other rules, compiled ahead on small data in as many processes as processors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gputwin.core.processors import processors
from gputwin.report.demo import CLUSTER, OTHERS, SCHEDULERS, part
from gputwin.simulation.batch import Batch
from gputwin.simulation.scenario import scenario_of
from gputwin.simulation.simulate import simulate_scenario
from gputwin.traces.dataset import Trace
from gputwin.traces.locate import SYNTHETIC, open_trace

_TRACE = f"{SYNTHETIC}pai2020?jobs=100"
_PREEMPTIVE = ("srtf", "las")
_SLOW: tuple[Sequence[Mapping[str, object]], ...] = (
    (
        {"backfill": "conservative"},
        {"order": "priority:max_wait=3600", "backfill": "greedy"},
        {"order": "priority:aging=0", "preemption": "kube-scheduler", "backfill": "greedy"},
        {"order": "priority:aging=0", "preemption": "priority", "backfill": "strict"},
    ),
    (
        {"fairness": "quota:reclaim=1", "backfill": "greedy"},
        {"fairness": "hdrf", "backfill": "greedy"},
        {"fairness": "drf", "backfill": "strict"},
        {"fairness": "drf", "backfill": "easy"},
    ),
)
"""Rules that the demonstration does without and that take longest to compile, in groups that share machine code."""


def compile_ahead(every: bool = False, progress: Callable[[str], None] = lambda step: None) -> int:
    """Return how many groups of rules were compiled; what the cache has is only loaded.

    `every`: also those that the demonstration does without and that take longest.
    """
    groups = [*rule_groups(), *(_SLOW if every else ())]
    total = len(groups) + 1
    with Batch(workers=min(processors(), total)) as batch:
        trace = batch.share(open_trace(_TRACE))
        calls = [(trace, group) for group in groups]
        progress(f"compiled 0 of {total} parts")
        batch.map(_compile, [*calls, (trace, ())], lambda done, of: progress(f"compiled {done} of {of} parts"))
    return total


def rule_groups() -> list[Sequence[Mapping[str, object]]]:
    """Return the demonstration's rules in groups that share machine code, so that no two processes compile the same.

    The first group is compiled alone and has what all others need.
    """
    groups: dict[tuple[object, bool], list[Mapping[str, object]]] = {}
    for rules in (*SCHEDULERS.values(), *OTHERS.values()):
        groups.setdefault((rules["backfill"], rules.get("order") in _PREEMPTIVE), []).append(rules)
    return list(groups.values())


def _compile(trace: Trace, rules: Sequence[Mapping[str, object]]) -> None:
    """Run a small trace under each set of rules; without rules, under scaling rules."""
    for given in rules:
        simulate_scenario(scenario_of({"trace": _TRACE, "cluster": CLUSTER, **given}), trace)
    if not rules:
        part("autoscaling", trace)
