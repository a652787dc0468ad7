"""Every real file at hand: read to the last row of its README, or on the list of those that are no trace."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from gputwin.core.errors import InputError
from gputwin.traces.describe import describe
from gputwin.traces.ingest import ingest
from gputwin.traces.readers.helios import METRICS as HELIOS_METRICS

PAI, OPENB, DLRM = "alibaba_v2020_pai", "alibaba_v2023_openb", "alibaba_v2025_dlrm"
GENAI, SPOT, HELIOS = "alibaba_v2026_genai", "alibaba_v2026_spot", "helios_earth"

PODS = {
    **{"default": 8152, "cpu0": 7064, "cpu037": 7336, "cpu050": 7439, "cpu100": 7853, "cpu235": 9240},
    **{"cpu250": 9420, "cpu300": 10094, "gpushare20": 8152, "gpushare40": 8152, "gpushare80": 8152},
    **{"gpuspec10": 8152, "gpuspec25": 8152, "gpuspec33": 8152},
    **{"multigpu20": 8324, "multigpu40": 8746, "multigpu50": 9061},
}
GENAI_SERIES = {
    **{"qps": 24627, "queue_size_raw_anon": 1434, "queue_rt_raw_anon": 23478},
    **{"pipeline_update_latency_anon": 36046, "basemodel_update_latency_anon": 7531},
    **{"lora_update_latency_anon": 27415, "controlnet_latency_data_anon": 29221},
    **{"model_predict_data_anon": 6254, "pipeline_inference_data_anon": 34421},
}
GENAI_USAGE = {
    "pod_gpu_duty_cycle_anon": 157417,
    "pod_gpu_memory_used_bytes_anon": 161413,
    "pod_memory_util_anon": 214890,
}
GENAI_REQUESTS = {"lora_request_trace": 26823, "data_trace_processed": 68195}
CLIENT_RATES = {
    "language_m-large": 99839,
    "language_m-small": 40095,
    "reason_deepseek-r1": 3111,
    "multimodal_mm-image": 2094,
}
VIRTUAL_CLUSTERS = ("3sl", "6YE", "8Sj", "JLV", "SoL", "TJs", "caA", "gkz", "hbv", "ira", "vlY")
MINUTES = 44640
HOURS = 3312

# File -> rows of the README, and rows of each table. A wide row of samples becomes one series row per metric.
READABLE: dict[str, tuple[int, dict[str, int]]] = {
    f"{DLRM}/disaggregated_DLRM_trace.csv.gz": (23871, {"tasks": 23871}),
    f"{OPENB}/openb_node_list_all_node.csv": (1523, {"nodes": 1523}),
    f"{OPENB}/openb_node_list_gpu_node.csv": (1213, {"nodes": 1213}),
    **{f"{OPENB}/openb_pod_list_{name}.csv.gz": (rows, {"tasks": rows}) for name, rows in PODS.items()},
    f"{PAI}/pai_machine_spec.csv.gz": (1897, {"nodes": 1897}),
    f"{PAI}/pai_instance_table_tail_sample.csv.gz": (19731, {"tasks": 4269, "instances": 19731}),
    f"{PAI}/pai_joined_1000_sample.csv.gz": (999, {"nodes": 540, "tasks": 963, "instances": 998, "usage": 999}),
    **{f"{GENAI}/{name}.csv.gz": (rows, {"series": rows}) for name, rows in GENAI_SERIES.items()},
    **{f"{GENAI}/{name}.csv.gz": (rows, {"usage": rows}) for name, rows in GENAI_USAGE.items()},
    **{f"{GENAI}/{name}.csv.gz": (rows, {"requests": rows}) for name, rows in GENAI_REQUESTS.items()},
    f"{SPOT}/node_info_df.csv.gz": (4278, {"nodes": 4278}),
    f"{SPOT}/derived_heaviest_gpu_jobs_top200.csv": (200, {"tasks": 200}),
    f"{SPOT}/derived_longest_jobs_top200.csv": (200, {"tasks": 200}),
    f"{SPOT}/derived_outliers_short_heavy.csv": (500, {"tasks": 500}),
    f"{SPOT}/hourly_concurrency.csv.gz": (HOURS, {"series": HOURS * 4}),
    f"{SPOT}/hourly_concurrency_top_models.csv.gz": (HOURS, {"series": HOURS * 6}),
    f"{SPOT}/hourly_summary.csv.gz": (HOURS, {"series": HOURS * 3}),
    "alibaba_lingjun_2023/topo.csv.gz": (847, {"nodes": 847}),
    "philly/philly_jobs_by_vc.csv.gz": (82247, {"tasks": 82247}),
    "philly/philly_attempts_run_times.csv.gz": (151816, {"tasks": 151816}),
    "philly/philly_node_sequence.csv.gz": (105644, {"series": 105644 * 2}),
    "philly/philly_runtime.csv.gz": (83154, {"tasks": 83154}),
    f"{HELIOS}/Earth_gpu_number.csv": (181, {"series": 181 * 26}),
    **{
        f"{HELIOS}/vc{name}_sequence.csv.gz": (MINUTES, {"series": MINUTES * len(HELIOS_METRICS)})
        for name in VIRTUAL_CLUSTERS
    },
    "thetagpu/thetagpu_jobs.csv.gz": (15824, {"tasks": 15824}),
    "azure_llm_2023/AzureLLMInferenceTrace_conv.csv.gz": (19366, {"requests": 19366}),
    "mooncake/conversation_trace.jsonl.gz": (12031, {"requests": 12031}),
    **{f"servegen/{model}_client_rates.csv.gz": (rows, {"series": rows * 2}) for model, rows in CLIENT_RATES.items()},
}

# File, or folder with all it has -> why there is no reader for it.
NO_TRACE = {
    "README.md": "says what the files are",
    "acme_util_cdf/": "points of cumulative distributions, no jobs and no times",
    "alibaba_v2020_minibatch/": "times of training iterations, scaled; no scheduling in it",
    "fgd_reference/": "published results of policies, read by the tests that compare with them",
    "gavel_throughputs/": "measured throughput by GPU type: a scaling table, no trace",
    "pollux_profiles/": "measured step times by placement: a scaling table, no trace",
    "helios_summary/": "five rows of published averages",
    f"{SPOT}/derived_bucket_duration.csv": "aggregate of the job table",
    f"{SPOT}/derived_bucket_gpu_demand.csv": "aggregate of the job table",
    f"{SPOT}/derived_demand_by_model.csv": "aggregate of the job table",
    f"{SPOT}/derived_duration_quantiles.csv": "aggregate of the job table",
    f"{SPOT}/derived_hour_of_day_patterns.csv": "aggregate of the job table",
    f"{SPOT}/derived_inter_arrival_quantiles.csv": "aggregate of the job table",
    f"{SPOT}/derived_job_type_summary.csv": "aggregate of the job table",
    f"{SPOT}/derived_worker_count_distribution.csv": "aggregate of the job table",
}

FOLDERS: dict[str, tuple[int, int, dict[str, int]]] = {
    # Seven workers of the tail sample are in the joined sample too.
    PAI: (22627, 7, {"nodes": 1897, "tasks": 5224, "instances": 20722, "usage": 999}),
    GENAI: (819165, 0, {"usage": 533720, "requests": 95018, "series": 190427}),
    # Six jobs are both among the longest and among the heaviest.
    SPOT: (15114, 6, {"nodes": 4278, "tasks": 894, "series": HOURS * 13}),
    HELIOS: (11 * MINUTES + 181, 0, {"series": 11 * MINUTES * len(HELIOS_METRICS) + 181 * 26}),
}


def reason_for_none(name: str) -> str | None:
    """Return why the file has no reader, or None where nobody has said so."""
    return NO_TRACE.get(name) or NO_TRACE.get(name.split("/")[0] + "/")


def test_each_file_has_a_reader_or_a_reason_for_none(real_data: Path) -> None:
    found = {p.relative_to(real_data).as_posix() for p in real_data.rglob("*") if p.is_file()}
    assert not set(READABLE) - found, "files of the README are not here"
    undecided = sorted(name for name in found - set(READABLE) if reason_for_none(name) is None)
    assert not undecided, "new files: add their rows to READABLE, or why there is no reader to NO_TRACE"


@pytest.mark.parametrize("name", READABLE)
def test_a_file_gives_the_rows_of_its_readme(name: str, real_data: Path) -> None:
    rows, tables = READABLE[name]
    meta = ingest([real_data / name]).meta
    assert meta.rows_read == rows == meta.rows_kept
    assert meta.rows_dropped == 0
    assert dict(meta.tables) == tables


def test_what_is_no_trace_is_refused_in_one_line(real_data: Path) -> None:
    for path in real_data.rglob("*"):
        name = path.relative_to(real_data).as_posix()
        if path.is_file() and name not in READABLE:
            with pytest.raises(InputError) as refusal:
                ingest([path])
            assert path.name in str(refusal.value)


@pytest.mark.parametrize("name", FOLDERS)
def test_a_whole_folder_is_one_trace(name: str, real_data: Path) -> None:
    rows, dropped, tables = FOLDERS[name]
    meta = ingest([real_data / name]).meta
    assert (meta.rows_read, meta.rows_dropped) == (rows, dropped)
    assert meta.rows_kept == rows - dropped
    assert dict(meta.tables) == tables


def test_dlrm_is_what_its_readme_says(real_data: Path) -> None:
    facts = describe(ingest([real_data / DLRM]))
    assert (facts.tasks, facts.applications) == (23_871, 156)
    assert facts.tasks_without_submit_and_start == 7_280
    assert facts.tasks_running == 8_878
    assert facts.tasks_complete == 12_390
    assert facts.wait_seconds is not None
    assert facts.wait_seconds["mean"] == pytest.approx(187.93, abs=0.005)
    assert facts.wait_seconds["zero_share"] == pytest.approx(0.66, abs=0.01)


def test_openb_is_what_its_readme_says(real_data: Path) -> None:
    files = ("openb_pod_list_default.csv.gz", "openb_node_list_gpu_node.csv")
    trace = ingest([real_data / OPENB / name for name in files])
    facts = describe(trace)
    assert (facts.tasks, facts.nodes, facts.gpus) == (8_152, 1_213, 6_212)
    assert trace.tasks["start_time"].null_count() == facts.tasks_never_started == 897


def test_the_pai_machines_are_what_the_readme_says(real_data: Path) -> None:
    nodes = ingest([real_data / PAI / "pai_machine_spec.csv.gz"]).nodes
    assert (nodes.height, nodes["gpu_count"].sum()) == (1_897, 6_742)
    assert nodes.filter(pl.col("gpu_count") == 0)["gpu_model"].null_count() == (nodes["gpu_count"] == 0).sum()


def test_the_spot_fleet_is_what_the_readme_says(real_data: Path) -> None:
    facts = describe(ingest([real_data / SPOT / "node_info_df.csv.gz"]))
    assert (facts.nodes, facts.gpus) == (4_278, 10_412)
