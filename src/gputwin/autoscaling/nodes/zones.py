"""Spot nodes dealt out over zones: how many of each lane and zone may be on, which can be started, which are too many."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gputwin.autoscaling.nodes.spec import Lane, Layout
from gputwin.autoscaling.nodes.supply import SpotSupply
from gputwin.simulation.engine.state.records import BOOTING, OFF, UP

Ints = NDArray[np.int64]


class ZonedNodes:
    """The spot nodes of a layout by cell: lane and zone. Node k of a lane is in zone k modulo their number."""

    def __init__(self, layout: Layout, supply: SpotSupply) -> None:
        self._zones = supply.zones
        self._first_cell: dict[str, int] = {}
        self._nodes: list[Ints] = []
        cells, nodes = [], []
        for lane in layout.lanes:
            if not (lane.is_spot and self._zones):
                continue
            self._first_cell[lane.type] = len(self._nodes)
            for z in range(len(self._zones)):
                of_cell = np.arange(lane.first + z, lane.first + lane.count, len(self._zones))
                cells.append(np.full(of_cell.size, len(self._nodes)))
                nodes.append(of_cell)
                self._nodes.append(of_cell)
        self._cell = np.concatenate(cells) if cells else np.zeros(0, np.int64)
        self._node = np.concatenate(nodes) if nodes else np.zeros(0, np.int64)
        self._known, self._known_since, self._known_until = np.zeros(0, np.int64), math.inf, -math.inf
        self._size = np.array([of_cell.size for of_cell in self._nodes], np.int64)

    def room(self, state: NDArray[np.int64], lane: Lane, time: float) -> int:
        """Return how many nodes of a spot lane can be started at `time`, s from the beginning of the run."""
        first = self._first_cell[lane.type]
        room = self._allowed(time) - np.bincount(self._cell[state[self._node] != OFF], minlength=self._size.size)
        return int(np.maximum(room[first : first + len(self._zones)], 0).sum())

    def free(self, state: NDArray[np.int64], lane: Lane, time: float) -> list[int]:
        """Return the nodes of a spot lane that can be started, zone by zone."""
        allowed, found = self._allowed(time), []
        first = self._first_cell[lane.type]
        for cell in range(first, first + len(self._zones)):
            nodes = self._nodes[cell]
            off = nodes[state[nodes] == OFF]
            found += off[: max(int(allowed[cell]) - (nodes.size - off.size), 0)].tolist()
        return found

    def excess(self, state: NDArray[np.int64], time: float) -> list[tuple[int, list[int], int]]:
        """Return each cell in which more nodes are on than may be: the cell, its nodes, and how many may be on."""
        allowed = self._allowed(time)
        of_nodes = state[self._node]
        is_on = (of_nodes == UP) | (of_nodes == BOOTING)
        on = np.bincount(self._cell[is_on], minlength=self._size.size)
        found = []
        for cell in np.flatnonzero(on > allowed).tolist():
            nodes = self._nodes[cell]
            found.append((cell, nodes[np.isin(state[nodes], (UP, BOOTING))].tolist(), int(allowed[cell])))
        return found

    def _allowed(self, time: float) -> Ints:
        """Return how many nodes of each cell may be on; found anew only where a zone has changed."""
        if not self._known_since <= time < self._known_until:
            shares = np.array([zone.share_at(time) for zone in self._zones], np.float64)
            lanes = len(self._first_cell)
            self._known = np.floor(np.tile(shares, lanes) * self._size + 1e-9).astype(np.int64)
            self._known_since = time
            self._known_until = min((zone.next_change(time) for zone in self._zones), default=math.inf)
        return self._known
