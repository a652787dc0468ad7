"""The state of a serving run as arrays: requests, replicas, queues, pending events, counters.

Both loops (`slots`, `tokens`) work on the same `World`; arrays only one of them needs have one row in the other.
Times are seconds from the start of the run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bytes = NDArray[np.int8]

# What a request is doing.
COMING, WAITING, RUNNING, SERVED, DROPPED, ABANDONED = range(6)
# What a replica is doing; OFF rows are free for the next launch.
OFF, BOOTING, UP, DRAINING = range(4)
# Kinds of events, in the order in which events of one instant happen. Arrivals come last.
COMPLETION, STEP, READY, EXPIRY = range(4)
# Counters. The first seven count requests, so that arrived = served + dropped + abandoned + waiting + running.
N_ARRIVED, N_SERVED, N_DROPPED, N_ABANDONED, N_WAITING, N_RUNNING, N_PREEMPTED = range(7)
N_EVENTS, N_LAUNCHED, N_LOGGED, N_ROWS, N_FREE_SLOTS, N_REFUSED, N_UP, N_PAID, N_LOADS = range(7, 16)
COUNTERS = 16
# Clocks: now, and integrals over time since the run began: requests waiting and running, replicas up and paid for.
T_NOW, T_WAITING, T_RUNNING, T_READY, T_PAID = range(5)
CLOCKS = 5
CENTRAL = 0
"""The queue shared by all replicas; row r has queue r + 1 of its own, of requests routed to it."""
NOBODY = -1


class Requests(NamedTuple):
    """Requests in order of arrival: what they ask for, and what became of them."""

    arrival: Floats
    service: Floats
    patience: Floats
    """s that a request waits before it leaves; infinite for one that waits to the end."""
    model: Integers
    """Base model it needs; -1 for any."""
    adapter: Integers
    """Set of adapters it needs; -1 for none."""
    model_load: Floats
    """s to load the base model, where the replica holds another."""
    adapter_load: Floats
    """s to load its adapters, where the replica holds others."""
    input_tokens: Integers
    output_tokens: Integers
    status: Bytes
    start: Floats
    first_token: Floats
    finish: Floats
    row: Integers
    """Row of the replica that has it."""
    computed: Integers
    """Tokens of the prompt in the cache."""
    produced: Integers
    """Output tokens made before the request last (re)entered the batch."""
    ends_at_step: Integers
    completed: Integers
    """Requests in the order in which they were served."""


class Replicas(NamedTuple):
    """Rows of replicas, each used again once its replica has stopped."""

    state: Bytes
    number: Integers
    """Which launch it is, counted from one."""
    launched: Floats
    ready: Floats
    drained: Floats
    busy: Integers
    """Requests it works on."""
    routed: Integers
    """Requests in its own queue."""
    busy_seconds: Floats
    """Slot-seconds in use so far (`slots`), or seconds in steps (`tokens`)."""
    last_used: Floats
    model: Integers
    adapter: Integers
    served: Integers
    boot: Floats
    """Boot delays, s, of the launches to come, used in turn."""
    log: Floats
    """One row per stopped replica: launched, ready, drained, stopped, busy seconds, requests served."""


class Queues(NamedTuple):
    """First-in-first-out lists of waiting requests, linked by `after` and `before`."""

    head: Integers
    tail: Integers
    after: Integers
    """The request behind each request."""
    before: Integers


class Events(NamedTuple):
    """Pending events as a binary heap by (time, kind, sequence)."""

    time: Floats
    kind: Integers
    sequence: Integers
    row: Integers
    request: Integers
    size: Integers
    pushed: Integers
    """Events ever pushed."""


class Batches(NamedTuple):
    """What each replica's engine batches (`tokens`)."""

    members: Integers
    """Rows × sequences: requests admitted, in order."""
    steps: Integers
    next_end: Integers
    """Step at which the next decoding request ends."""
    decoding: Integers
    context: Integers
    """Tokens of the decoding requests in the cache."""
    filling: Integers
    """Tokens in the cache of requests whose prompt is not complete."""
    planned_prefill: Integers
    is_stepping: Bytes


class Limits(NamedTuple):
    """What a replica and the queue can take, and how long steps last."""

    slots: int
    """Requests that a replica serves at once (`slots`), sequences in its batch (`tokens`)."""
    queue_limit: int
    batched_tokens: int
    cache_tokens: int
    step_seconds: float
    prefill_seconds: float
    """Per prompt token."""
    decode_seconds: float
    """Per sequence that decodes."""
    context_seconds: float
    """Per token of context that decoding sequences attend to."""
    attention_seconds: float
    """Per pair of prompt token and token before it."""


class World(NamedTuple):
    """Everything a run changes."""

    requests: Requests
    replicas: Replicas
    queues: Queues
    events: Events
    batches: Batches
    limits: Limits
    counters: Integers
    clocks: Floats
