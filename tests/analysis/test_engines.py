"""One analysis, three engines: Polars, DuckDB and a Spark cluster give the same frames."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from gputwin.analysis import Analysis, analyze
from gputwin.analysis.clock import LocalClock
from gputwin.analysis.cluster import cluster
from gputwin.analysis.delays import delays, runtimes, spread_by
from gputwin.analysis.dimensions import Dimension, dimensions_of
from gputwin.analysis.efficiency import efficiency
from gputwin.analysis.engines import engine_for
from gputwin.analysis.frames import Frame
from gputwin.analysis.placement import placement
from gputwin.analysis.tasks import TaskFacts, prepare, task_facts
from gputwin.analysis.workload import workload
from gputwin.core.errors import UserError
from gputwin.traces.dataset import Trace
from gputwin.traces.locate import open_trace
from tests.traces.samples import pai2020

Found = dict[str, pl.DataFrame]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    path = tmp_path_factory.mktemp("engines") / "trace"
    return open_trace("synthetic:pai2020?jobs=3000&seed=2").save(path)


def ready(trace: Trace, tasks: Any) -> tuple[Frame, TaskFacts, dict[str, Dimension]]:
    facts = task_facts(tasks)
    clock = LocalClock.of(trace.meta, facts.first_arrival, facts.last_arrival)
    return prepare(tasks, facts, clock), facts, {d.name: d for d in dimensions_of(facts, clock)}


def spreads(trace: Trace, tasks: Any) -> Found:
    """Return what is known of all tasks, and waits by local hour with their tails and intervals."""
    frame, facts, by = ready(trace, tasks)
    return {
        "facts": pl.DataFrame([vars(facts) | {"known": str(facts.known), "window": str(facts.window)}]),
        "waits": spread_by(frame, "wait", [by["hour"]]),
    }


def topics(trace: Trace, tasks: Any) -> Found:
    """Return every table of the topics on tasks."""
    frame, facts, by = ready(trace, tasks)
    every = list(by.values())
    found = [
        delays(frame, facts, every),
        runtimes(frame, facts, every),
        placement(frame, facts, every),
        workload(frame, facts, every),
        efficiency(frame, facts, None),
        cluster(frame, facts, trace.nodes),
    ]
    return {f"{t.name}.{name}": table for t in found if t is not None for name, table in t.tables.items()}


def same(found: Found, expected: Found) -> None:
    assert found.keys() == expected.keys()
    for name, frame in expected.items():
        assert frame.height
        # Sums of floats depend on the order of rows, in the last digits; nothing else may differ.
        assert_frame_equal(found[name], frame, check_exact=False, rel_tol=1e-9, abs_tol=1e-9)


def parquet(trace: Trace) -> str:
    assert trace.path is not None
    return str(Path(trace.path) / "tasks.parquet")


@pytest.mark.parametrize("analyse", [spreads, topics])
def test_duckdb(trace: Trace, analyse: Callable[[Trace, Any], Found]) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        found = analyse(trace, connection.read_parquet(parquet(trace)))
    same(found, analyse(trace, trace.scan("tasks")))


def same_analysis(found: Analysis, expected: Analysis) -> None:
    assert [t.name for t in found.topics] == [t.name for t in expected.topics]
    for ours, theirs in zip(found.topics, expected.topics, strict=True):
        assert ours.remarks == theirs.remarks
        same(ours.tables, theirs.tables)


def test_the_whole_analysis_on_duckdb(trace: Trace) -> None:
    pytest.importorskip("duckdb")
    same_analysis(analyze(trace, engine="duckdb"), analyze(trace))


def test_duckdb_draws_no_progress_bar_where_results_are_printed(trace: Trace) -> None:
    with engine_for(trace, "duckdb") as engine:
        shown = engine._connection.execute("SELECT current_setting('enable_progress_bar')").fetchone()
    assert shown == (False,)


def test_tables_in_memory_and_sensors_on_duckdb(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    memory = open_trace([str(path) for path in pai2020.write(tmp_path)])
    assert memory.meta.tables["usage"]
    same_analysis(analyze(memory, engine="duckdb"), analyze(memory))


@pytest.mark.parametrize("name", ["pandas", "duckdb:here", "spark-local"])
def test_an_unknown_engine_is_a_mistake(name: str, trace: Trace) -> None:
    with pytest.raises(UserError, match="known: polars, duckdb, spark"):
        analyze(trace, engine=name)


def test_spark_without_java_is_told_in_one_line(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = pytest.importorskip("pyspark.sql")
    monkeypatch.setattr(sql.SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(UserError, match="Spark needs Java"):
        analyze(trace, engine="spark")


def test_an_engine_that_is_not_installed_names_its_extra(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, engine in (("pyspark.sql", "spark"), ("duckdb", "duckdb")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(UserError, match=rf"gputwin\[{engine}\]"):
            analyze(trace, engine=engine)


def test_the_whole_analysis_on_two_spark_executors(spark: Any, trace: Trace) -> None:
    same_analysis(analyze(trace, engine="spark"), analyze(trace))
    # The session that was there was used and left open; the driver stands in the list of its executors as well.
    assert len(list(spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos())) == 3
