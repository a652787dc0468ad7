"""The end of a trial: all is as it was before it began."""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.compiled import compiled
from gputwin.simulation.engine.fit.index import Index, update_branches
from gputwin.simulation.engine.placing.scores import ready_scores
from gputwin.simulation.engine.placing.tournament import put_score
from gputwin.simulation.engine.state.records import Machines, wide
from gputwin.simulation.engine.trials.journal import BEGUN, NODES, OPEN, SCORES, begin, put_back
from gputwin.simulation.engine.world import World


@compiled
def begin_for(world: World, s: int, score: Any) -> None:
    """Open a trial of a job of shape s; kept scores that it will ask for are brought up to date before."""
    shape = world.queue.shapes[s]
    for g in range(shape.first_group, shape.first_group + shape.groups):
        r = wide(world.groups[g].request)
        ready_scores(world.index, world.machines, world.requests, r, world.knobs, score)
    begin(world.index.journal, world.machines)


@compiled
def undo(index: Index, machines: Machines) -> None:
    """Let everything be as it was before the open trial began, and close it."""
    journal = index.journal
    state = journal.state
    for k in range(state[SCORES] - 1, -1, -1):
        old = journal.scores[k]
        put_score(index, wide(old.slot), wide(old.node), old.value)
    for k in range(state[NODES]):
        n = wide(journal.nodes[k])
        put_back(journal, machines, n)
        if journal.changed_at[n] > state[BEGUN]:
            update_branches(index, machines, n)
    for k in range(machines.free.size):
        machines.free[k] = journal.free[k]
    state[OPEN] = state[NODES] = state[SCORES] = 0
