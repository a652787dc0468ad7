"""Requests of one token with no limits are a batch-service queue, whose mean latency is known exactly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gputwin.autoscaling.serving.system import Engine, Load
from tests.autoscaling.serving.runs import poisson, rows, served

EVERYBODY = 10**6
PER_RUN = 400_000
RUNS_BY_LOAD = {0.1: 1, 0.3: 1, 0.5: 1, 0.7: 2, 0.85: 8}
"""Waits at a high load hang together over many requests; runs are repeated to a standard error of some 0.3 %."""


@pytest.mark.parametrize("number", range(24))
def test_mean_latency_of_batch_service(number: int, reference: Path) -> None:
    """Everybody who waits is served in one batch of b, which takes alpha × b + tau0."""
    points = rows(reference / "oracles" / "serving" / "batch_service_queue.csv")
    assert len(points) == 24
    point = points[number]
    alpha, tau, rate, rho = (float(point[k]) for k in ("alpha", "tau0", "lambda", "rho=lambda*alpha"))
    engine = Engine(tau, alpha, 0.0, sequences=EVERYBODY, batched_tokens=EVERYBODY)
    one = np.ones(PER_RUN, dtype=np.int64)
    batch_is_large = float(point["mean_batch_size"]) > 5
    latencies = []
    for run in range(1 if batch_is_large else RUNS_BY_LOAD[rho]):
        load = Load(poisson(rate, PER_RUN, "batch", number, run), input_tokens=one, output_tokens=one)
        latencies.append(served(load, engine, 1).latencies().mean())
    assert np.mean(latencies) == pytest.approx(float(point["exact_mean_latency"]), rel=0.01)
