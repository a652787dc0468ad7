"""The Python interface: whatever form an input has, the result is the same; results and errors suit a prompt."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import pytest

import gputwin
from gputwin.api import predicting, reading, running
from gputwin.api.inputs import in_python

SPEC = "synthetic:pai2020?jobs=150"
FUNCTIONS = [name for name in gputwin.__all__ if name[0].islower()]
EXAMPLES = {
    test.name.rpartition(".")[2]: test
    for module in (reading, running, predicting)
    for test in doctest.DocTestFinder().find(module)
    if test.examples
}
MOST_LINES = 24


def test_about_twenty_names_and_a_mark_that_they_are_typed() -> None:
    assert len(gputwin.__all__) <= 25
    assert gputwin.__all__ == sorted(gputwin.__all__, key=lambda n: (n[0].islower(), n))
    assert (Path(gputwin.__file__).parent / "py.typed").is_file()
    assert set(dir(gputwin)) == {*gputwin.__all__, "__version__"}
    for name in gputwin.__all__:
        assert getattr(gputwin, name).__doc__


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_an_example_that_works(name: str) -> None:
    outcome = doctest.DocTestRunner().run(EXAMPLES[name])
    assert outcome.attempted > 0
    assert outcome.failed == 0


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("api") / "trace"
    gputwin.open_trace(SPEC).save(path)
    return path


def test_a_path_a_text_a_spec_and_an_object_are_the_same(saved: Path) -> None:
    opened = gputwin.open_trace(saved)
    for given in (saved, str(saved), SPEC, opened, [saved]):
        assert gputwin.describe(given).tasks == opened.tasks.height
    waits = [
        gputwin.simulate(given, cluster, backfill="greedy").summary["wait_seconds"]
        for given, cluster in (
            (saved, "homogeneous:4x8"),
            (opened, gputwin.open_cluster("homogeneous:4x8")),
            (SPEC, "homogeneous:4x8"),
        )
    ]
    assert waits[0] == waits[1] == waits[2]


def test_a_run_is_given_as_an_object_or_a_path_and_a_scenario_as_a_file(saved: Path, tmp_path: Path) -> None:
    run = gputwin.simulate(saved, "homogeneous:4x8")
    path = run.save(tmp_path / "run")
    job = run.jobs["job_id"][0]
    assert gputwin.explain(run, job) == gputwin.explain(path, job) == gputwin.explain(str(path), job)
    other = gputwin.simulate(saved, "homogeneous:4x8", backfill="strict")
    assert gputwin.compare(path, other).labels == gputwin.compare(run, other).labels
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(f"trace: {saved}\ncluster: homogeneous:4x8\nbackfill: strict\n")
    assert gputwin.simulate(scenario).summary["wait_seconds"] == other.summary["wait_seconds"]


def test_results_show_themselves_on_one_screen(saved: Path) -> None:
    run = gputwin.simulate(saved, "homogeneous:4x8")
    results: list[Any] = [
        gputwin.open_trace(saved),
        gputwin.describe(saved),
        gputwin.analyze(saved),
        gputwin.check(saved, "homogeneous:4x8"),
        run,
        gputwin.explain(run, run.jobs["job_id"][-1]),
        gputwin.tenants(run),
        gputwin.compare(run, gputwin.simulate(saved, "homogeneous:4x8", backfill="strict")),
        gputwin.profile(SPEC, models=["group-median"]),
        gputwin.plan(saved, "homogeneous:4x8", "p95_wait=1h", workers=1),
        gputwin.queueing(saved, "homogeneous:4x8"),
    ]
    for result in results:
        text = repr(result)
        assert 2 <= len(text.splitlines()) <= MOST_LINES, text
        assert max(map(len, text.splitlines())) <= 120, text
        assert "shape: (" not in text
        assert "<script" not in result._repr_html_()


@pytest.mark.parametrize(
    "mistake",
    [
        lambda folder: gputwin.ingest(folder / "jobs.csv"),
        lambda folder: gputwin.ingest(folder / "jobs.csv", map="job_id=id,submit=at"),
        lambda folder: gputwin.ingest(folder / "jobs.csv", guess=True),
        lambda folder: gputwin.ingest(folder / "jobs.csv", map={"submit": "gpus"}, strict=True, zone="Mars/Base"),
        lambda folder: gputwin.open_trace(folder / "nothing"),
        lambda folder: gputwin.explain(folder, "x"),
        lambda folder: gputwin.predict(folder, SPEC),
        lambda folder: gputwin.simulate(SPEC, "homogeneous:4x8", backfill="gready"),
        lambda folder: gputwin.simulate(SPEC, folder / "cluster.yaml"),
        lambda folder: gputwin.compare(gputwin.simulate(SPEC, "homogeneous:4x8")),
    ],
)
def test_errors_speak_of_python(mistake: Any, tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("id,at,submitted,created,gpus\n1,soon,5,6,1\n")
    with pytest.raises(gputwin.UserError) as caught:
        mistake(tmp_path)
    message = str(caught.value)
    assert "--" not in message
    assert "\n" not in message
    assert "gputwin ingest" not in message


def test_functions_stay_functions_when_packages_of_their_name_are_imported() -> None:
    from gputwin.queueing import erlang
    from gputwin.report import write_report

    assert erlang
    assert write_report
    assert callable(gputwin.queueing)
    assert callable(gputwin.report)


def test_options_become_arguments() -> None:
    assert in_python("pass --lenient to skip") == "pass lenient=True to skip"
    assert in_python("pass --map 'a=b' --table requests") == "pass map='a=b', table='requests'"
    assert in_python("it is not one of ours; name another folder, or give --force") == (
        "it is not one of ours; name another folder"
    )
    assert in_python("make one with: gputwin simulate -o DIR") == "make one with: gputwin.simulate(…)"
