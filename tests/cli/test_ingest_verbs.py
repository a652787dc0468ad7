"""`ingest`, `describe`, `check`, `generate`: what programs read from them, and that their parts fit together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

from gputwin.cli.main import main
from gputwin.traces.dataset import Trace
from gputwin.traces.schema import TABLES
from tests.traces.samples import dlrm2025, openb2023

Capture = pytest.CaptureFixture[str]


def result(arguments: list[str], capfd: Capture) -> dict[str, Any]:
    """Return the JSON object that is all there is on stdout; stderr is empty where it is no terminal."""
    assert main([*arguments, "--json"]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    assert out.count("\n") == 1
    parsed = json.loads(out)
    assert isinstance(parsed, dict)
    return parsed


def paths(sample: Any, folder: Path) -> list[str]:
    return [str(p) for p in sample.write(folder)]


def test_ingest_tells_what_it_read_and_found(tmp_path: Path, capfd: Capture) -> None:
    given = paths(dlrm2025, tmp_path)
    data = result(["ingest", *given, "-o", str(tmp_path / "trace")], capfd)
    assert (data["rows_read"], data["rows_kept"], data["rows_dropped"]) == (4, 4, 0)
    assert data["tables"] == {"tasks": 4}
    assert data["source"] == "dlrm2025"
    assert data["trace_directory"] == str(tmp_path / "trace")
    # Two were there before the trace began, two are alive at its end.
    found = {f["rule"]: (f["count"], f["action"]) for f in data["findings"]}
    assert found == {"Q13": (2, "flagged"), "Q14": (2, "flagged"), "F10": (1, "repaired")}
    assert Trace.open(tmp_path / "trace").meta.fingerprint == data["fingerprint"]


def test_ingest_without_an_output_writes_nothing(tmp_path: Path, capfd: Capture) -> None:
    given = paths(dlrm2025, tmp_path)
    data = result(["ingest", *given], capfd)
    assert data["trace_directory"] is None
    assert [str(p) for p in tmp_path.iterdir()] == given


def test_ingest_gives_the_same_fingerprint_in_memory_and_on_disk(tmp_path: Path, capfd: Capture) -> None:
    given = paths(openb2023, tmp_path)
    written = result(["ingest", *given, "-o", str(tmp_path / "trace")], capfd)
    assert result(["ingest", *given], capfd)["fingerprint"] == written["fingerprint"]


def test_lenient_keeps_what_can_be_read_and_counts_the_rest(tmp_path: Path, capfd: Capture) -> None:
    (path,) = dlrm2025.write(tmp_path)
    path.write_text(path.read_text().replace("1435629.0", "noon", 1) + "instance_9,CN\n")
    data = result(["ingest", str(path), "--lenient"], capfd)
    assert data["rows_read"] == 5
    assert {(f["rule"], f["detail"], f["count"]) for f in data["findings"]} >= {
        ("F03", "creation_time", 1),
        ("F03", "line with too few fields", 1),
    }


def test_describe_tells_what_is_in_a_trace(tmp_path: Path, capfd: Capture) -> None:
    data = result(["describe", *paths(openb2023, tmp_path)], capfd)
    counts = {k: data[k] for k in ("tasks", "instances", "applications", "users", "nodes", "gpus")}
    assert counts == {"tasks": 3, "instances": 3, "applications": 0, "users": 0, "nodes": 2, "gpus": 2}
    assert data["span_seconds"] == 12_902_960.0


def test_describe_takes_raw_files_and_the_saved_trace_alike(tmp_path: Path, capfd: Capture) -> None:
    given = paths(openb2023, tmp_path)
    raw = result(["describe", *given], capfd)
    result(["ingest", *given, "-o", str(tmp_path / "trace")], capfd)
    assert result(["describe", str(tmp_path / "trace")], capfd) == raw


def test_describe_of_a_synthetic_trace_is_the_same_each_time(capfd: Capture) -> None:
    first = result(["describe", "synthetic:pai2020?jobs=300&seed=3"], capfd)
    assert first == result(["describe", "synthetic:pai2020?jobs=300&seed=3"], capfd)
    assert first != result(["describe", "synthetic:pai2020?jobs=300&seed=4"], capfd)
    assert first["jobs"] == 300
    assert (first["nodes"], first["gpus"]) == (1_897, 6_742)


def test_check_compares_with_the_traces_own_nodes_or_a_cluster(tmp_path: Path, capfd: Capture) -> None:
    given = paths(openb2023, tmp_path)
    result(["ingest", *given, "-o", str(tmp_path / "trace")], capfd)
    own = result(["check", str(tmp_path / "trace")], capfd)
    assert (own["nodes"], own["gpus"], own["tasks"]) == (2, 2, 3)
    large = result(["check", str(tmp_path / "trace"), "--cluster", "homogeneous:4x8"], capfd)
    assert (large["cluster"], large["nodes"], large["gpus"]) == ("homogeneous:4x8", 4, 32)
    gpu = {key: load for load in large["loads"] if (key := load["resource"]) == "gpu_milli" and load["models"] == "any"}
    assert gpu["gpu_milli"]["capacity"] == 32_000
    figures = {"mean", "p95", "peak", "time_above_capacity", "mean_at_most", "peak_at_most"}
    assert set(gpu["gpu_milli"]) == {"resource", "models", "capacity"} | figures
    assert large["verdict"]


def test_generate_tells_its_tables_and_fidelity(tmp_path: Path, capfd: Capture) -> None:
    data = result(["generate", "openb2023", "--jobs", "200", "--seed", "5", "-o", str(tmp_path / "trace")], capfd)
    assert (data["name"], data["jobs"], data["seed"]) == ("openb2023", 200, 5)
    trace = Trace.open(tmp_path / "trace")
    assert data["tables"] == dict(trace.meta.tables)
    assert data["fingerprint"] == trace.meta.fingerprint
    assert all(row["marginal"] for row in data["fidelity"])


def test_the_publishers_tables_ingest_to_the_trace_they_were_made_from(tmp_path: Path, capfd: Capture) -> None:
    raw, made, read = (str(tmp_path / name) for name in ("raw", "made", "read"))
    generated = result(["generate", "pai2020", "--jobs", "400", "-o", made, "--publisher", raw], capfd)
    data = result(["ingest", raw, "-o", read], capfd)
    assert data["tables"] == generated["tables"]
    assert data["rows_dropped"] == 0
    assert data["fingerprint"] == generated["fingerprint"]
    for name in data["tables"]:
        assert_frame_equal(Trace.open(Path(read)).frame(name), Trace.open(Path(made)).frame(name), check_exact=True)
        assert Trace.open(Path(read)).frame(name).schema == TABLES[name].schema


@pytest.mark.parametrize(
    ("verb", "words"),
    [("ingest", ("rows read 5", "nodes")), ("describe", ("GPUs", "runtime")), ("check", ("GPU", "The trace"))],
)
def test_people_get_tables(verb: str, words: tuple[str, ...], tmp_path: Path, capfd: Capture) -> None:
    openb2023.write(tmp_path)
    assert main([verb, str(tmp_path)]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    for word in words:
        assert word in out


def test_check_of_a_trace_without_tasks_is_one_line(tmp_path: Path, capfd: Capture) -> None:
    nodes, pods = openb2023.write(tmp_path)
    pods.unlink()
    assert main(["check", str(nodes)]) == 2
    assert capfd.readouterr().err.count("\n") == 1
