"""How long profiling takes: `python -m benchmarks.profiling` (CPU seconds, one thread)."""

from __future__ import annotations

import time

from gputwin.profiling.classes.classes import find_classes
from gputwin.profiling.jobs import History, Submitted
from gputwin.profiling.model import fit
from gputwin.traces.locate import open_trace

JOBS = 100_000


def main() -> None:
    trace = open_trace(f"synthetic:pai2020?jobs={JOBS}")
    history = History.of(trace)
    small = fit("forest", history.take(history.jobs.arrival < history.jobs.arrival[2000]))
    small.forecast(history.jobs.take(history.jobs.job < 100))
    find_classes(trace, history.jobs.take(history.jobs.job < 500))

    begin = time.process_time()
    classes = find_classes(trace, history.jobs)
    clustered = time.process_time() - begin
    begin = time.process_time()
    model = fit("forest", history)
    trained = time.process_time() - begin
    print(f"{history.size:,} tasks of {JOBS:,} jobs, {classes.rows_clustered:,} clustered, the rest assigned")
    print(f"classes {clustered:.1f} CPU s, training {trained:.1f} CPU s (together under 180)")
    model.forecast(history.jobs.take(history.jobs.job < 100))
    begin = time.process_time()
    model.forecast(history.jobs)
    batch = time.process_time() - begin
    print(f"prediction {history.size / batch:,.0f} tasks per CPU s in batch (at least 200,000)")
    rows = [Submitted(history.jobs.frame[row]) for row in range(0, 2000, 10)]
    begin = time.process_time()
    for job in rows:
        model.forecast(job)
    print(f"prediction of one job {(time.process_time() - begin) / len(rows) * 1e3:.2f} CPU ms (at most 1)")


if __name__ == "__main__":
    main()
