"""The run store: the same scenario never runs twice, whoever writes and whoever dies."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gputwin.core.errors import UserError
from gputwin.simulation.scenario import Scenario
from gputwin.simulation.simulate import simulate_scenario, trace_of
from gputwin.studies.store import RunStore, keys, run_key
from tests.studies.store.writers import die_while_writing, write_all

SCENARIO = Scenario(trace="synthetic:pai2020?jobs=60", cluster="homogeneous:20x8", order="sjf", backfill="greedy")
SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture(scope="module")
def trace():
    return trace_of(SCENARIO)


@pytest.fixture(scope="module")
def result(trace):
    return simulate_scenario(SCENARIO, trace)


@pytest.fixture(scope="module")
def saved(result, tmp_path_factory) -> Path:
    return result.save(tmp_path_factory.mktemp("saved") / "run")


def a_key(number: int) -> str:
    return f"{number:032x}"


def test_a_run_is_made_once_and_reads_back_as_it_was(tmp_path, trace, result):
    store, key, made = RunStore(tmp_path), run_key(SCENARIO, trace), []
    for _ in range(3):
        run = store.run(key, lambda: made.append(1) or result, study="first")
    assert len(made) == 1
    assert run.key == key
    assert run.metrics["mean wait"] == result.summary["wait_seconds"]["mean"]
    assert run.trace_fingerprint == trace.meta.fingerprint
    opened = RunStore(tmp_path).open(key)
    assert opened.jobs.equals(result.jobs)
    assert opened.summary == result.summary
    assert [e.key for e in store.executions() if e.finished] == [key]


def test_the_key_follows_what_the_result_depends_on_and_nothing_else(tmp_path, trace):
    key = run_key(SCENARIO, trace)
    assert key == run_key(SCENARIO.with_(trace="elsewhere", trace_fingerprint=trace.meta.fingerprint), trace)
    spec = tmp_path / "cluster.yaml"
    spec.write_text("name: small\ngroups:\n- {name: a, count: 20, gpus: 8}\n")
    named = SCENARIO.with_(cluster=str(spec))
    before = run_key(named, trace)
    others = [SCENARIO.with_(seed=1), SCENARIO.with_(order="fifo"), SCENARIO.with_(load_scale=2), named]
    found = {key, before, *(run_key(other, trace) for other in others)}
    assert len(found) == 1 + len(others)
    spec.write_text("name: small\ngroups:\n- {name: a, count: 21, gpus: 8}\n")
    assert run_key(named, trace) != before
    other_trace = trace_of(Scenario(trace="synthetic:pai2020?jobs=60&seed=1"))
    assert run_key(SCENARIO, other_trace) != key


def test_files_count_by_content_and_a_missing_one_is_a_user_error(tmp_path, trace):
    file = tmp_path / "predicted.csv"
    file.write_text("job_id,predicted_seconds\n")
    named = SCENARIO.with_(prediction=str(file))
    before = run_key(named, trace)
    copied = tmp_path / "copy.csv"
    copied.write_bytes(file.read_bytes())
    assert run_key(SCENARIO.with_(prediction=str(copied)), trace) == before
    file.write_text("job_id,predicted_seconds\na,1\n")
    assert run_key(named, trace) != before
    with pytest.raises(UserError, match=r"field 'prediction'.*cannot be read"):
        run_key(SCENARIO.with_(prediction=str(tmp_path / "none.csv")), trace)


@pytest.mark.parametrize(
    ("field", "of"),
    [
        ("faults", lambda name: {"log": name}),
        ("interference", lambda name: {"table": name}),
        ("fairness", lambda name: {"policy": "kueue-fair", "queues": name}),
        ("power", lambda name: {"carbon": name}),
    ],
)
def test_a_run_is_made_again_when_a_file_that_its_rules_come_from_has_changed(tmp_path, trace, field, of):
    file, copied = tmp_path / "rules.txt", tmp_path / "copy.txt"
    file.write_text("before")
    copied.write_text("before")
    before = run_key(SCENARIO.with_(**{field: of(str(file))}), trace)
    assert run_key(SCENARIO.with_(**{field: of(str(copied))}), trace) == before
    file.write_text("after")
    assert run_key(SCENARIO.with_(**{field: of(str(file))}), trace) != before


def test_another_engine_makes_another_run(monkeypatch, trace):
    before = run_key(SCENARIO, trace)
    monkeypatch.setattr(keys, "engine_digest", lambda: "another")
    assert run_key(SCENARIO, trace) != before


def test_several_processes_write_at_once_and_make_each_run_once(tmp_path, saved):
    wanted = [a_key(k) for k in range(12)]
    with ProcessPoolExecutor(3, mp_context=SPAWN) as pool:
        orders = [wanted, wanted[::-1], wanted[6:] + wanted[:6]]
        tasks = [pool.submit(write_all, tmp_path, saved, order, f"study-{i}") for i, order in enumerate(orders)]
        made = [task.result() for task in tasks]
    store = RunStore(tmp_path)
    assert sum(made) == len(wanted)
    assert sorted(e.key for e in store.executions()) == wanted
    assert all(e.finished for e in store.executions())
    assert sorted(run.key for run in store.list()) == wanted
    assert all(run.studies == tuple(f"study-{i}" for i in range(3)) for run in store.list())
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == wanted
    assert not list((tmp_path / "claims").iterdir())


def die(*arguments) -> None:
    process = SPAWN.Process(target=die_while_writing, args=arguments)
    process.start()
    process.join(60)
    assert process.exitcode == 9


def test_a_writer_that_dies_leaves_no_row_and_its_half_written_folder_is_removed(tmp_path, saved, result):
    key = a_key(1)
    die(tmp_path, saved, key, "half")
    store = RunStore(tmp_path)
    assert store.get(key) is None
    assert any((tmp_path / "runs").iterdir())
    assert store.recover() == 0
    assert not any((tmp_path / "runs").iterdir())
    assert store.run(key, lambda: result).key == key


def test_a_run_that_is_whole_when_its_writer_dies_is_not_made_again(tmp_path, saved):
    for key, by in ((a_key(1), "recover"), (a_key(2), "run")):
        die(tmp_path, saved, key, "whole")
        store = RunStore(tmp_path)
        assert store.get(key) is None
        if by == "recover":
            assert store.recover() == 1
        assert store.run(key, pytest.fail, study="again").studies == ("again",)
        assert [e.finished is not None for e in store.executions() if e.key == key] == [True]


def test_what_is_being_written_now_is_not_taken_for_a_leftover(tmp_path, result):
    store, other, key = RunStore(tmp_path), RunStore(tmp_path), a_key(3)
    with store.claim(key):
        half = store.folder_of(key).with_name(f".0123456789ab.{key}")
        half.mkdir(parents=True)
        other.recover()
        assert half.is_dir()
        with other.claim(key, wait=False) as is_ours:
            assert not is_ours
    with other.claim(key, wait=False) as is_ours:
        assert is_ours
    assert not half.exists()


def test_runs_are_found_by_study_trace_cluster_field_and_the_beginning_of_their_key(tmp_path, trace, result):
    store = RunStore(tmp_path)
    for scenario, study in ((SCENARIO, "a"), (SCENARIO.with_(order="fifo", seed=3), "b")):
        store.put(run_key(scenario, trace), simulate_scenario(scenario, trace), study=study)
    first = run_key(SCENARIO, trace)
    assert {run.key for run in store.list(study="a")} == {first}
    assert {run.key for run in store.list(fields={"order": "sjf"})} == {first}
    assert len(store.list(trace="pai2020")) == len(store.list(trace=trace.meta.fingerprint[:12])) == 2
    assert len(store.list(cluster="homogeneous:20x8")) == 2
    assert store.list(trace="%") == store.list(cluster="none") == []
    assert len(store.list(limit=1)) == 1
    assert store.find(first[:8]).key == first
    assert store.find(first[:8]).scenario.order.name == "sjf"
    for wrong in ("abc", "zzzz", "' or 1", a_key(0)):
        with pytest.raises(UserError, match="no run has a key"):
            store.find(wrong)


def test_pruning_removes_what_is_asked_for_and_nothing_else(tmp_path, result):
    store = RunStore(tmp_path)
    for k in range(4):
        store.put(a_key(k), result, study="old" if k < 2 else "new")
    assert store.prune() == []
    assert store.prune(before=datetime.now(UTC) - timedelta(days=1)) == []
    assert store.prune(outdated=True) == []
    assert len(store.prune(study="old", dry_run=True)) == 2
    assert len(store.list()) == 4
    with store.claim(a_key(0)):
        assert [run.key for run in RunStore(tmp_path).prune(study="old")] == [a_key(1)]
    assert {run.key for run in store.prune(keys=[a_key(0), a_key(9)])} == {a_key(0)}
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == [a_key(2), a_key(3)]


def test_a_run_whose_folder_was_removed_by_hand_is_made_again(tmp_path, result):
    import shutil

    store, key = RunStore(tmp_path), a_key(5)
    store.put(key, result)
    shutil.rmtree(store.folder_of(key))
    assert store.get(key) is None
    store.run(key, lambda: result)
    assert store.open(key).jobs.equals(result.jobs)


def test_a_folder_that_is_no_store_is_a_user_error(tmp_path):
    with pytest.raises(UserError, match="not a folder of runs"):
        RunStore(tmp_path / "none", create=False)
    (tmp_path / "index.sqlite").write_text("this is no database, but text that is long enough")
    with pytest.raises(UserError, match="not an index of runs"):
        RunStore(tmp_path, create=False)


def test_a_study_has_its_runs_in_its_own_order(tmp_path, result):
    store = RunStore(tmp_path)
    for k in (2, 0, 1):
        store.put(a_key(k), result, study="s" if k else None)
    store.join([a_key(1), a_key(0), a_key(2)], "s")
    assert [run.key for run in store.of_study("s")] == [a_key(1), a_key(0), a_key(2)]
    assert store.of_study("t") == []
