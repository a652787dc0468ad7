"""Every plot of the publisher's PAI v2020 notebook has its place in the report of a PAI trace."""

from __future__ import annotations

import polars as pl
import pytest

from gputwin.report.page import FigurePart
from gputwin.traces.dataset import Trace
from gputwin.traces.synthetic import generate
from tests.report.samples import figures

PLOTS = {
    "tasks per user, CDF": ("tasks-per-owner", {"value", "share"}),
    "share of instances per task": ("instances-per-task", {"instances", "instance_share"}),
    "task submissions by week": ("week", {"weekday", "hour", "per_hour"}),
    "task submissions by hour of day, box plot": ("hours", {"hour", "p25", "p50", "p75"}),
    "requested CPU by week": ("week-requests", {"hour_of_week", "cores"}),
    "requested GPU by week": ("week-requests", {"hour_of_week", "gpus"}),
    "requested memory by week": ("week-requests", {"hour_of_week", "gib"}),
    "requested CPU, GPU, memory by hour": ("hour-requests", {"hour", "cores", "gpus", "gib"}),
    "runtime CDF beside Philly's": ("runtime-philly", {"of", "value", "share"}),
    "wait over completion, short half, all, long half": ("wait-over-completion", {"tasks", "value", "share"}),
    "wait CDF by GPU request": ("wait-curve-gpu-request", {"group", "value", "share"}),
    "wait CDF by GPU type": ("wait-curve-gpu-model", {"group", "value", "share"}),
    "share of tasks by GPU type": ("by-gpu-model", {"group", "task_share"}),
    "runtime by GPU type": ("runtime-curve-gpu-model", {"group", "value", "share"}),
    "request against use, CDF, for CPU, GPU, memory": ("request-use", {"resource", "request", "use"}),
    "(plan − use) over capacity": ("idle-capacity", {"resource", "idle_over_capacity"}),
    "network receive rate per machine": ("machine-network", {"value", "share"}),
    "I/O wait, user and kernel CPU per machine": ("machine-cpu", {"of", "value", "share"}),
}


@pytest.fixture(scope="module")
def parts() -> dict[str, FigurePart]:
    trace = generate("pai2020", jobs=1500, seed=1, instances=True).to_trace()
    # Two hours of arrivals drawn out to two weeks: patterns want weeks, and the test few jobs.
    first = trace.tasks["submit_time"].min()
    later = (pl.col("submit_time") - first) * 170
    times = [(pl.col(c) + later).alias(c) for c in ("submit_time", "start_time", "end_time")]
    frames = {name: trace.frame(name) for name in trace.meta.tables}
    return figures(Trace.from_frames(frames | {"tasks": trace.tasks.with_columns(times)}, trace.meta))


@pytest.mark.parametrize("plot", PLOTS)
def test_the_plot_is_there_with_its_data(parts: dict[str, FigurePart], plot: str) -> None:
    id_, columns = PLOTS[plot]
    assert columns <= set(parts[id_].data.columns)
    assert parts[id_].data.height > 1
    assert parts[id_].figure.data


def test_the_curves_are_those_the_notebook_draws(parts: dict[str, FigurePart]) -> None:
    assert set(parts["wait-over-completion"].data["tasks"]) == {"short half", "all", "long half"}
    assert set(parts["request-use"].data["resource"]) == {"CPU", "GPU", "memory"}
    assert set(parts["runtime-philly"].data["of"]) == {"this trace", "Philly 2017"}
    assert {"waiting for I/O", "user mode", "kernel mode"} <= set(parts["machine-cpu"].data["of"])
    assert set(parts["hours"].data["hour"]) == set(range(24))
