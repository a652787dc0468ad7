"""kube-scheduler's published cases as runs of the engine: pods run on their nodes, then the preemptor comes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gputwin.simulation.engine.state.lives import REASONS, SEGMENTS
from gputwin.simulation.interruptions import Checkpoints
from gputwin.simulation.rules import Changes, Scheduler
from gputwin.simulation.run import run
from tests.oracles.cases import Case
from tests.oracles.reference import Ask, Job, Node

LONG = 1e6
"""How long each pod would run, s."""


class Preempted(NamedTuple):
    """Where the preemptor started, and who went for it; nowhere: ''."""

    node: str
    victims: list[str]


def preempted_by_engine(case: dict[str, Any], preemptor: dict[str, Any], nodes: Sequence[str]) -> Preempted:
    """Return what the engine does on these nodes of the case, once their pods run.

    A node's name is the model of its GPU, a thousandth of which each of its pods asks for. Pods start one by one, in the
    order of their start times; the preemptor comes when all run. In one case the pods of a node ask for 600 of its 500:
    the last gets the 100 that are left, since in a run nobody starts without room.
    """
    pods = sorted(({**p} for p in case["pods"] if p["node"] in nodes), key=lambda p: float(p.get("start") or 0.0))
    starts = sorted({float(p.get("start") or 0.0) for p in pods})
    room = case["node_capacity"]
    cluster = tuple(Node(1, name, cpu=room["cpu_milli"], memory=room["memory"]) for name in nodes)
    free = {name: dict(room) for name in nodes}
    for pod in pods:
        pod["request"] = {r: min(v, free[pod["node"]][r]) for r, v in pod["request"].items()}
        for r, v in pod["request"].items():
            free[pod["node"]][r] -= v
    jobs = [_job(starts.index(float(p.get("start") or 0.0)), p, frozenset({p["node"]})) for p in pods]
    jobs.append(_job(len(starts), preemptor, frozenset()))
    workload, target, typical = Case(cluster, tuple(jobs)).engine_input
    done = run(
        workload,
        target,
        Scheduler("priority", "greedy", order_parameters={"aging": 0.0}),
        typical=typical,
        changes=Changes(preemption="kube-scheduler", checkpoints=Checkpoints(grace_seconds=0.0)),
    )
    lives, last = done.world.lives, len(jobs) - 1
    segments = lives.segments[: lives.counts[SEGMENTS]]
    started = float(len(starts))
    victims = [
        pods[s["job"]]["name"] for s in segments if REASONS[s["why"]] == "preempted" and float(s["end"]) == started
    ]
    if not victims:
        return Preempted("", [])
    first = next(s for s in segments if s["job"] == last)
    assert float(first["start"]) == started
    return Preempted(nodes[int(lives.spots[first["first_spot"]]["node"])], sorted(victims))


def _job(submit: float, pod: dict[str, Any], models: frozenset[str]) -> Job:
    asked = pod["request"]
    ask = Ask(1, 1, cpu=asked["cpu_milli"], memory=asked["memory"], models=models)
    return Job(float(submit), LONG, ((ask, 1),), LONG, pod["priority"])
