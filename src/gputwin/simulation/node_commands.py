"""Nodes of a pool, started and stopped between two steps of a run (`Stepper.run_until`).

A command takes effect at the time up to which the run has gone, after all else that happens then; one scheduling pass
follows. A command that does not fit the state of its node is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gputwin.simulation.engine.kernel import Stepper
from gputwin.simulation.engine.state.events import BOOT, DRAIN, NODE_DOWN, schedule_from_outside
from gputwin.simulation.engine.state.records import OFF, UP


def start_nodes(stepper: Stepper, time: float, delays: Mapping[int, float]) -> None:
    """Start nodes that are off; each is up after its delay, s."""
    state = stepper.world.machines.nodes["state"]
    off = [node for node in delays if state[node] == OFF]
    for node in off:
        stepper.world.outages.due[node] = time + delays[node]
    _send(stepper, time, int(BOOT), off)


def drain_nodes(stepper: Stepper, time: float, nodes: Iterable[int]) -> None:
    """Let nodes take no more jobs; each is off when its last job has left."""
    state = stepper.world.machines.nodes["state"]
    _send(stepper, time, int(DRAIN), [node for node in nodes if state[node] == UP])


def stop_nodes(stepper: Stepper, time: float, nodes: Iterable[int]) -> None:
    """Turn nodes off now; what runs there is stopped, as by a failure or, on a draining node, as by a drain."""
    state = stepper.world.machines.nodes["state"]
    on = [node for node in nodes if state[node] != OFF]
    stepper.world.outages.due[on] = time
    _send(stepper, time, int(NODE_DOWN), on)


def _send(stepper: Stepper, time: float, kind: int, nodes: Iterable[int]) -> None:
    sent = list(nodes)
    stepper.make_room(len(sent))
    for node in sent:
        schedule_from_outside(stepper.world.events, time, kind, node)
