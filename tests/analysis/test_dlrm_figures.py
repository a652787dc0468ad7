"""The real DLRM 2025 trace gives the figures that others measured in it, and two published claims do not hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gputwin.analysis import Analysis, analyze
from gputwin.cli.main import main
from gputwin.traces.locate import open_trace


@pytest.fixture(scope="module")
def analysis(real_data: Path) -> Analysis:
    return analyze(open_trace([str(real_data / "alibaba_v2025_dlrm")]))


def table(analysis: Analysis, topic: str, name: str) -> pl.DataFrame:
    found = analysis.table(topic, name)
    assert found is not None
    return found


def group(frame: pl.DataFrame, dimension: str, name: str) -> dict[str, Any]:
    (row,) = frame.filter((pl.col("dimension") == dimension) & (pl.col("group") == name)).to_dicts()
    return row


def test_waits(analysis: Analysis) -> None:
    (w,) = table(analysis, "delays", "wait").to_dicts()
    assert w["count"] == 16_591
    assert f"{w['mean']:.2f}" == "187.93"
    assert f"{w['zero_share']:.3f}" == "0.655"
    assert f"{w['p95']:.1f}" == "136.5"
    assert int(w["p99"]) == 1_651
    assert w["max"] == 238_116
    assert f"{w['tail_share']:.3f}" == "0.865"
    assert w["low"] < w["mean"] < w["high"]
    by = table(analysis, "delays", "wait_by")
    assert f"{group(by, 'role', 'CN')['mean']:.1f}" == "78.2"
    assert f"{group(by, 'role', 'HN')['mean']:.1f}" == "505.3"
    texts = " ".join(r.text for r in analysis.topic("delays").remarks)  # type: ignore[union-attr]
    assert "without these 5 the mean is 2 min 06 s" in texts
    assert "Tasks of role HN wait 6.5 times as long as those of CN" in texts


def test_runtimes_and_their_bias(analysis: Analysis) -> None:
    (r,) = table(analysis, "runtimes", "runtime").to_dicts()
    assert r["count"] == 12_390
    assert f"{r['mean'] // 3600:.0f} h {r['mean'] % 3600 // 60:.0f} min" == "28 h 28 min"
    assert f"{r['p50']:,.1f}" == "8,278.5"
    by = table(analysis, "runtimes", "runtime_by")
    assert f"{group(by, 'role', 'CN')['mean'] / 3600:.2f}" == "30.47"
    assert f"{group(by, 'role', 'HN')['mean'] / 3600:.2f}" == "22.76"
    s = group(table(analysis, "runtimes", "survival"), "all", "all")
    # 11,481 rows have no runtime: 4,201 of them were alive at the end, 7,280 began before the trace.
    assert (s["tasks"], s["censored"]) == (16_591, 4_201)
    assert s["censored"] + 7_280 == 11_481
    assert s["km_mean"] > 5 * s["mean"]
    assert s["km_p50"] > s["p50"]


@pytest.mark.parametrize(
    ("limit", "mean"),
    [("2", "318.1"), ("4", "308.6"), ("8", "205.0"), ("no limit", "94.6"), ("10", "42.2"), ("16", "29.8")],
)
def test_waits_by_instances_allowed_per_node(analysis: Analysis, limit: str, mean: str) -> None:
    row = group(table(analysis, "placement", "rules"), "max_per_node", limit)
    assert f"{row['mean']:.1f}" == mean
    if limit in ("2", "4", "no limit"):
        assert row["p50"] == 0


def test_the_limit_is_an_effect_of_the_role(analysis: Analysis) -> None:
    rows = table(analysis, "placement", "rules_by_role").to_dicts()
    means = {(r["role"], r["group"]): round(r["mean"]) for r in rows}
    assert [means["HN", "2"], means["HN", "4"], means["CN", "2"], means["CN", "4"]] == [724, 386, 33, 21]
    effects = table(analysis, "placement", "effects").filter((pl.col("level") == "2") & (pl.col("outcome") == "wait"))
    raw, role, application = effects.sort("strata").to_dicts()
    assert raw["control"] == "nothing"
    assert f"{raw['estimate']:.1f}" == "223.6"
    assert role["estimate"] < 0
    assert role["low"] < 0 < role["high"]
    assert application["clusters"] == 3
    assert application["low"] is None


def test_requests_over_limits(analysis: Analysis) -> None:
    rows = {r["resource"]: r for r in table(analysis, "efficiency", "limits").to_dicts()}
    assert f"{rows['disk']['mean_of_ratios']:.3f}" == "0.847"
    assert f"{rows['disk']['ratio_of_sums']:.3f}" == "0.844"
    for name in ("CPU", "GPU", "memory", "RDMA"):
        assert rows[name]["mean_of_ratios"] == rows[name]["ratio_of_sums"] == 1.0


def test_two_published_claims_do_not_reproduce(real_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(real_data / "alibaba_v2025_dlrm"), "--quiet", "--full"]) == 0
    shown = capsys.readouterr().out
    for figure in ("3 min 08 s", "3 min 13 s", "28 h 46 min", "1 d 6 h", "22 h 45 min", "28 h 28 min", "2 h 17 min"):
        assert figure in shown
    assert " ".join(shown.split()).count("the claim does not reproduce") == 2


def test_json_has_every_table(real_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(real_data / "alibaba_v2025_dlrm"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    claims = data["topics"]["published"]["tables"]["claims"]
    assert [c["reproduces"] for c in claims] == [False, False]
    assert {"workload", "delays", "runtimes", "placement", "efficiency", "cluster"} <= set(data["topics"])
