"""How well step times fitted to the first half of a real vLLM run predict its second half.

    python -m benchmarks.vllm_runs FOLDER…   # each with meta.json (engine_kwargs) and requests.csv

`requests.csv` has arrival_s, input_tokens, output_tokens, measured_ttft_s and measured_e2e_s. Arrivals and tokens of all
requests are known; measured times of the second half are only compared with. Fails if the mean latency is off by more than
5 %, or the mean time to first token by more than 15 %.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import polars as pl

from gputwin.autoscaling.serving.calibrate import Measured, calibrate
from gputwin.autoscaling.serving.simulator import Simulator
from gputwin.autoscaling.serving.system import Engine, Load


def errors(folder: Path) -> tuple[float, float]:
    """Return the relative errors of the mean latency and the mean time to first token on the second half."""
    limits = json.loads((folder / "meta.json").read_text(encoding="utf-8"))["engine_kwargs"]
    column = {c.name: c.to_numpy() for c in pl.read_csv(folder / "requests.csv")}
    load = Load(column["arrival_s"], input_tokens=column["input_tokens"], output_tokens=column["output_tokens"])
    late = np.arange(len(load)) >= len(load) // 2
    first_token, latency = column["measured_ttft_s"], column["measured_e2e_s"]
    engine = Engine(0.0, 0.0, 0.0, sequences=limits["max_num_seqs"], batched_tokens=limits["max_num_batched_tokens"])
    engine = calibrate(load, Measured(np.where(late, np.nan, first_token), np.where(late, np.nan, latency)), engine)
    run = Simulator(load, engine, replicas=1, most_replicas=1)
    run.finish()
    whole = run.latencies()[late].mean() / latency[late].mean() - 1
    return float(whole), float(run.first_token_seconds()[late].mean() / first_token[late].mean() - 1)


def main() -> int:
    is_off = False
    for name in sys.argv[1:]:
        whole, first = errors(Path(name))
        is_off |= abs(whole) > 0.05 or abs(first) > 0.15
        print(f"{Path(name).name}: mean latency {whole:+.1%}, mean time to first token {first:+.1%}")
    return int(is_off)


if __name__ == "__main__":
    sys.exit(main())
