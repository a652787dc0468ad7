"""The compiled engine: built on first use, cached on disk, called with a world, its policies and a scheduling pass.

Policies and passes are compiled against fixed signatures and handed to the loop as first-class functions, so the loop
itself is compiled once and serves every policy, built-in or a user's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from numba import types

from gputwin.simulation.engine.compiled import compiled_as
from gputwin.simulation.engine.conservative import conservative_pass
from gputwin.simulation.engine.loop import run
from gputwin.simulation.engine.passes import easy_pass, greedy_pass, greedy_pass_with_limit, strict_pass
from gputwin.simulation.engine.world import BACKFILL, CONSERVATIVE, EASY, GREEDY, LOSS, STRICT, World

# Where nobody may wait, no pass is ever made.
_PASSES = {
    STRICT: strict_pass,
    GREEDY: greedy_pass,
    EASY: easy_pass,
    CONSERVATIVE: conservative_pass,
    LOSS: strict_pass,
}


def run_world(
    world: World, key: Callable[..., float], score: Callable[..., float], devices: Callable[..., int]
) -> float:
    """Run the world to its end with these policies and return the time of the last event, s."""
    kind = numba.typeof(world)
    parts = (key, score, devices, _pass_of(world))
    functions = [_compiled(f, s) for f, s in zip(parts, _signatures(kind), strict=True)]
    return float(_kernel(kind)(world, *functions))


def _pass_of(world: World) -> Callable[..., None]:
    mode = int(world.options[BACKFILL])
    return greedy_pass_with_limit if mode == GREEDY and world.max_wait[0] < np.inf else _PASSES[mode]


@cache
def _signatures(world: Any) -> tuple[Any, Any, Any, Any]:
    part = dict(zip(World._fields, world.types, strict=True))
    jobs, knobs = part["queue"].types[0], part["knobs"]
    on_node = (part["machines"], part["requests"], types.int64, types.int64, knobs)
    key = types.float64(jobs, types.int64, types.float64, knobs)
    score, devices = types.float64(*on_node), types.int64(*on_node)
    on_world = (world, types.float64, types.FunctionType(score), types.FunctionType(devices))
    return key, score, devices, types.void(*on_world)


@cache
def _kernel(world: Any) -> Any:
    functions = [types.FunctionType(signature) for signature in _signatures(world)]
    return compiled_as(run, types.float64(world, *functions))


@cache
def _compiled(function: Callable[..., Any], signature: Any) -> Any:
    return compiled_as(function, signature)
