"""A serving system that runs: requests come, replicas serve them, and the number of replicas can be set at any time."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gputwin.autoscaling.serving import slots, tokens
from gputwin.autoscaling.serving.build import LOG_FIELDS, build
from gputwin.autoscaling.serving.system import Engine, Load, Slots, check
from gputwin.autoscaling.serving.world import (
    ABANDONED,
    BOOTING,
    DRAINING,
    DROPPED,
    N_LOGGED,
    N_ROWS,
    SERVED,
    T_NOW,
    UP,
    Floats,
    World,
)


class Simulator:
    """One run: `advance` it in time, `scale` it, read what happened. Times are seconds from the start."""

    def __init__(
        self,
        load: Load,
        system: Slots | Engine,
        *,
        replicas: int = 1,
        most_replicas: int = 100,
        boot_seconds: Floats | float = 0.0,
        queue_limit: int | None = None,
    ) -> None:
        check(load, system)
        # Replicas that drain take a row beside those that replace them.
        rows = 2 * max(most_replicas, replicas) + 2
        self.load = load
        self.world = build(load, system, rows, np.atleast_1d(np.asarray(boot_seconds, float)), queue_limit)
        loop = slots if isinstance(system, Slots) else tokens
        self._advance: Callable[[World, float], None] = loop.advance
        self._scale: Callable[[World, int, bool], None] = loop.scale
        # READY events come before arrivals of the same instant.
        self._scale(self.world, replicas, True)

    @property
    def now(self) -> float:
        """Return the time, s."""
        return float(self.world.clocks[T_NOW])

    def advance(self, until: float) -> None:
        """Let everything happen up to the time `until`."""
        self._advance(self.world, until)

    def scale(self, replicas: int) -> None:
        """Ask for so many replicas from now on."""
        self._room_in_log()
        self._scale(self.world, replicas, False)

    def finish(self) -> None:
        """Serve everybody who has come, with the replicas there are."""
        self._room_in_log()
        self._advance(self.world, math.inf)

    def states(self) -> tuple[int, int, int]:
        """Return how many replicas are up, booting and draining."""
        state = self.world.replicas.state[: self.world.counters[N_ROWS]]
        return int((state == UP).sum()), int((state == BOOTING).sum()), int((state == DRAINING).sum())

    def lives(self) -> Floats:
        """Return a row per replica: launched, ready, drained (-1: not), stopped (or now), busy seconds, requests served."""
        w = self.world
        stopped = w.replicas.log[: w.counters[N_LOGGED]]
        p, rows = w.replicas, np.flatnonzero(w.replicas.state)
        open_ = np.column_stack(
            [
                p.launched[rows],
                p.ready[rows],
                p.drained[rows],
                np.full(rows.size, self.now),
                p.busy_seconds[rows],
                p.served[rows].astype(float),
            ]
        )
        return np.concatenate([stopped, open_])

    def latencies(self) -> Floats:
        """Return s from arrival to the last byte of each request; NaN where it was not served."""
        r = self.world.requests
        return np.where(r.status == SERVED, r.finish - r.arrival, np.nan)

    def first_token_seconds(self) -> Floats:
        """Return s from arrival to the first token; NaN where there is none."""
        r = self.world.requests
        return np.where(r.first_token >= 0, r.first_token - r.arrival, np.nan)

    def waits(self) -> Floats:
        """Return s from arrival to the start of service; NaN where it was not served."""
        r = self.world.requests
        return np.where(r.status == SERVED, r.start - r.arrival, np.nan)

    def refused(self) -> np.ndarray:
        """Return which requests were dropped or gave up."""
        return np.isin(self.world.requests.status, (DROPPED, ABANDONED))

    def _room_in_log(self) -> None:
        w = self.world
        log = w.replicas.log
        if w.counters[N_LOGGED] + w.replicas.state.size < len(log):
            return
        longer = np.zeros((2 * len(log), LOG_FIELDS))
        longer[: len(log)] = log
        self.world = w._replace(replicas=w.replicas._replace(log=longer))
