"""The arrays of a run, made from its requests and its kind of replica."""

from __future__ import annotations

import numpy as np

from gputwin.autoscaling.serving.system import UNLIMITED, Engine, Load, Slots
from gputwin.autoscaling.serving.world import (
    CLOCKS,
    COUNTERS,
    NOBODY,
    Batches,
    Bytes,
    Events,
    Floats,
    Integers,
    Limits,
    Queues,
    Replicas,
    Requests,
    World,
)

LOG_FIELDS = 6


def build(load: Load, system: Slots | Engine, rows: int, boot: Floats, queue_limit: int | None) -> World:
    """Return the world before the first arrival, with room for `rows` replicas and none of them there."""
    n = len(load)
    engine = system if isinstance(system, Engine) else Engine(0.0, 0.0, 0.0)
    per_replica = system.slots if isinstance(system, Slots) else system.sequences
    batched = isinstance(system, Engine)
    pending = n * (load.patience is not None) + rows * (1 if batched else per_replica) + 2 * rows + 64
    limits = Limits(
        per_replica,
        UNLIMITED if queue_limit is None else queue_limit,
        engine.batched_tokens,
        engine.cache_tokens,
        engine.step_seconds,
        engine.prefill_seconds,
        engine.decode_seconds,
        engine.context_seconds,
        engine.attention_seconds,
    )
    return World(
        _requests(load, n),
        _replicas(rows, boot),
        Queues(*(_integers(count, NOBODY) for count in (rows + 1, rows + 1, n, n))),
        _events(pending),
        _batches(rows if batched else 1, engine.sequences if batched else 1),
        limits,
        _integers(COUNTERS),
        np.zeros(CLOCKS),
    )


def _integers(count: int, value: int = 0) -> Integers:
    return np.full(count, value, dtype=np.int64)


def _floats(count: int, value: float = 0.0) -> Floats:
    return np.full(count, value)


def _events(pending: int) -> Events:
    return Events(
        time=np.zeros(pending),
        kind=_integers(pending),
        sequence=_integers(pending),
        row=_integers(pending),
        request=_integers(pending),
        size=_integers(1),
        pushed=_integers(1),
    )


def _requests(load: Load, n: int) -> Requests:
    # Copies: a read-only array is another type to the compiler, which would compile the loop anew.
    def given(values: Floats | Integers | None, default: float, kind: type) -> np.ndarray:
        return np.full(n, default, kind) if values is None else np.array(values, dtype=kind)

    status: Bytes = np.zeros(n, dtype=np.int8)
    return Requests(
        np.array(load.arrival, dtype=float),
        given(load.service, 0.0, np.float64),
        given(load.patience, np.inf, np.float64),
        given(load.model, NOBODY, np.int64),
        given(load.adapter, NOBODY, np.int64),
        given(load.model_load, 0.0, np.float64),
        given(load.adapter_load, 0.0, np.float64),
        np.maximum(given(load.input_tokens, 1, np.int64), 1),
        np.maximum(given(load.output_tokens, 1, np.int64), 1),
        status,
        _floats(n, -1.0),
        _floats(n, -1.0),
        _floats(n, -1.0),
        _integers(n, NOBODY),
        _integers(n),
        _integers(n),
        _integers(n, int(np.iinfo(np.int64).max)),
        _integers(n),
    )


def _replicas(rows: int, boot: Floats) -> Replicas:
    return Replicas(
        state=np.zeros(rows, dtype=np.int8),
        number=_integers(rows),
        launched=_floats(rows),
        ready=_floats(rows),
        drained=_floats(rows, -1.0),
        busy=_integers(rows),
        routed=_integers(rows),
        busy_seconds=_floats(rows),
        last_used=_floats(rows),
        model=_integers(rows, NOBODY),
        adapter=_integers(rows, NOBODY),
        served=_integers(rows),
        boot=np.array(boot),
        log=np.zeros((max(256, 4 * rows), LOG_FIELDS)),
    )


def _batches(rows: int, sequences: int) -> Batches:
    counts = [_integers(rows) for _ in range(6)]
    steps, next_end, decoding, context, filling, planned = counts
    next_end[:] = np.iinfo(np.int64).max
    return Batches(
        np.zeros((rows, sequences), dtype=np.int64),
        steps,
        next_end,
        decoding,
        context,
        filling,
        planned,
        np.zeros(rows, dtype=np.int8),
    )
