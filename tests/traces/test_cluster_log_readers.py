"""Readers of cluster logs (Alibaba spot 2026, SenseTime Helios) on the publishers' files and on small ones."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from gputwin.core.errors import InputError
from gputwin.traces.dataset import Trace
from gputwin.traces.ingest import Options, ingest
from gputwin.traces.reader import Clock
from gputwin.traces.readers.helios import METRICS
from tests.traces.samples import helios, spot2026


def findings(trace: Trace) -> dict[str, int]:
    """Return the count of each rule, summed over files and columns."""
    counts: dict[str, int] = {}
    for finding in trace.meta.findings:
        counts[finding.rule] = counts.get(finding.rule, 0) + finding.count
    return counts


# Spot 2026


def test_spot_nodes_are_the_published_fleet(real_data):
    trace = ingest([real_data / "alibaba_v2026_spot" / "node_info_df.csv.gz"])
    assert (trace.nodes.height, trace.nodes["gpu_count"].sum()) == (4_278, 10_412)
    assert trace.nodes["cpu_milli"].max() == 192_000
    assert trace.meta.findings == ()


@pytest.mark.parametrize(
    ("name", "jobs", "running"),
    [("heaviest_gpu_jobs_top200", 200, 17), ("longest_jobs_top200", 200, 200), ("outliers_short_heavy", 500, 0)],
)
def test_spot_job_lists_are_jobs(real_data, name, jobs, running):
    trace = ingest([real_data / "alibaba_v2026_spot" / f"derived_{name}.csv"])
    assert trace.tasks.height == trace.meta.rows_kept == jobs
    assert trace.tasks["is_running"].sum() == running


def test_spot_folder_keeps_each_job_once(real_data):
    trace = ingest([real_data / "alibaba_v2026_spot"])
    assert dict(trace.meta.tables) == {"nodes": 4_278, "tasks": 894, "series": 3_312 * (4 + 6 + 3)}
    assert trace.meta.rows_dropped == findings(trace)["Q02"] == 6
    assert findings(trace)["F12"] == 781
    gpus = trace.series.filter(pl.col("metric") == "active_gpus")
    of_models = gpus.filter(pl.col("entity").is_not_null()).group_by("time").agg(pl.col("value").sum()).sort("time")
    of_all = gpus.filter(pl.col("entity").is_null()).sort("time")
    assert (of_models["value"] - of_all["value"]).abs().max() < 1e-6


def test_spot_requests_are_shares_of_whole_devices(tmp_path):
    tasks = ingest(spot2026.write(tmp_path)).tasks
    asked = {
        job: row for job, *row in tasks.select("job_id", "instances", "gpu_count", "gpu_milli", "cpu_milli").iter_rows()
    }
    assert asked["437260"] == [16, 2, 750, 15_000]
    assert asked["437261"] == [1, 1, 290, 2_000]
    assert asked["371183"] == [176, 8, 1000, 184_000]


def test_spot_jobs_reaching_the_end_are_running_and_spot_yields_to_high_priority(tmp_path):
    tasks = ingest(spot2026.write(tmp_path)).tasks
    last = tasks.row(by_predicate=pl.col("job_id") == "253689", named=True)
    assert (last["is_running"], last["duration_seconds"], last["gpu_models_allowed"]) == (True, None, "A10")
    assert dict(tasks.select("qos", "priority").unique().iter_rows()) == {"HP": 1, "Spot": 0}
    assert set(tasks["tenant"]) == {"13", "57"}


# Helios


@pytest.fixture(scope="module")
def earth(real_data: Path) -> Trace:
    return ingest([real_data / "helios_earth"])


def test_helios_sequences_of_all_virtual_clusters_become_series(earth):
    assert earth.meta.rows_read == earth.meta.rows_kept == 11 * 44_640 + 181
    assert earth.series.height == 11 * 44_640 * 23 + 181 * 26
    minutes = earth.series.filter(pl.col("metric") != "quota_gpus")
    assert minutes["entity"].n_unique() == 11
    assert minutes["metric"].n_unique() == len(METRICS) == 23


def test_helios_time_is_shanghai_wall_time(earth):
    assert (earth.meta.clock, earth.meta.zone) == (Clock.ABSOLUTE, "Asia/Shanghai")
    assert earth.meta.origin_unix_seconds == 1_585_670_400  # 2020-04-01 00:00 in Shanghai
    minutes = earth.series.filter(pl.col("metric") == "total_gpus")
    assert minutes["time"].min() == 30 * 86_400


def test_helios_allocation_is_running_over_total(earth):
    busy = earth.series.filter(
        pl.col("entity") == "vc6YE", pl.col("metric").is_in(["running_gpus", "allocation_ratio"])
    )
    means = dict(busy.group_by("metric").agg(pl.col("value").mean()).iter_rows())
    assert means["running_gpus"] == pytest.approx(187.746931)
    assert means["allocation_ratio"] == pytest.approx(means["running_gpus"] / 208, abs=0.0005)


def test_helios_capped_totals_are_reported(earth):
    assert findings(earth) == {"F12": 48 + 4 + 2_054 + 27 + 15 + 74 + 143 + 291 + 25 + 204}


def test_helios_quota_of_a_day_adds_up_to_the_cluster(real_data):
    trace = ingest([real_data / "helios_earth" / "Earth_gpu_number.csv"])
    day = trace.series.filter(pl.col("time") == 0)
    assert day.filter(pl.col("entity").is_null())["value"].item() == 784
    assert day.filter(pl.col("entity").is_not_null())["value"].sum() == 784


def test_helios_summary_is_not_a_trace(real_data):
    with pytest.raises(InputError, match=r"not a file of any known format|lacks column"):
        ingest([real_data / "helios_summary"])


def test_helios_jobs_spread_over_their_nodes(tmp_path):
    trace = ingest(helios.write(tmp_path)[:1])
    shape = {
        job: row
        for job, *row in trace.tasks.select("job_id", "instances", "gpu_count", "gpu_milli", "cpu_milli").iter_rows()
    }
    assert shape["1425512"] == [2, 8, 1000, 32_000]
    assert shape["1425513"] == [1, 0, 0, 4_000]
    assert shape["1425514"] == [9, 1, 1000, 2_000], "nine GPUs on two nodes: a gang of nine"
    assert trace.meta.origin_unix_seconds == 1_591_699_261  # 2020-06-09 18:41:01 in Shanghai


def test_helios_states_are_mapped_and_running_jobs_have_no_end(tmp_path):
    tasks = ingest(helios.write(tmp_path)[:1]).tasks
    assert dict(tasks.select("job_id", pl.col("status").cast(pl.String)).iter_rows()) == {
        "1425511": "completed",
        "1425512": "failed",
        "1425513": "cancelled",
        "1425514": "running",
        "1425515": "failed",
    }
    running = tasks.row(by_predicate=pl.col("is_running"), named=True)
    assert (running["job_id"], running["end_time"], running["duration_seconds"]) == ("1425514", None, None)


def test_helios_clusters_together_keep_their_names_apart(tmp_path):
    for cluster in ("Earth", "Venus"):
        (tmp_path / cluster).mkdir()
        helios.write(tmp_path / cluster)[2].unlink()
    trace = ingest([tmp_path])
    assert trace.tasks.height == 10
    assert set(trace.tasks["tenant"]) >= {"Earth/vcJkd", "Venus/vcJkd"}
    assert set(trace.series["entity"]) == {f"{c}{v}" for c in ("Earth", "Venus") for v in ("", "/vchbv", "/vc6YE")}


def test_helios_sequence_may_be_named_by_its_folder(tmp_path):
    (tmp_path / "vc6YE").mkdir()
    path = helios.write(tmp_path)[2].rename(tmp_path / "vc6YE" / "cluster_sequence_vc.csv")
    assert set(ingest([path]).series["entity"]) == {"vc6YE"}


def test_a_row_without_time_counts_as_one(tmp_path):
    path = helios.write(tmp_path)[2]
    path.write_text(path.read_text().replace("2020-06-09 00:01:00", ""))
    meta = ingest([path]).meta
    assert (meta.rows_read, meta.rows_kept, meta.rows_dropped) == (2, 1, 1)


def test_a_cell_that_is_no_time_is_named_or_leniently_unknown(tmp_path):
    path = helios.write(tmp_path)[0]
    path.write_text(path.read_text().replace("2020-06-09 18:41:27", "yesterday"))
    with pytest.raises(InputError, match=r"cluster_log\.csv, row 3, field 'submit_time': 'yesterday' is not a time"):
        ingest([path])
    trace = ingest([path], options=Options(lenient=True))
    assert trace.tasks["submit_time"].null_count() == findings(trace)["F03"] == 1
