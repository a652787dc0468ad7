"""Examples of --help are run, as written but for the number of jobs, in a folder with files of the names they use.

What needs minutes, a publisher's file, the network or another machine is named in LEFT_OUT with the reason; an example
that is neither run nor named there fails the test.
"""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

import gputwin
from gputwin.cli.main import main
from gputwin.studies.store import RunStore
from tests.cli.test_help import VERBS, examples
from tests.conftest import REPOSITORY

JOBS = "120"
LEFT_OUT = {
    "minutes": (
        *("profile", "predict", "eta", "forecast", "queueing", "plan", "autoscale", "place", "tune", "demo", "bench"),
        *("reproduce", "compile", "generate dlrm2025"),
    ),
    "a variant of the engine that compiles for a minute": (
        *("simulate trace", "simulate philly.csv", "fit run --gang 2"),
    ),
    "a publisher's files": ("ingest disaggregated", "ingest pai/", "analyze disaggregated", "interference"),
    "files of a cluster": ("ingest sacct", "ingest pods", "mig --gpu A100-40GB --gpus 100 --periods", "mig --gpu H100"),
    "the network or other machines": (
        "traces fetch",
        "traces verify",
        "analyze pai --engine",
        "study schedulers.yaml -o runs --executor",
    ),
    "a server": ("serve",),
}


def is_left_out(words: list[str]) -> bool:
    line = " ".join(words)
    return any(line.startswith(start) for starts in LEFT_OUT.values() for start in starts)


def written_log(path: Path, days: int = 60, first: datetime = datetime(2022, 12, 15, tzinfo=UTC)) -> Path:
    """Write a log of one job each six hours."""
    at = [first + timedelta(hours=6 * k) for k in range(4 * days)]
    frame = pl.DataFrame(
        {
            "id": [str(k) for k in range(len(at))],
            "submitted_at": [t.isoformat() for t in at],
            "took": ["2h"] * len(at),
            "gpus": ["2"] * len(at),
        }
    )
    frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_csv(path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what the examples name."""
    made = tmp_path_factory.mktemp("examples")
    for name in ("jobs.csv", "jobs.parquet", "next-month.csv"):
        written_log(made / name)
    mapping = "job_id=id,submit=submitted_at,duration=took,total_gpus=gpus"
    gputwin.ingest(made / "jobs.csv", made / "theta", map=mapping)
    april = written_log(made / "april.csv", 10, datetime(2023, 4, 1, tzinfo=UTC))
    gputwin.ingest(april, made / "april", map=mapping)
    trace = gputwin.generate("pai2020", jobs=int(JOBS)).to_trace()
    tenant = trace.tasks["user"][0]
    model = trace.tasks["gpu_model"].drop_nulls()[0]
    for name in ("pai", "dlrm", "march"):
        trace.save(made / name)
    for rules in ("fifo", "sjf", "easy"):
        gputwin.simulate(trace, "homogeneous:40x8", order="sjf" if rules == "sjf" else "fifo").save(made / rules)
    shutil.copy(REPOSITORY / "examples" / "coldest.py", made / "my_policy.py")
    study = f"name: schedulers\ntrace: synthetic:pai2020?jobs={JOBS}\ncluster: homogeneous:40x8\n"
    (made / "schedulers.yaml").write_text(study + "scenario: {backfill: greedy}\ngrid: {order: [fifo, sjf]}\n")
    (made / "names").write_text(f"{tenant}\n{model}")
    return made


def filled(words: list[str], folder: Path) -> list[str]:
    """Return an example with few jobs, and with ids, tenants and models that are there."""
    tenant, model = (folder / "names").read_text().split("\n")
    names = {"vision": tenant, "V100": model}
    if (folder / "runs" / "index.sqlite").is_file():
        keys = [run.key[:8] for run in RunStore(folder / "runs").list()]
        names |= dict(zip(("3f2a91c0", "b07d55e1"), keys, strict=False))
    if (folder / "run").is_dir():
        names["4b3f04b66a525d2df903eb16"] = gputwin.SimulationResult.open(folder / "run").jobs["job_id"][0]
    made = [names.get(word, re.sub(r"jobs=\d+", f"jobs={JOBS}", word)) for word in words]
    return [JOBS if before == "--jobs" else word for before, word in zip(["", *made], made, strict=False)]


def test_the_examples_run(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(folder)
    wrong, done = [], 0
    for words in (words for verb in VERBS for words in examples(verb)):
        if is_left_out(words):
            continue
        call = filled(words, folder)
        if main([*call, *([] if "--force" in call else ["--force"])]) != 0:
            wrong.append((" ".join(words), capsys.readouterr().err))
        done += 1
    assert wrong == []
    assert done >= 35


def test_nothing_is_left_out_that_is_no_example() -> None:
    lines = [" ".join(words) for verb in VERBS for words in examples(verb)]
    for start in (start for starts in LEFT_OUT.values() for start in starts):
        assert any(line.startswith(start) for line in lines), start
