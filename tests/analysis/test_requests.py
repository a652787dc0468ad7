"""Rates, tokens, clients and sessions of requests: counted by hand, and on the published traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gputwin.analysis import Analysis, analyze
from gputwin.analysis.requests import client_rates, over_time, totals
from gputwin.analysis.requests import requests as summarize
from gputwin.analysis.sessions import sessions
from gputwin.cli.main import main
from gputwin.traces.ingest import ingest
from gputwin.traces.schema import REQUESTS, SERIES, conform


def requests(**columns: Any) -> pl.DataFrame:
    size = len(next(iter(columns.values())))
    frame = pl.DataFrame({"request_id": [str(k) for k in range(size)], **columns})
    return conform(REQUESTS, frame.lazy()).collect()


def test_rate_peak_and_tokens() -> None:
    frame = requests(submit_time=[0.0, 10.0, 20.0, 130.0], input_tokens=[10, 20, 30, 40], output_tokens=[1, 1, 1, 1])
    row = totals(frame).row(0, named=True)
    assert row["rate_per_s"] == pytest.approx(4 / 130)
    assert row["peak_rate_per_s"] == pytest.approx(3 / 60)
    assert row["input_tokens_per_s"] == pytest.approx(100 / 130)
    assert over_time(frame)["requests_per_s"].to_list() == pytest.approx([3 / 60, 0.0, 1 / 60])


def test_requests_without_a_time_count_for_no_rate() -> None:
    frame = requests(submit_time=[0.0, 100.0, None, None], input_tokens=[10, 20, 30, 40], output_tokens=[1, 1, 1, 1])
    (row,) = totals(frame).to_dicts()
    assert (row["requests"], row["timed"]) == (4, 2)
    assert (row["rate_per_s"], row["input_tokens_per_s"]) == (2 / 100, 30 / 100)
    first = summarize(frame, None)
    assert first is not None
    assert first.remarks[0].text.startswith("2 requests in 1 min 40 s: ")
    assert first.remarks[0].text.endswith(" 2 more have no known time.")


def test_a_span_of_ages_does_not_take_ages() -> None:
    assert over_time(requests(submit_time=[0.0, 1e12])).height < 100_000


def test_a_session_is_a_chain_of_prefixes() -> None:
    # Two turns of one session (its second extends the first), a request that shares only the system prompt, and a turn
    # whose last block was filled up meanwhile.
    blocks = [[0, 1, 2, 3], [0, 7, 8], [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 9, 10]]
    row = sessions(requests(submit_time=[0.0, 1.0, 30.0, 100.0], prefix_blocks=blocks)).row(0, named=True)
    assert (row["sessions"], row["turns_max"]) == (2, 3)
    assert row["follow_up_share"] == 0.5
    assert row["gap_p50_seconds"] == (30.0 + 70.0) / 2
    # Seen before: block 0 of the second; 0 to 3 of the third; 0 to 4 of the fourth.
    assert row["blocks_seen_share"] == (1 + 4 + 5) / 20


def test_a_window_in_which_a_client_sent_nothing_counts_as_zero() -> None:
    series = pl.DataFrame(
        {
            "time": [0.0, 600.0, 0.0],
            "metric": ["request_rate_per_s"] * 3,
            "entity": ["a", "a", "b"],
            "value": [1.0, 3.0, 2.0],
        }
    )
    found = client_rates(conform(SERIES, series.lazy()).collect())
    assert found.select("client", "rate_per_s", "share", "active_share").rows() == [
        ("a", 2.0, pytest.approx(2 / 3), 1.0),
        ("b", 1.0, pytest.approx(1 / 3), 0.5),
    ]


def topic_of(path: Path) -> tuple[Analysis, dict[str, pl.DataFrame]]:
    analysis = analyze(ingest([path]))
    topic = analysis.topic("requests")
    assert topic is not None
    return analysis, dict(topic.tables)


def test_a_window_in_which_no_client_sent_anything_counts_as_zero() -> None:
    """As in `autoscale`, which draws the requests: their number is rate × time."""
    times, values = [0.0, 600.0, 600.0, 2400.0], [1.0, 2.0, 1.0, 4.0]
    series = pl.DataFrame(
        {"metric": "request_rate_per_s", "entity": ["a", "a", "b", "a"], "time": times, "value": values}
    )
    found = client_rates(conform(SERIES, series.lazy()).collect())
    assert found["rate_per_s"].sum() * 3000.0 == pytest.approx(sum(values) * 600.0)
    assert found["active_share"].to_list() == pytest.approx([3 / 5, 1 / 5])


def test_shares_of_clients_are_of_the_requests_whose_client_is_known() -> None:
    frame = requests(submit_time=[0.0, 1.0, 2.0, 3.0, None, None], user=["a", "a", "a", "b", None, None])
    found = summarize(frame, None)
    assert found is not None
    assert found.tables["clients"]["share"].to_list() == [0.75, 0.25]
    assert "sends 75.0 % of the requests whose client is known (4)" in " ".join(r.text for r in found.remarks)


def test_azure(real_data: Path) -> None:
    _, tables = topic_of(real_data / "azure_llm_2023")
    row = tables["totals"].row(0, named=True)
    assert row["requests"] == 19_366
    # An hour of the conversation service.
    assert row["rate_per_s"] == pytest.approx(19_366 / 3500, rel=0.05)
    assert row["peak_rate_per_s"] > row["rate_per_s"]


def test_mooncake_has_sessions(real_data: Path) -> None:
    _, tables = topic_of(real_data / "mooncake")
    row = tables["sessions"].row(0, named=True)
    assert 0 < row["follow_up_share"] < 1
    assert row["sessions"] + round(row["follow_up_share"] * 12_031) == 12_031
    assert 0.3 < row["blocks_seen_share"] < 0.6


def test_servegen_has_clients(real_data: Path) -> None:
    _, tables = topic_of(next((real_data / "servegen").glob("*deepseek*")))
    clients = tables["client_rates"]
    assert clients.height == 73
    assert clients["share"].sum() == pytest.approx(1.0)


def test_servegens_rate_is_over_the_windows_left_out_too(real_data: Path) -> None:
    """In 37 of the 2,016 windows of this service nobody sent anything."""
    file = real_data / "servegen" / "language_m-small_client_rates.csv.gz"
    rates = pl.read_csv(file)["rate_rps"]
    found = client_rates(ingest([file]).series)
    assert found["rate_per_s"].sum() == pytest.approx(float(rates.sum()) / 2016)


def test_genai_has_latencies_and_clients(real_data: Path) -> None:
    analysis, tables = topic_of(next((real_data / "alibaba_v2026_genai").glob("lora_request*")))
    assert tables["clients"]["requests"][0] > 0
    assert analysis.table("serving", "latency") is not None


def test_describe_shows_a_serving_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.csv"
    path.write_text("timestamp,client_id,prompt_tokens,completion_tokens,latency_ms\n" + "0,a,5,6,100\n60,b,7,8,300\n")
    out = str(tmp_path / "trace")
    assert main(["ingest", str(path), "--guess", "-o", out]) == 0
    capsys.readouterr()
    assert main(["describe", out, "--json"]) == 0
    serving = json.loads(capsys.readouterr().out)["serving"]
    assert (serving["clients"], serving["input_tokens"], serving["rate_per_s"]) == (2, 12, 2 / 60)
    assert serving["duration_seconds"]["mean"] == pytest.approx(0.2)
    assert main(["describe", out]) == 0
    assert "requests per second" in capsys.readouterr().out
