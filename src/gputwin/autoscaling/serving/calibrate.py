"""Step times of an LLM engine, fitted to the latencies that requests were measured to have."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gputwin.autoscaling.serving.simulator import Simulator
from gputwin.autoscaling.serving.system import Engine, Load
from gputwin.autoscaling.serving.world import Floats

_FITTED = ("step_seconds", "prefill_seconds", "decode_seconds", "context_seconds", "attention_seconds")
_START = (0.01, 5e-5, 1e-4, 1e-7, 1e-9)
"""Where the search begins: a model of some 10¹⁰ parameters on one accelerator."""
_TOO_SMALL = 1e-12


@dataclass(frozen=True)
class Measured:
    """What requests were measured to take, s; NaN where it is not known, or not to be used."""

    first_token: Floats
    latency: Floats


def calibrate(load: Load, measured: Measured, engine: Engine | None = None) -> Engine:
    """Return `engine` (its limits) with the step times under which one replica's latencies are nearest to the measured ones.

    Least squares of the logarithms of the latency and of the time to first token. All requests of `load` take part in the
    simulation; only those with a measured time are compared.
    """
    from scipy.optimize import least_squares

    limits = engine or Engine(*_START[:3])
    known = (measured.first_token > 0, measured.latency > 0)

    def with_times(x: Floats) -> Engine:
        return replace(limits, **dict(zip(_FITTED, np.exp(x).tolist(), strict=True)))

    def errors(x: Floats) -> Floats:
        run = Simulator(load, with_times(x), replicas=1, most_replicas=1)
        run.finish()
        first, whole = run.first_token_seconds(), run.latencies()
        return np.concatenate(
            [
                np.log(np.maximum(first[known[0]], _TOO_SMALL) / measured.first_token[known[0]]),
                np.log(np.maximum(whole[known[1]], _TOO_SMALL) / measured.latency[known[1]]),
            ]
        )

    best = None
    for factor in (0.3, 1.0, 3.0, 10.0):
        start = np.log(np.array(_START) * factor)
        # Steps of a percent: latencies jump where a request moves to another step.
        found = least_squares(errors, start, diff_step=0.01, loss="soft_l1", f_scale=0.1, max_nfev=60)
        if best is None or found.cost < best.cost:
            best = found
    assert best is not None
    return with_times(best.x)
