"""What is simulated, as plain data: the requests that come, and the kind of replica that serves them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gputwin.autoscaling.serving.world import Floats, Integers
from gputwin.core.errors import UserError

UNLIMITED = 2**62


@dataclass(frozen=True)
class Slots:
    """A general service: each replica serves `slots` requests at once, each for its own service time."""

    slots: int = 1


@dataclass(frozen=True)
class Engine:
    """An LLM engine and how long its steps take.

    A step lasts step + prefill × prompt tokens + attention × pairs of prompt tokens + decode × decoding sequences +
    context × their tokens, s.
    """

    step_seconds: float
    prefill_seconds: float
    decode_seconds: float
    context_seconds: float = 0.0
    attention_seconds: float = 0.0
    sequences: int = 128
    """Most sequences in a batch."""
    batched_tokens: int = 2048
    """Most tokens in a step; longer prompts are computed in chunks."""
    cache_tokens: int = UNLIMITED
    """Tokens whose keys and values fit into a replica's memory."""


@dataclass(frozen=True)
class Load:
    """Requests in order of arrival, s; service times for `Slots`, tokens for `Engine`."""

    arrival: Floats
    service: Floats | None = None
    input_tokens: Integers | None = None
    output_tokens: Integers | None = None
    patience: Floats | None = None
    model: Integers | None = None
    """Base model of each request, a number; None or -1: any."""
    adapter: Integers | None = None
    """Set of adapters, a number; None or -1: none."""
    model_load: Floats | None = None
    adapter_load: Floats | None = None
    tenant: tuple[str, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        """Return the number of requests."""
        return len(self.arrival)

    def between(self, begin: float, end: float) -> Load:
        """Return the requests that arrive from `begin` to before `end`, on a clock that starts at `begin`."""
        first, last = (int(i) for i in np.searchsorted(self.arrival, (begin, end)))
        parts: dict[str, Any] = {
            name: value[first:last] for name, value in vars(self).items() if isinstance(value, np.ndarray | tuple)
        }
        return replace(self, **{**parts, "arrival": self.arrival[first:last] - begin})


def check(load: Load, system: Slots | Engine) -> None:
    """Raise a UserError where the requests do not suit the system."""
    if isinstance(system, Slots) and load.service is None:
        raise UserError("the requests have no service times; give them, or tokens and an LLM engine")
    if isinstance(system, Engine) and (load.input_tokens is None or load.output_tokens is None):
        raise UserError("the requests have no tokens; give them, or service times and a general service")
    if isinstance(system, Slots) and system.slots > 1 and load.model is not None:
        raise UserError("a replica that holds one base model serves one request at a time; set slots to 1")
    if isinstance(system, Engine) and system.sequences > system.batched_tokens:
        raise UserError(f"{system.sequences} sequences do not fit into steps of {system.batched_tokens} tokens")
    if len(load) and (not np.all(np.diff(load.arrival) >= 0) or load.arrival[0] < 0):
        raise UserError("arrivals must not be negative and must be in order; sort the requests by time")
