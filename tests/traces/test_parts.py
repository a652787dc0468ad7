"""Parts of a trace by tenant, model and chance, and several traces as one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from gputwin.cli.main import main
from gputwin.core.errors import UserError
from gputwin.traces.dataset import Trace, TraceMeta
from gputwin.traces.ingest import Options, ingest
from gputwin.traces.lifetimes import held
from gputwin.traces.measures import RUNTIME
from gputwin.traces.merging import merge
from gputwin.traces.reader import Clock
from gputwin.traces.readers.mapped import parse_map
from gputwin.traces.schema import REQUESTS, TASKS, conform
from gputwin.traces.slicing import Selection, select

MIDNIGHT = datetime(2024, 3, 1, tzinfo=UTC).timestamp()
HOUR, DAY = 3600.0, 86400.0


def trace(
    ids: list[str],
    submit: list[float],
    end: list[float | None],
    origin: float = MIDNIGHT,
    clock: Clock = Clock.ABSOLUTE,
) -> Trace:
    tasks = pl.DataFrame(
        {
            "job_id": ids,
            "tenant": ["a" if k % 2 else "b" for k in range(len(ids))],
            "gpu_models_allowed": ["V100|T4" if k % 3 else "A100" for k in range(len(ids))],
            "submit_time": submit,
            "start_time": submit,
            "end_time": pl.Series(end, dtype=pl.Float64),
            "is_running": [e is None for e in end],
        }
    )
    frames = {"tasks": conform(TASKS, tasks.lazy()).collect()}
    origin_or_none = origin if clock == Clock.ABSOLUTE else None
    return Trace.from_frames(frames, TraceMeta("test", clock=clock, origin_unix_seconds=origin_or_none))


@pytest.fixture
def week() -> Trace:
    submit = [k * DAY / 10 for k in range(70)]
    return trace([f"j{k}" for k in range(70)], submit, [s + 100 for s in submit])


def ids(part: Trace) -> list[str]:
    return part.tasks["job_id"].to_list()


def test_a_day_is_cut_by_dates_of_the_traces_zone_or_times_after_its_start(week: Trace) -> None:
    by_date, _ = select(week, Selection(since="2024-03-02", until="2024-03-03"))
    by_time, _ = select(week, Selection(since="1d", until="2d"))
    assert ids(by_date) == ids(by_time) == [f"j{k}" for k in range(10, 20)]


def test_tenants_and_models_restrict_together(week: Trace) -> None:
    part, cut = select(week, Selection(tenants=("a",), models=("V100",)))
    assert cut is None
    assert ids(part) == [f"j{k}" for k in range(70) if k % 2 and k % 3]


def test_a_name_that_nobody_has_is_refused_with_those_that_are_there(week: Trace) -> None:
    with pytest.raises(UserError, match=r"no tenant 'c' in the trace; the most frequent: a, b"):
        select(week, Selection(tenants=("c",)))
    with pytest.raises(UserError, match=r"no model 'H100' in the trace; the most frequent: T4, V100, A100"):
        select(week, Selection(models=("H100",)))


def test_a_sample_is_that_share_and_the_same_for_the_same_seed() -> None:
    many = trace([f"j{k}" for k in range(20_000)], [float(k) for k in range(20_000)], [None] * 20_000)
    one, again, other = (select(many, Selection(sample="10%", seed=s))[0] for s in (1, 1, 2))
    assert ids(one) == ids(again) != ids(other)
    # 20,000 draws at 10 %: five standard deviations are 212.
    assert abs(one.tasks.height - 2000) < 212


def test_a_trace_without_dates_cannot_be_cut_by_them() -> None:
    relative = trace(["x"], [0.0], [1.0], clock=Clock.RELATIVE)
    with pytest.raises(UserError, match="has no dates"):
        select(relative, Selection(since="2024-03-02"))


def test_nothing_asked_is_a_mistake(week: Trace) -> None:
    with pytest.raises(UserError, match="say which part"):
        select(week, Selection())


def test_requests_alone_are_cut_too() -> None:
    requests = pl.DataFrame({"request_id": [str(k) for k in range(10)], "submit_time": [float(k) for k in range(10)]})
    serving = Trace.from_frames({"requests": conform(REQUESTS, requests.lazy()).collect()}, TraceMeta("test"))
    part, _ = select(serving, Selection(first="70%"))
    assert part.requests["request_id"].to_list() == [str(k) for k in range(7)]


def test_months_are_put_on_one_clock_and_a_job_in_both_counts_once_as_it_ended() -> None:
    march = trace(["a", "b"], [0.0, 2 * DAY], [10.0, None])
    # The same job b, seen from a later origin: it ended on the third day.
    april = trace(["b", "c"], [DAY, 2 * DAY], [1.5 * DAY, 3 * DAY], origin=MIDNIGHT + DAY)
    for merged in (merge([march, april], ["march", "april"]), merge([april, march], ["april", "march"])):
        assert merged.meta.origin_unix_seconds == MIDNIGHT
        assert merged.tasks.select("job_id", "submit_time", "end_time").rows() == [
            ("a", 0.0, 10.0),
            ("b", 2 * DAY, 2.5 * DAY),
            ("c", 3 * DAY, 4 * DAY),
        ]


def alive(job: str, start: float, origin: float = MIDNIGHT) -> Trace:
    """Return a trace of ten hours in which a job begins and does not end."""
    part = trace([job, f"{job}-other"], [start, start + 10 * HOUR], [None, start + 10 * HOUR], origin=origin)
    running = pl.when(pl.col("job_id") == job).then(True).otherwise(False).alias("is_running")
    return Trace.from_frames({"tasks": part.tasks.with_columns(running, gpu_count=pl.lit(1, pl.Int32))}, part.meta)


def test_a_job_that_ran_when_its_trace_ended_does_not_run_through_the_months_merged_after_it() -> None:
    merged = merge([alive("a", 0.0), trace(["z"], [0.0], [10 * DAY], origin=MIDNIGHT + 10 * DAY)], ["march", "april"])
    found = held(merged.tasks)
    assert (found.tasks_alive, found.tasks_unknown, found.gpu_hours) == (0, 0, 10.0)
    assert merged.tasks.select(RUNTIME).to_series().is_null().to_list() == [True, False, False]
    assert [(f.rule, f.count) for f in merged.meta.findings] == [("F26", 1)]


def test_where_only_submissions_are_known_the_time_seen_counts_from_them() -> None:
    march = alive("a", 0.0)
    march = Trace.from_frames({"tasks": march.tasks.with_columns(start_time=pl.lit(None, pl.Float64))}, march.meta)
    merged = merge([march, trace(["z"], [0.0], [10 * DAY], origin=MIDNIGHT + 10 * DAY)], ["march", "april"])
    assert held(merged.tasks).gpu_hours == 10.0


def test_jobs_that_ran_when_records_ended_at_nearly_the_same_time_still_run() -> None:
    east, west = alive("a", 0.0), alive("b", 600.0)
    merged = merge([east, west], ["east", "west"])
    assert held(merged.tasks).tasks_alive == 2
    assert not merged.meta.findings


def test_a_job_seen_running_in_both_months_begins_as_the_first_and_lives_as_the_last_saw_it() -> None:
    march = alive("a", 0.0)
    april = trace(["a", "c"], [0.0, 10 * DAY], [10.5 * DAY, 11 * DAY])
    beyond = pl.col("job_id") == "a"
    ran = april.tasks.with_columns(
        beyond.alias("was_running"), *(pl.when(~beyond).then(c).alias(c) for c in ("submit_time", "start_time"))
    )
    merged = merge([march, Trace.from_frames({"tasks": ran}, april.meta)], ["march", "april"])
    task = merged.tasks.filter(beyond).row(0, named=True)
    assert (task["submit_time"], task["start_time"], task["end_time"]) == (0.0, 0.0, 10.5 * DAY)
    assert not task["was_running"]
    assert not task["is_running"]


def test_what_ran_already_when_a_later_trace_began_is_not_taken_back_to_the_beginning_of_the_whole() -> None:
    april = trace(["a", "c"], [10 * DAY, 10 * DAY], [10.5 * DAY, 11 * DAY])
    beyond = pl.col("job_id") == "a"
    ran = april.tasks.with_columns(
        beyond.alias("was_running"),
        *(pl.when(~beyond).then(c).alias(c) for c in ("submit_time", "start_time")),
        gpu_count=pl.lit(1, pl.Int32),
    )
    merged = merge([trace(["z"], [0.0], [DAY]), Trace.from_frames({"tasks": ran}, april.meta)], ["march", "april"])
    found = held(merged.tasks)
    assert (found.tasks_unknown, found.gpu_hours) == (1, 24.0)


def test_one_id_for_two_jobs_is_told_apart_by_the_traces_name() -> None:
    merged = merge([trace(["1", "2"], [0.0, 5.0], [1.0, 6.0]), trace(["1"], [9.0], [9.5])], ["east", "west"])
    assert ids(merged) == ["east/1", "2", "west/1"]


def test_clocks_that_are_unrelated_are_reported() -> None:
    one, two = (trace([i], [0.0], [1.0], clock=Clock.RELATIVE) for i in "ab")
    assert [f.rule for f in merge([one, two], ["one", "two"]).meta.findings] == ["F06"]
    with pytest.raises(UserError, match="different kinds"):
        merge([one, trace(["c"], [0.0], [1.0])], ["one", "c"])


def test_a_split_put_together_again_is_the_trace(
    week: Trace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    week.save(tmp_path / "week")
    assert main(["split", str(tmp_path / "week"), "--at", "70%", "-o", str(tmp_path / "parts")]) == 0
    assert "49 tasks to learn from, 21 to test on" in capsys.readouterr().out
    parts = [str(tmp_path / "parts" / name) for name in ("train", "test")]
    assert main(["merge", *parts, "-o", str(tmp_path / "again")]) == 0
    assert_frame_equal(Trace.open(tmp_path / "again").tasks, week.tasks)


def test_two_months_of_ones_own_log_are_merged(tmp_path: Path) -> None:
    mapping = parse_map("job_id=id,submit=t,duration=d")
    (tmp_path / "m.csv").write_text("id,t,d\n1,2024-03-01T00:00:00Z,60\n")
    (tmp_path / "a.csv").write_text("id,t,d\n2,2024-04-01T00:00:00Z,60\n")
    march, april = (ingest([tmp_path / f"{m}.csv"], options=Options(mapping=mapping)) for m in "ma")
    assert merge([march, april], ["m", "a"]).tasks["submit_time"].to_list() == [0.0, 31 * DAY]
