"""What a scenario asks for that changes nothing in its run, said in a line each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gputwin.simulation.cluster import Cluster
from gputwin.simulation.engine.state.records import WHOLE
from gputwin.simulation.engine.world import BY_RANK, CONSERVATIVE, EASY
from gputwin.simulation.locality import Locality, with_locality
from gputwin.simulation.policy import BACKFILLS, ORDERINGS, PLACEMENTS, PREEMPTIONS, FairnessRule
from gputwin.simulation.policy_parameters import settle
from gputwin.simulation.policy_source import is_ours, reads
from gputwin.simulation.rules import Changes, Scheduler, fairness_of, settled
from gputwin.simulation.scenario import Scenario
from gputwin.simulation.tenants import reclaims
from gputwin.simulation.workload import Workload


def without_effect(scenario: Scenario, workload: Workload, cluster: Cluster, predicts: bool) -> Iterator[str]:
    """Yield what the scenario says of the run that changes nothing; `predicts`: durations believed are not the true ones."""
    yield from _of_absent_models(scenario, cluster)
    scheduler = scenario.scheduler
    order = ORDERINGS.get(scheduler.order)
    changes = settled(scenario.changes, order, scheduler.order_parameters, scheduler.backfill)
    if predicts and not uses_durations(scheduler, changes):
        rules = f"order '{scheduler.order}' with backfill '{scheduler.backfill}'"
        yield f"predictions have no effect: {rules} does not ask how long jobs will run; order sjf and backfill easy do"
    if scenario.priorities and not uses_priorities(scheduler, changes):
        yield "drawn priorities have no effect: no rule goes by them; order priority does"
    if scenario.interference is not None and changes.sharing is not None:
        if changes.sharing.name == "exclusive":
            yield "interference has no effect: under sharing 'exclusive' no two jobs are on one GPU"
        elif not changes.sharing.rule.divides and not _asks_for_shares(workload):
            yield "interference has no effect: every job asks for whole GPUs, so no two are on one GPU"
    if changes.locality is not None:
        yield from _of_locality(changes.locality, workload, cluster)


def uses_durations(scheduler: Scheduler, changes: Changes) -> bool:
    """Return whether who starts, where and when may depend on how long jobs are believed to run."""
    order, fair = ORDERINGS.get(scheduler.order), fairness_of(scheduler)
    if changes.is_planned or changes.elasticity is not None or order.weighs_tenants or reclaims(scheduler.fairness):
        return True
    backfill = BACKFILLS.get(scheduler.backfill)
    if EASY <= backfill.mode <= CONSERVATIVE or not is_ours(backfill.schedule_pass):
        return True
    if settle(order, scheduler.order_parameters).get("max_wait", np.inf) < np.inf:
        return True
    if fair is not None and (fair.queues or _turns_by_durations(fair)):
        return True
    return _reads("predicted", scheduler, changes)


def _turns_by_durations(fair: FairnessRule) -> bool:
    """Return whether turns go by the next job's predicted duration, or by tags that move on by those of jobs started."""
    tags = ("finish", "virtual", "next") if fair.turns_by == "draw" else ("tag", "finish", "virtual", "next")
    return fair.turn is not None and any(reads(fair.turn, field) for field in tags)


def uses_priorities(scheduler: Scheduler, changes: Changes) -> bool:
    """Return whether who starts, where and when may depend on the priorities of jobs."""
    fair = fairness_of(scheduler)
    if changes.is_planned or ORDERINGS.get(scheduler.order).weighs_tenants or (fair is not None and fair.queues):
        return True
    if changes.sharing is not None and changes.sharing.splits:
        return True
    return _reads("priority", scheduler, changes)


def _reads(field: str, scheduler: Scheduler, changes: Changes) -> bool:
    """Return whether a policy reads this field of jobs; a preemption whose victims the engine chooses may read any."""
    order, placement = ORDERINGS.get(scheduler.order), PLACEMENTS.get(scheduler.placement)
    functions = [order.key, order.promotion, placement.score, *([placement.devices] if placement.devices else [])]
    if changes.preemption:
        rule = PREEMPTIONS.get(changes.preemption)
        if rule.victims != BY_RANK or rule.apart == field:
            return True
        functions += [rule.rank, rule.claim, rule.crossing]
    return any(reads(function, field) for function in functions)


def _asks_for_shares(workload: Workload) -> bool:
    requests = workload.requests
    return bool(((requests["gpu_count"] > 0) & (requests["gpu_milli"] < WHOLE)).any())


def _of_absent_models(scenario: Scenario, cluster: Cluster) -> Iterator[str]:
    there = {group.gpu_model for group in cluster.groups}
    speeds, power = scenario.speed, scenario.power
    by_model = {"speed": speeds.by_model if speeds else {}, "power.limits": power.limits if power else {}}
    for field, values in by_model.items():
        if absent := sorted(set(values) - there):
            models = ", ".join(sorted(filter(None, there))) or "none that are named"
            yield f"{field} of {', '.join(absent)} has no effect: no GPU of {cluster.name} is one; its models: {models}"


def _of_locality(locality: Locality, workload: Workload, cluster: Cluster) -> Iterator[str]:
    apart = {
        "node": (locality.node_seconds, Locality(node_seconds=locality.node_seconds)),
        "rack": (locality.rack_seconds, Locality(rack_seconds=locality.rack_seconds)),
    }
    for place, (seconds, alone) in apart.items():
        if seconds > 0 and with_locality(workload, cluster, alone).shapes.size == workload.shapes.size:
            if place == "rack" and not any(group.rack or group.nodes_per_rack for group in cluster.groups):
                yield f"locality of a rack has no effect: no node of {cluster.name} has a rack"
            else:
                yield (
                    f"locality of a {place} has no effect: no job is a gang of equal instances with whole GPUs that one "
                    f"{place} can hold"
                )
