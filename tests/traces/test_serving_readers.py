"""Readers of model-serving traces (DLRM 2025, GenTD26, LLM requests) on the publishers' files and on small ones."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from gputwin.core.errors import InputError
from gputwin.traces.dataset import Trace
from gputwin.traces.ingest import Options, ingest
from gputwin.traces.measures import IS_COMPLETE, WAIT
from gputwin.traces.reader import Clock
from tests.traces.samples import dlrm2025, genai2026, requests


def findings(trace: Trace) -> dict[str, int]:
    """Return the count of each rule, summed over files and columns."""
    counts: dict[str, int] = {}
    for finding in trace.meta.findings:
        counts[finding.rule] = counts.get(finding.rule, 0) + finding.count
    return counts


# DLRM 2025


@pytest.fixture(scope="module")
def dlrm(real_data: Path) -> Trace:
    return ingest([real_data / "alibaba_v2025_dlrm"])


def test_dlrm_keeps_every_row_and_flags_both_kinds_of_censoring(dlrm):
    assert dlrm.meta.rows_read == dlrm.meta.rows_kept == dlrm.tasks.height == 23_871
    assert dlrm.tasks["application"].n_unique() == 156
    assert dict(dlrm.tasks["role"].value_counts().iter_rows()) == {"CN": 16_485, "HN": 7_386}
    assert dlrm.tasks.select(IS_COMPLETE.sum()).item() == 12_390
    assert dlrm.tasks["is_running"].sum() == 8_878
    assert findings(dlrm) == {"Q13": 7_280, "Q14": 8_878, "Q16": 16}
    assert dlrm.meta.clock == Clock.RELATIVE


def test_dlrm_waits_are_the_published_ones(dlrm):
    waits = dlrm.tasks.select(WAIT).to_series().drop_nulls()
    assert waits.len() == 16_591
    assert waits.mean() == pytest.approx(187.93, abs=0.005)
    assert waits.max() == 238_116


def test_dlrm_amounts_are_in_our_units(tmp_path):
    tasks = ingest(dlrm2025.write(tmp_path)).tasks
    hn = tasks.row(by_predicate=pl.col("job_id") == "instance_21", named=True)
    assert (hn["gpu_count"], hn["gpu_milli"], hn["gpu_limit_milli"], hn["rdma_percent"]) == (1, 1000, 1000, 25)
    assert (hn["cpu_milli"], hn["memory_mib"], hn["disk_mib"]) == (12_000, 122_880, 696_320)
    assert hn["disk_limit_mib"] == 1_200_005
    assert (hn["max_per_node"], hn["end_time"], hn["is_running"]) == (8, 75.0, False)
    cn = tasks.row(by_predicate=pl.col("job_id") == "instance_13574", named=True)
    assert (cn["gpu_count"], cn["gpu_milli"], cn["max_per_node"], cn["duration_seconds"]) == (0, 0, None, 131.0)


def test_a_renamed_column_is_named(tmp_path):
    (path,) = dlrm2025.write(tmp_path)
    path.write_text(path.read_text().replace("app_name", "application"))
    with pytest.raises(InputError, match=r"looks like dlrm2025.*'app_name'"):
        ingest([path])


# GenTD26

SERIES_ROWS = {
    "qps_generative": 23_513,
    "qps_api": 1_114,
    "queue_length": 1_434,
    "queue_wait_ms": 23_478,
    "pipeline_load_ms": 36_046,
    "base_model_load_ms": 7_531,
    "lora_load_ms": 27_415,
    "controlnet_load_ms": 29_221,
    "model_predict_ms": 6_254,
    "pipeline_inference_ms": 34_421,
}
USAGE_ROWS = {"gpu_milli": 157_417, "gpu_memory_mib": 161_413, "memory_percent": 214_889}


@pytest.fixture(scope="module")
def genai(real_data: Path) -> Trace:
    return ingest([real_data / "alibaba_v2026_genai"])


def test_genai_keeps_every_sample_and_request(genai):
    assert dict(genai.series["metric"].value_counts().iter_rows()) == SERIES_ROWS
    assert {c: genai.usage[c].count() for c in USAGE_ROWS} == USAGE_ROWS
    assert genai.usage.height == sum(USAGE_ROWS.values()) + 1
    assert genai.requests.height == 26_823 + 68_195
    assert genai.meta.rows_read == genai.meta.rows_kept == 819_165


def test_genai_clocks_start_at_zero_and_are_called_unrelated(genai):
    assert genai.series["time"].max() == genai.usage["end_time"].max() == 82_080
    assert genai.requests["submit_time"].min() == 0
    assert genai.requests["submit_time"].max() / 86_400 == pytest.approx(23.025, abs=0.001)
    assert genai.requests["submit_time"].null_count() == 68_195
    assert genai.meta.clock == Clock.RELATIVE
    assert findings(genai) == {"F05": 19, "F06": 2, "F14": 3, "Q14": 3, "Q15": 30, "Q16": 94, "Q20": 1}


def test_genai_usage_is_in_our_units(genai):
    assert genai.usage["gpu_milli"].max() == pytest.approx(996.67, abs=0.01)
    assert genai.usage["memory_percent"].max() == pytest.approx(99.315, abs=0.001)
    assert genai.usage["gpu_memory_mib"].max() == pytest.approx(48_478, abs=1)
    assert genai.usage["instance_id"].n_unique() == 208


def test_genai_requests_tell_model_adapters_and_how_they_ended(genai):
    timed = genai.requests.filter(pl.col("submit_time").is_not_null())
    status = dict(timed["status"].cast(pl.String).value_counts().iter_rows())
    assert status == {"completed": 26_392, "failed": 398, "running": 3, "waiting": 30}
    assert timed.filter(pl.col("status").is_in(["running", "waiting"]))["duration_seconds"].null_count() == 33
    assert timed["user"].n_unique() == 4_247
    timeless = genai.requests.filter(pl.col("submit_time").is_null())
    assert (timeless["adapters"] == 0).sum() == 52_993
    assert timeless["adapters"].max() == 6


@pytest.mark.parametrize("part", range(8))
def test_any_genai_file_alone_will_do(tmp_path, part):
    path = genai2026.write(tmp_path)[part]
    trace = ingest([path])
    assert trace.meta.source == "genai2026"
    assert sum(trace.meta.tables.values()) == trace.meta.rows_read
    assert "F06" not in findings(trace)


def test_genai_samples_under_a_strange_name_are_an_error_that_says_so(tmp_path):
    path = genai2026.write(tmp_path)[0].rename(tmp_path / "export.csv")
    with pytest.raises(InputError, match=r"name does not say which metric.*qps"):
        ingest([path])


# LLM requests


def test_azure_requests_have_their_times_in_utc(real_data):
    trace = ingest([real_data / "azure_llm_2023"])
    assert trace.requests.height == trace.meta.rows_kept == 19_366
    assert (trace.meta.clock, trace.meta.zone) == (Clock.ABSOLUTE, "UTC")
    assert trace.meta.origin_unix_seconds == 1_700_158_546
    assert trace.requests["submit_time"][0] == pytest.approx(0.68059, abs=1e-6)
    assert trace.requests["submit_time"][-1] == pytest.approx(3_502.402527, abs=1e-6)
    assert trace.requests.select("input_tokens", "output_tokens").row(0) == (374, 44)
    assert trace.requests["request_id"][0] == "AzureLLMInferenceTrace_conv:2"


def test_azure_times_may_carry_their_offset(tmp_path):
    path = tmp_path / "AzureLLMInferenceTrace_code_1week.csv"
    path.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2024-05-10 00:00:00.009930+00:00,2162,5\n"
        "2024-05-10 00:00:01+00:00,2399,6\n"
    )
    trace = ingest([path])
    assert trace.meta.origin_unix_seconds == 1_715_299_200
    assert trace.requests["submit_time"].to_list() == pytest.approx([0.00993, 1.0], abs=1e-6)


def test_mooncake_requests_have_seconds_and_prefix_blocks(real_data):
    trace = ingest([real_data / "mooncake"])
    assert trace.requests.height == trace.meta.rows_kept == 12_031
    assert trace.requests["submit_time"].max() == pytest.approx(3_536.999)
    assert trace.requests["prefix_blocks"][0].to_list() == list(range(14))
    assert findings(trace) == {"F05": 1}
    assert trace.meta.clock == Clock.RELATIVE


def test_bailian_requests_count_seconds_and_tell_their_kind(tmp_path):
    path = tmp_path / "qwen_traceA_blksz_16.jsonl"
    path.write_text(
        '{"chat_id": 159, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 521, "output_length": 132,'
        ' "type": "text", "turn": 1, "hash_ids": [1089, 1090]}\n'
    )
    (request,) = ingest([path]).requests.to_dicts()
    assert (request["submit_time"], request["kind"], request["input_tokens"]) == (61.114, "text", 521)


SERVEGEN = {
    "language_m-large": 99_839,
    "language_m-small": 40_095,
    "reason_deepseek-r1": 3_111,
    "multimodal_mm-image": 2_094,
}
CLIENTS = {"language_m-large": 162, "language_m-small": 43, "reason_deepseek-r1": 73, "multimodal_mm-image": 35}


def test_servegen_models_do_not_mix_their_clients(real_data):
    trace = ingest([real_data / "servegen"])
    rates = trace.series.filter(pl.col("metric") == "request_rate_per_s")
    model = pl.col("entity").str.split("/").list.first().alias("model")
    counted = rates.group_by(model).agg(pl.len(), pl.col("entity").n_unique().alias("clients")).sort("model")
    assert {m: n for m, n, _ in counted.iter_rows()} == SERVEGEN
    assert {m: c for m, _, c in counted.iter_rows()} == CLIENTS
    assert trace.series.filter(pl.col("metric") == "interarrival_cv").height == rates.height
    assert trace.meta.rows_kept == sum(SERVEGEN.values())
    assert findings(trace) == {"F04": 12, "F06": 4}


def test_requests_of_all_services_together_start_at_zero(real_data):
    trace = ingest([real_data / "azure_llm_2023", real_data / "mooncake", real_data / "servegen"])
    assert dict(trace.meta.tables) == {"requests": 31_397, "series": 290_278}
    starts = trace.requests.group_by("application").agg(pl.col("submit_time").min())
    assert (starts["submit_time"] < 1).all()
    assert (trace.meta.clock, trace.meta.origin_unix_seconds) == (Clock.RELATIVE, None)
    assert findings(trace)["F06"] == 6


def test_files_of_one_name_keep_their_requests_apart(tmp_path):
    paths = []
    for folder in ("monday", "tuesday"):
        (tmp_path / folder).mkdir()
        paths.append(requests.write(tmp_path / folder)[1])
    trace = ingest(paths)
    assert trace.requests["request_id"].to_list() == [
        "conversation_trace:1", "conversation_trace:2", "conversation_trace#2:1", "conversation_trace#2:2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"timestamp": 1, "input_length": "many", "output_length": 1}', "row 2, field 'input_length'.*whole number"),
        ('{"timestamp": NaN, "input_length": 1, "output_length": 1}', "row 2, field 'timestamp'.*not a number"),
        ('{"timestamp": 1, "input_length": 1, "output_length": 1, "hash_ids": [1.5]}', "field 'hash_ids'"),
        ('{"timestamp": 1, "input_length"', "row 2: .*not a JSON object"),
        ("[1, 2]", "row 2: .*not a JSON object"),
    ],
)
def test_a_bad_json_line_is_named_or_leniently_unknown(tmp_path, line, message):
    path = tmp_path / "trace.jsonl"
    path.write_text(f'{{"timestamp": 0, "input_length": 10.0, "output_length": 2}}\n{line}\n')
    with pytest.raises(InputError, match=message) as raised:
        ingest([path])
    assert "trace.jsonl" in str(raised.value)
    trace = ingest([path], options=Options(lenient=True))
    assert (trace.requests.height, findings(trace)["F03"]) == (2, 1)


def test_client_rates_without_client_or_time_are_dropped_and_counted_as_one_row(tmp_path):
    path = tmp_path / "m_client_rates.csv"
    path.write_text("client,window_start_s,rate_rps,cv\n0,0,1.5,1\n,600,1.5,1\n0,,1.5,1\n0,-600,1.5,1\n")
    trace = ingest([path])
    assert (trace.meta.rows_read, trace.meta.rows_kept, trace.meta.rows_dropped) == (4, 1, 3)
    assert trace.series["entity"].to_list() == ["m/0", "m/0"]
