"""Two real vLLM runs: step times fitted to the first half of the requests predict the second half.

Arrivals and tokens of all requests are known; latencies and times to first token of the second half are never used.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gputwin.autoscaling.serving.calibrate import Measured, calibrate
from gputwin.autoscaling.serving.system import Engine, Load
from tests.autoscaling.serving.runs import rows, served

RUNS = ("RTXPRO6000_Llama-3.1-8B", "RTXPRO6000_Qwen3-32B")


@pytest.mark.parametrize("name", RUNS)
def test_first_half_predicts_second(name: str, reference: Path) -> None:
    folder = reference / "oracles" / "serving" / "vllm_runs" / name
    settings = json.loads((folder / "meta.json").read_text(encoding="utf-8"))["engine_kwargs"]
    table = rows(folder / "requests.csv")
    column = {k: np.array([float(r[k]) for r in table]) for k in table[0]}
    load = Load(
        column["arrival_s"],
        input_tokens=column["input_tokens"].astype(np.int64),
        output_tokens=column["output_tokens"].astype(np.int64),
    )
    late = np.arange(len(load)) >= len(load) // 2
    first_token, latency = column["measured_ttft_s"], column["measured_e2e_s"]
    limits = Engine(
        0.0, 0.0, 0.0, sequences=settings["max_num_seqs"], batched_tokens=settings["max_num_batched_tokens"]
    )
    known = Measured(np.where(late, np.nan, first_token), np.where(late, np.nan, latency))
    engine = calibrate(load, known, limits)
    run = served(load, engine, 1)
    assert late.sum() == 150
    assert run.latencies()[late].mean() == pytest.approx(latency[late].mean(), rel=0.05)
    assert run.first_token_seconds()[late].mean() == pytest.approx(first_token[late].mean(), rel=0.15)
    # Each request, not only their mean.
    assert np.median(np.abs(run.latencies()[late] / latency[late] - 1)) < 0.05
