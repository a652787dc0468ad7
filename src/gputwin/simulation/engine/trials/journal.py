"""What a trial changes on nodes, written down before it is changed, so that all of it can be put back.

Reservations, plans and the search for victims try: they change what is free on nodes, look for places there, and take all
of it back. From `begin` to `undo` a trial is open. Whoever changes a node then calls `keep` first. Nothing that follows
commits (the log, totals, scores that are kept, series, rates, causes) learns of a trial: nothing is logged while one is
open, and `touch` brings only the tree over nodes up to date, which searches need and which `undo` brings back.

What a trial finds (nodes and devices) is in the slots of the job it was made for; they hold nothing until it starts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.state.records import DEVICE, Ints, Machines, Records, SmallInts

AMOUNTS = np.dtype(
    [
        ("cpu_free", np.int64),
        ("memory_free", np.int64),
        ("disk_free", np.int64),
        ("rdma_free", np.int64),
        ("gpu_free", np.int64),
        ("gpus_whole", np.int64),
    ],
    align=True,
)
"""What a trial may change of a NODE."""

SCORE = np.dtype([("value", np.float64), ("slot", np.int32), ("node", np.int32)], align=True)
"""A kept score before a trial changed it."""


class Journal(NamedTuple):
    """Nodes as they were before a trial, and scores that followed it."""

    state: Ints
    nodes: SmallInts  # [k] nodes that the trial has changed
    kept_in: Ints  # [n] the last trial that has changed the node
    changed_at: Ints  # [n] the step of its last change
    amounts: Records  # [n] AMOUNTS
    gpus: Records  # [n, d] DEVICE
    residents: SmallInts  # like Machines.residents
    caps: SmallInts  # like Machines.caps
    free: Ints  # Machines.free before the trial
    scores: Records  # SCORE, in the order in which they were changed
    followed: Ints  # [slot] the step up to which a request's scores follow the trial


OPEN, NODES, SCORES, TRIAL, STEP, BEGUN, STATES = range(7)
"""Positions in Journal.state: whether a trial is open, lengths of the lists, the number of the trial, steps of all trials so
far, and how many there were when the present one began."""
_PER_NODE = 4
"""Scores that are written down, at most so many times the number of nodes."""


def make_journal(machines: Machines, slots: int) -> Journal:
    """Return a journal in which nothing is written; `slots`: requests whose scores are kept."""
    nodes = machines.nodes.size
    return Journal(
        state=np.zeros(STATES, np.int64),
        nodes=np.zeros(nodes, np.int32),
        kept_in=np.zeros(nodes, np.int64),
        changed_at=np.zeros(nodes, np.int64),
        amounts=np.zeros(nodes, AMOUNTS),
        gpus=np.zeros(machines.gpus.shape, DEVICE),
        residents=np.zeros_like(machines.residents),
        caps=np.zeros_like(machines.caps),
        free=np.zeros_like(machines.free),
        scores=np.zeros(_PER_NODE * nodes + 64, SCORE),
        followed=np.zeros(slots, np.int64),
    )


@inlined
def begin(journal: Journal, machines: Machines) -> None:
    """Open a trial."""
    state = journal.state
    state[OPEN], state[NODES], state[SCORES] = 1, 0, 0
    state[TRIAL] += 1
    state[BEGUN] = state[STEP]
    for k in range(machines.free.size):
        journal.free[k] = machines.free[k]


@compiled
def keep(journal: Journal, machines: Machines, n: int) -> None:
    """Write down node n as it is, before the open trial changes it for the first time."""
    state = journal.state
    if journal.kept_in[n] == state[TRIAL]:
        return
    journal.kept_in[n] = state[TRIAL]
    journal.nodes[state[NODES]] = n
    state[NODES] += 1
    node, was = machines.nodes[n], journal.amounts[n]
    was.cpu_free, was.memory_free = node.cpu_free, node.memory_free
    was.disk_free, was.rdma_free = node.disk_free, node.rdma_free
    was.gpu_free, was.gpus_whole = node.gpu_free, node.gpus_whole
    for d in range(node.gpu_count):
        journal.gpus[n, d].free = machines.gpus[n, d].free
        journal.gpus[n, d].memory_free = machines.gpus[n, d].memory_free
    for k in range(machines.residents.shape[1]):
        journal.residents[n, k] = machines.residents[n, k]
    for k in range(machines.caps.shape[1]):
        journal.caps[n, k] = machines.caps[n, k]


@compiled
def put_back(journal: Journal, machines: Machines, n: int) -> None:
    """Let node n be as it was before the trial."""
    node, was = machines.nodes[n], journal.amounts[n]
    node.cpu_free, node.memory_free = was.cpu_free, was.memory_free
    node.disk_free, node.rdma_free = was.disk_free, was.rdma_free
    node.gpu_free, node.gpus_whole = was.gpu_free, was.gpus_whole
    for d in range(node.gpu_count):
        machines.gpus[n, d].free = journal.gpus[n, d].free
        machines.gpus[n, d].memory_free = journal.gpus[n, d].memory_free
    for k in range(machines.residents.shape[1]):
        machines.residents[n, k] = journal.residents[n, k]
    for k in range(machines.caps.shape[1]):
        machines.caps[n, k] = journal.caps[n, k]


@inlined
def note_step(journal: Journal, n: int) -> None:
    """Note that the open trial has changed node n."""
    journal.state[STEP] += 1
    journal.changed_at[n] = journal.state[STEP]
