"""The compiled engine: built on first use, cached on disk, called with a world, its policies and a scheduling pass.

Policies and passes are compiled against fixed signatures and handed to the loop as first-class functions, so the loop
itself is compiled once and serves every policy, built-in or a user's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from gputwin.core.machine_code import config
from gputwin.simulation.engine.by_address import Placed, handed_over
from gputwin.simulation.engine.changes.handle import handle_change, handle_nothing
from gputwin.simulation.engine.changes.rates import settle_nothing, settle_rates
from gputwin.simulation.engine.compiled import compiled_as, only_version
from gputwin.simulation.engine.interpreted import wrapped
from gputwin.simulation.engine.loop import ENDED, FEW, FULL_LOG, REACHED, run
from gputwin.simulation.engine.queue.jobs import WAITING
from gputwin.simulation.engine.rules import no_gate, no_neighbours, no_turn
from gputwin.simulation.engine.state.events import compacted
from gputwin.simulation.engine.state.lives import grown as with_longer_log
from gputwin.simulation.engine.state.outages import grown as with_more_outages
from gputwin.simulation.engine.world import ARRIVAL, BUDGET, World

SLICE = 1 << 19
"""Instants after which the loop comes back, so that Ctrl-C is heard and progress can be shown."""


class Rules(NamedTuple):
    """The small functions a run asks: who goes next, where, who yields to whom, how fast, whose turn it is."""

    order: Callable[..., float]
    promotion: Callable[..., float]
    score: Callable[..., float]
    devices: Callable[..., int]
    claim: Callable[..., float]
    rank: Callable[..., float]
    crossing: Callable[..., float]
    speed: Callable[..., tuple[float, float, float]]
    share: Callable[..., float] = no_neighbours
    turn: Callable[..., float] = no_turn
    gate: Callable[..., bool] = no_gate


class Stepper:
    """A run that can be left at any time and taken up again: all of its state is in `world`.

    Between two calls of `run_until` others may look at the world and schedule events (`schedule_from_outside`), at the
    time up to which it was run or later.
    """

    def __init__(
        self,
        world: World,
        rules: Rules,
        schedule_pass: Callable[..., None],
        on_progress: Callable[[World], None] | None = None,
    ) -> None:
        self.world, self.on_progress = world, on_progress
        self._placed: Placed | None = None
        changes = world.settings["changes"][0] != 0
        parts = (
            *rules,
            schedule_pass,
            handle_change if changes else handle_nothing,
            settle_rates if changes else settle_nothing,
        )
        if config.DISABLE_JIT:
            self._kernel, self._functions = (lambda world, *rules: run(wrapped(world), *rules)), list(parts)
        else:
            kind = numba.typeof(world)
            self._functions = [_compiled(f, s) for f, s in zip(parts, _signatures(kind), strict=True)]
            # Entered directly: the dispatcher would look at the types of what it is given each time.
            self._kernel = only_version(_kernel(kind)).entry_point
        # Less than nothing says that the run has not begun.
        world.loop[BUDGET] = -SLICE

    def run_until(self, time: float = np.inf) -> bool:
        """Carry out all that happens up to and at `time`, s; return whether the run is over."""
        self.world.until[0] = time
        while True:
            why = self._kernel(self._handed_over(), *self._functions)
            if why in (ENDED, REACHED):
                return bool(why == ENDED)
            if why == FULL_LOG:
                self.world = _enlarged(self.world)
            else:
                self.world.loop[BUDGET] = SLICE
                if self.on_progress is not None:
                    self.on_progress(self.world)

    def _handed_over(self) -> Any:
        """Return what the loop is given: the world's address, or without compilation the world."""
        if config.DISABLE_JIT:
            return self.world
        if self._placed is None or self._placed.value is not self.world:
            self._placed = Placed(self.world)
        return self._placed.address

    def make_room(self, events: int) -> None:
        """Let the heap have room for as many more events as are to be scheduled from outside."""
        heap = self.world.events
        if heap.count[0] + events + 64 >= heap.heap.size:
            self.world = self.world._replace(events=compacted(heap, self.world.queue.jobs, events + 64))


def _enlarged(world: World) -> World:
    """Return the world with room for what one instant can bring."""
    jobs, arrival, running = world.queue.jobs, int(world.loop[ARRIVAL]), int(world.counters["running"][0])
    coming = jobs["submit"][arrival] if arrival < jobs.size else np.inf
    together = max(FEW, int(np.searchsorted(jobs["submit"], coming, "right")) - arrival)
    room = 4 * (int(world.queue.counts[WAITING]) + running + together) + 64
    return world._replace(
        lives=with_longer_log(world.lives, running),
        outages=with_more_outages(world.outages, world.machines.nodes.size),
        events=compacted(world.events, jobs, room),
    )


@cache
def _signatures(world: Any) -> tuple[Any, ...]:
    """Return the signatures of all functions the loop is handed, in its order; `world`: the type of the named tuple."""
    part = {name: handed_over(kind) for name, kind in zip(World._fields, world.types, strict=True)}
    queue = world.types[World._fields.index("queue")]
    jobs, knobs, machines, requests = queue.types[0], part["knobs"], part["machines"], part["requests"]
    i64, f64 = types.int64, types.float64
    of_job = f64(jobs, i64, f64, knobs)
    on_node = (machines, requests, i64, i64, knobs)
    score, devices = f64(part["index"], *on_node), i64(*on_node)
    shapes = queue.types[1]
    running = (jobs, shapes, part["slots"], machines, requests, part["speeds"], knobs, i64)
    speed, share = types.UniTuple(f64, 3)(*running), f64(*running)
    rule, places = types.FunctionType(of_job), (types.FunctionType(score), types.FunctionType(devices))
    turn, gate = f64(part["tenants"], i64, f64), types.boolean(part["tenants"], i64, i64)
    fairness = types.FunctionType(turn), types.FunctionType(gate)
    schedule_pass = types.void(handed_over(world), f64, rule, rule, rule, *places, *fairness)
    handle = types.void(handed_over(world), i64, i64, f64, rule, rule, rule, rule)
    speeds = types.FunctionType(speed), types.FunctionType(share)
    settle = types.void(handed_over(world), f64, rule, rule, *speeds, *places)
    rules = (of_job, of_job, score, devices, of_job, of_job, of_job, speed, share, turn, gate)
    return *rules, schedule_pass, handle, settle


@cache
def _kernel(world: Any) -> Any:
    functions = [types.FunctionType(signature) for signature in _signatures(world)]
    return compiled_as(run, types.int64(handed_over(world), *functions))


@cache
def _compiled(function: Callable[..., Any], signature: Any) -> Any:
    made: Any = compiled_as(function, signature)
    # The loop asks for it at each entry; finding it among the versions of a function takes long.
    made.get_compile_result = partial(_same, only_version(made))
    return made


def _same(found: Any, signature: Any) -> Any:
    return found
