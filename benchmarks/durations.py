"""How well durations are predicted: `python -m benchmarks.durations FILE… [--online] [--shuffled] [--model=NAME …]`.

A task counts once; where the trace has usage, a second pair of figures counts it once per instance measured, which is
how the rows of a joined sample count.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from gputwin.profiling.evaluation.evaluate import Evaluation, evaluate_in_time, evaluate_shuffled
from gputwin.profiling.jobs import History, Ints
from gputwin.profiling.model import MODELS
from gputwin.traces.dataset import Trace
from gputwin.traces.ingest import ingest

REPEATS = 5


def rows_per_task(trace: Trace, history: History) -> Ints:
    """Return how many measured instances each task has: the rows of a joined sample."""
    counts = trace.usage.group_by("job_id", "role").len()
    tasks = history.jobs.frame.select("job_id", "role")
    joined = tasks.join(counts, on=["job_id", "role"], how="left", maintain_order="left")
    return joined["len"].fill_null(1).to_numpy()


def by_row(trace: Trace, history: History, found: Evaluation) -> str:
    if not trace.has("usage"):
        return ""
    frame = found.predictions
    weights = rows_per_task(trace, history)[frame["row"].to_numpy()]
    actual, predicted = frame["actual"].to_numpy(), frame["predicted"].to_numpy()
    near = np.maximum(actual / predicted, predicted / actual) <= 2
    error = np.average(np.abs(actual - predicted), weights=weights)
    return f"{error:8,.0f} {np.average(near, weights=weights):6.3f}"


def main(arguments: list[str]) -> None:
    files = [Path(a) for a in arguments if not a.startswith("--")]
    trace = ingest(files)
    history = History.of(trace)
    names = [a.partition("=")[2] for a in arguments if a.startswith("--model=")] or MODELS.names()
    tests = [
        (f"in time order, {history.size:,} tasks", evaluate_in_time(history, names, online="--online" in arguments))
    ]
    if "--shuffled" in arguments:
        tests.append(
            (f"10 folds grouped by job, {REPEATS} shuffles", evaluate_shuffled(history, names, repeats=REPEATS))
        )
    for title, found in tests:
        print(title)
        print(f"{'model':18} {'MAE s':>8} {'med. s':>7} {'2×':>6} {'80 %':>6} {'rank':>6} {'by row: MAE s, 2×':>18}")
        for e in found:
            s = e.scores
            print(
                f"{e.model:18} {s.mae_seconds:8,.0f} {s.median_error_seconds:7,.0f} {s.within_2x:6.3f} "
                f"{s.coverage:6.3f} {s.rank_correlation:6.3f} {by_row(trace, history, e):>18}"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
