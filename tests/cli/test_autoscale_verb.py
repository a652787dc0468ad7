"""`gputwin autoscale` on files of the formats it is meant for: a table, JSON, a report, and mistakes in one line."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from gputwin.autoscaling.decisions.hpa.spec import MetricTarget
from gputwin.autoscaling.decisions.registry import rule_to_plain
from gputwin.autoscaling.decisions.rules.hpa import Hpa
from gputwin.autoscaling.manifests.files import manifest_text, read_manifest
from gputwin.cli.main import main
from gputwin.core.rng import stream


@pytest.fixture(scope="module")
def conversations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return 9 minutes of requests to an LLM, twice as many in every third minute."""
    rng = stream(0, "conversations")
    start = datetime(2026, 1, 5, 9)
    lines = ["TIMESTAMP,ContextTokens,GeneratedTokens"]
    seconds = sorted(60 * m + s for m in range(9) for s in rng.uniform(0, 60, 400 if m % 3 == 2 else 200))
    for s in seconds:
        at = start + timedelta(seconds=float(s))
        lines.append(f"{at:%Y-%m-%d %H:%M:%S.%f}0,{rng.integers(50, 2000)},{rng.integers(10, 300)}")
    path = tmp_path_factory.mktemp("autoscale") / "conversations.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_table_for_programs_and_a_report(
    conversations: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = ["--rule", "hpa", "--rule", "knative"]
    arguments = ["autoscale", str(conversations), *rules, "--load", "5", "--json", "-o", str(tmp_path / "r")]
    arguments += ["--price", "3.5"]
    assert main(arguments) == 0
    data = json.loads(capsys.readouterr().out)
    assert [p["policy"] for p in data["policies"]] == ["hpa", "knative", "foresight"]
    assert data["response"] == "first token"
    assert data["requests_first_part"] + data["requests_shown"] == 5 * 2400
    for policy in data["policies"]:
        assert data["foresight_bound"]["cost"] <= policy["cost"]
        assert policy["allocated_cost"] + policy["idle_cost"] == pytest.approx(policy["compute_cost"])
        # What is printed is enough to work the cost out.
        hours = policy["mean_replicas"] * policy["paid_seconds"] / 3600
        assert hours * data["price_per_hour"] == pytest.approx(policy["compute_cost"])
        assert policy["paid_seconds"] >= data["shown_seconds"]
        assert policy["paid_seconds"] % data["period_seconds"] == pytest.approx(0.0, abs=1e-6)
    page = (tmp_path / "r" / "autoscale.html").read_text(encoding="utf-8")
    assert "Demand, capacity and decisions" in page
    assert "in flight" in page
    assert rule_to_plain(read_manifest(tmp_path / "r" / "hpa.yaml")) == data["policies"][0]["parameters"]  # type: ignore[arg-type]
    assert (tmp_path / "r" / "knative.yaml").is_file()
    decisions = pl.read_parquet(tmp_path / "r" / "decisions.parquet")
    assert set(decisions["rule"]) == {"hpa", "knative", "foresight"}
    assert decisions.filter(pl.col("reason") != "").height > 0


def test_a_table_for_people(conversations: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["autoscale", str(conversations), "--rule", "threshold", "--sla", "5s", "--quiet"]) == 0
    said = capsys.readouterr().out
    assert "SLA: first token within 5 s" in said
    assert "threshold" in said
    assert "Settings were chosen on the first" in said


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (["--rule", "magic"], "no rule 'magic'"),
        (["--engine", "abacus"], "no engine 'abacus'"),
        (["--load", "0"], "load must be above 0"),
        (["--first-part", "2"], "first part must be"),
    ],
)
def test_mistakes_are_one_line(
    conversations: Path, more: list[str], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["autoscale", str(conversations), "--quiet", *more]) == 2
    said = capsys.readouterr().err
    assert what in said
    assert said.count("\n") == 1


def test_a_trace_without_requests_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["autoscale", "synthetic:pai2020?jobs=100", "--quiet"]) == 2
    assert "neither requests with times nor request rates" in capsys.readouterr().err


def test_a_manifest_of_ones_own_stands_beside_the_rules(
    conversations: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = Hpa(1, 20, (MetricTarget("External", "concurrency", 20.0, "AverageValue"),))
    path = tmp_path / "my-hpa.yaml"
    path.write_text(manifest_text(rule), encoding="utf-8")
    arguments = ["autoscale", str(conversations), "--rule", "threshold", "--policy", str(path), "--load", "5", "--json"]
    assert main(arguments) == 0
    policies = json.loads(capsys.readouterr().out)["policies"]
    assert [p["policy"] for p in policies] == ["threshold", "my-hpa", "foresight"]
    assert policies[1]["parameters"] == rule_to_plain(rule)
    assert policies[1]["cost"] > 0


def test_a_manifest_that_sizes_no_replicas_is_one_line(
    conversations: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "nothing.yaml"
    path.write_text("kind: Deployment\n", encoding="utf-8")
    assert main(["autoscale", str(conversations), "--policy", str(path), "--quiet"]) == 2
    assert "nothing.yaml, field 'kind': there is no" in capsys.readouterr().err


def test_node_pools_on_a_batch_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "pools.yaml"
    spec.write_text(
        "autoscaler: {boot_seconds: 60}\ngroups:\n"
        "  - {name: t4, count: 60, gpus: 2, gpu_model: T4, cpu_milli: 96000, memory_mib: 524288, price_per_hour: 2}\n"
        "  - {name: v100, count: 30, gpus: 8, gpu_model: V100, cpu_milli: 96000, memory_mib: 524288, price_per_hour: 24}\n",
        encoding="utf-8",
    )
    arguments = ["autoscale", "synthetic:pai2020?jobs=200", "--cluster", str(spec), "--spot", "0", "--spot", "0.5"]
    assert main([*arguments, "--hazard", "0.5", "--seeds", "2", "--json", "-o", str(tmp_path / "out")]) == 0
    data = json.loads(capsys.readouterr().out)
    rows = {(row["rule"], row["spot_share"]): row for row in data["rows"]}
    assert next(iter(rows)) == ("fixed", 0.0)
    assert len(rows) == 5
    assert all(row["cost"] < rows["fixed", 0.0]["cost"] for key, row in rows.items() if key[0] != "fixed")
    assert rows["karpenter", 0.5]["runs"] == 2
    events = pl.read_parquet(tmp_path / "out" / "node_events.parquet")
    assert set(events["what"]) >= {"launched", "removed"}
    page = (tmp_path / "out" / "pools.html").read_text(encoding="utf-8")
    assert "What do autoscaled nodes cost against a fixed cluster" in page
    best = min((row for row in data["rows"] if row["rule"] != "fixed"), key=lambda row: row["cost"])
    share = f"{best['cost'] / rows['fixed', 0.0]['cost']:.0%}".replace("%", " %")
    assert f"costs {best['cost']:,.0f} in the currency of the prices, {share} of the fixed cluster" in page
    assert "What spot nodes risk" in page


def test_node_pools_are_chosen_on_the_first_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text("time_seconds,price_per_hour\n0,0.5\n1800,1.5\n", encoding="utf-8")
    arguments = ["autoscale", "synthetic:pai2020?jobs=200", "--cluster", "homogeneous:40x8", "--rule", "karpenter"]
    more = ["--target", "p95_wait=1h", "--spot", "0.5", "--hazard", "0.2", "--spot-prices", str(prices), "--seeds", "1"]
    assert main([*arguments, *more, "--json", "-o", str(tmp_path / "out")]) == 0
    data = json.loads(capsys.readouterr().out)
    assert len(data["tried"]) == 3
    assert data["chosen"] in data["tried"]
    assert [row["rule"] for row in data["shown"]] == ["fixed", "karpenter", "karpenter"]
    assert json.loads((tmp_path / "out" / "choice.json").read_text(encoding="utf-8"))["chosen"] == data["chosen"]
    assert "Which nodes cost least" in (tmp_path / "out" / "pools.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--rule", "hpa"], "unknown rule for node pools 'hpa'"),
        (["--spot", "2"], "the spot share is 2"),
        (["--checkpoint", "every=3", "--spot", "0.3"], "'every=3' is not one of"),
        (["--checkpoint", "interval=best,save=1m", "--spot", "0.3"], "follows from --hazard"),
        (["--availability", "nowhere.csv", "--spot", "0.3"], "nowhere.csv"),
        (["--hazard", "nowhere.csv", "--spot", "0.3"], "nowhere.csv"),
        (["--hazard", "-1", "--spot", "0.3"], "give 0 or more"),
        (["--spot-prices", "nowhere.csv", "--spot", "0.3"], "nowhere.csv"),
        (["--placement", "magic"], "magic"),
        (["--target", "fast"], "give p95_wait=10m"),
    ],
)
def test_mistakes_about_node_pools_are_one_line(
    more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["autoscale", "synthetic:pai2020?jobs=100", "--cluster", "homogeneous:50x8", "--quiet", *more]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--period 0s", "the time between decisions must be longer than no time"),
        ("--sla 0s", "the SLA must be longer than no time"),
        ("--load 1e9", "requests, more than 20,000,000; take a smaller --load"),
        ("--max 1000000000", "--max 1000000000: at most 100,000 replicas"),
        ("--slots 0", "a replica serves at least one request at once, not 0"),
        ("--service-cv nan", "coefficient of variation of at least 0"),
        ("--service 20s --slots 2", "--service, --slots: no effect on these requests (tokens are served"),
    ],
)
def test_absurd_numbers_and_idle_options_are_one_line(
    options: str, words: str, conversations: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["autoscale", str(conversations), *options.split(), "--json", "-q"]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert (said.err.count("\n"), said.out) == (1, "")
