"""Sentences of reports are true of their figures, also where all are equal, zero, or named by numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from gputwin.analysis.dimensions import BY_NAME
from gputwin.analysis.tenants import remarks_on
from gputwin.analysis.words import over_or_none
from gputwin.autoscaling.verdict import _minutes_against
from gputwin.core.units import signed_duration
from gputwin.report.mig import _periods_words
from gputwin.report.sections.comparison import _signed, shown_metric
from gputwin.report.sections.forecast import in_unit
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.load import check_load
from gputwin.simulation.waits_by_tenant import TenantView
from gputwin.studies.prediction_value.verdict import _answer
from gputwin.studies.validation.verdict import _granted
from gputwin.traces.dataset import Trace
from tests.report.samples import figures, sections, trace_of


def task(k: int, **more: Any) -> dict[str, Any]:
    times = {"submit_time": 60.0 * k, "start_time": 60.0 * k + 5, "end_time": 60.0 * k + 605, "duration_seconds": 600.0}
    return {"job_id": f"j{k}", "gpu_count": 1, "gpu_milli": 1000, **times, **more}


def gist(trace: Trace) -> str:
    return sections(trace)["overview"].conclusion


def test_tasks_last_seen_running_whose_end_is_known_are_not_called_running_at_the_end() -> None:
    ended = trace_of({"tasks": [task(k, status="running") for k in range(4)]})
    assert gist(ended).endswith("100.0 % of tasks have the status running.")
    unknown = {"end_time": None, "duration_seconds": None, "is_running": True}
    running = trace_of({"tasks": [task(k, status="running", **unknown) for k in range(4)]})
    assert gist(running).endswith("100.0 % of tasks were still running when it ended.")


def test_captions_say_of_which_tasks_a_figure_is() -> None:
    rows = [
        task(k, gpu_count=1 + 8 * (k % 2), tenant=f"{k % 2}1", end_time=60.0 * k + 605 + 60 * (k % 2))
        for k in range(60)
    ]
    found = figures(trace_of({"tasks": rows}))
    assert "The mean is longest for tasks of tenant “11”: " in found["runtime-by-tenant"].caption
    assert "the largest has 30 tasks that ask for " in found["wait-curve-gpu-request"].caption
    caption = found["by-job-class"].caption
    assert caption.startswith("2 groups. The most frequent are tasks of job class “")
    assert BY_NAME["gpu_request"].tasks_of("≤16") == "tasks that ask for over 8 and up to 16 GPUs"


def test_a_tenant_named_by_a_number_begins_no_sentence() -> None:
    table = pl.DataFrame(
        {
            "tenant": ["17", "42"],
            "mean_wait_seconds": [0.0, 3600.0],
            "waited_gpu_hours": [6.0, 4.0],
            "others_wait_gpu_hours": [4.0, 6.0],
            "gpu_hour_share": [0.5, 0.5],
        }
    )
    charges = pl.DataFrame({"waiting": ["17", "42"], "holding": ["42", "17"], "gpu_hours": [6.0, 4.0]})
    first, second = (remark.text for remark in remarks_on(table, charges, "user"))
    assert first.startswith("User 17 waits most for GPUs")
    assert second.startswith("User 42 holds most of what others wait for")
    assert "; user 17 waits for that most" in second


def test_unknown_tenants_that_wait_for_a_plan_are_several() -> None:
    tenants = pl.DataFrame({"tenant": ["unknown"], "mean_wait_seconds": [60.0]})
    nothing = pl.DataFrame(schema={"waiting": pl.String, "holding": pl.String, "gpu_hours": pl.Float64})
    causes = pl.DataFrame({"tenant": ["unknown"], "cause": ["quota_or_fairness"], "gpu_hours": [9.0]})
    (said,) = TenantView(tenants, nothing, causes).sentences()
    assert said.startswith("Jobs of unknown tenants wait 9 GPU-hours ")


def test_a_percentile_of_zero_is_not_said_to_be_exceeded() -> None:
    assert over_or_none(0.0) == "95 % or more do not wait"
    assert over_or_none(70.0) == "one in twenty over 1 min 10 s"


def test_the_load_that_is_ever_asked_for_is_not_rounded_below_itself() -> None:
    trace = trace_of({"tasks": [task(0)]})
    check = check_load(trace, Cluster("many", (NodeGroup("gpu", 70, 1),)))
    assert "at most 1.4 % of GPUs is ever asked for" in check.verdict


@pytest.mark.parametrize(
    ("hybrid", "hpa", "said"),
    [
        (0, 0, "neither violates the SLA"),
        (1, 1, "both violate the SLA in 1 minute"),
        (1, 5, "violates the SLA in 1 minute against 5"),
    ],
)
def test_two_rules_that_miss_alike_are_called_alike(hybrid: int, hpa: int, said: str) -> None:
    assert _minutes_against(hybrid, hpa) == said


def test_no_difference_has_no_sign_and_slowdowns_have_one_precision() -> None:
    assert (signed_duration(0.0), signed_duration(60.0), _signed("mean slowdown", 0.0)) == (
        "0 s",
        "+1 min 00 s",
        "0.00",
    )
    assert [shown_metric("mean slowdown", value) for value in (4.449, 14.61)] == ["4.45", "14.61"]


def test_rates_are_written_as_rates() -> None:
    assert in_unit(3.8, "1/s") == "3.8/s"


def test_predictions_that_do_better_than_known_durations_are_not_a_part_of_them() -> None:
    oracle, best = SimpleNamespace(is_shorter=True), SimpleNamespace(rule="forest", gain_kept=1.72)
    assert _answer(oracle, best) == (  # type: ignore[arg-type]
        "Better predictions would help little: predictions of the forest model shorten waits more than knowing all "
        "durations (172 % of that gain)."
    )


def test_layouts_over_time_say_where_demand_is_missing() -> None:
    frame = pl.DataFrame({"period": [1, 1, 2], "wanted": [60, 100, 600], "served": [60, 100, 280]})
    assert _periods_words(frame) == (
        "All of the demand is served in 1 of 2 periods; most is missing in period 2: 280 of 600 instances are served."
    )
    assert _periods_words(frame.head(2)) == "All of the demand is served in every period."


@pytest.mark.parametrize(
    ("theory", "simulated", "spread", "said"),
    [
        (100.0, 90.0, 1.0, "M/M/c is right: 1 min 40 s by theory, 1 min 30 s simulated."),
        (2.63, 0.414, 0.1, "M/M/c gives 2.63 s and simulation 0.414 s: both next to nothing."),
        (60.0, 30.0, 15.0, "M/M/c gives 1 min 00 s and simulation 30 s: no further apart than seeds scatter."),
        (60.0, 30.0, 1.0, "steady state (1 min 00 s) is not what so short a record shows (30 s)."),
    ],
)
def test_theory_is_called_right_only_where_it_is_near(
    theory: float, simulated: float, spread: float, said: str
) -> None:
    assert _granted(theory, simulated, spread).endswith(said)
