from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from gputwin.core.errors import UserError
from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.traces.ingest import ingest
from gputwin.traces.schema import TABLES, conform
from gputwin.traces.synthetic import Synthetic, generate, write_pai2020


@pytest.fixture(scope="module")
def trace() -> Synthetic:
    return generate("pai2020", jobs=4_000, seed=11, instances=True)


class TestInstances:
    def test_every_table_is_canonical_already(self, trace: Synthetic) -> None:
        for name, frame in trace.tables.items():
            assert conform(TABLES[name], frame.lazy()).collect().equals(frame)
        for part in trace.iter_usage():
            assert conform(TABLES["usage"], part.lazy()).collect().equals(part)

    def test_the_seed_decides_instances_and_usage_too(self, trace: Synthetic) -> None:
        again = generate("pai2020", jobs=4_000, seed=11, instances=True)
        assert again.tables["instances"].equals(trace.tables["instances"])
        assert again.usage().equals(trace.usage())

    def test_a_trace_object_carries_clock_zone_and_usage(self, trace: Synthetic) -> None:
        opened = trace.to_trace()
        assert (opened.meta.clock, opened.meta.zone) == ("weekday", "Asia/Shanghai")
        assert opened.meta.tables["usage"] == opened.usage.height > 0
        assert set(trace.draft().tables) == {"tasks", "nodes", "instances", "usage"}

    def test_each_task_has_its_gang_in_order(self, trace: Synthetic) -> None:
        tasks, instances = trace.tables["tasks"], trace.tables["instances"]
        counted = instances.group_by("job_id", "role", maintain_order=True).len()
        assert counted.select("job_id", "role").equals(tasks.select("job_id", "role"))
        assert (counted["len"].cast(pl.Int32) == tasks["instances"]).all()
        assert instances["instance_id"].is_unique().all()

    def test_machines_have_the_gpu_model_of_the_task(self, trace: Synthetic) -> None:
        tables = trace.tables
        placed = (
            tables["instances"]
            .join(tables["tasks"].select("job_id", "role", "gpu_model"), on=["job_id", "role"])
            .join(tables["nodes"].select("node_id", model="gpu_model"), on="node_id", how="left")
        )
        on_gpu = placed.filter(pl.col("gpu_model").is_not_null(), pl.col("status") != "waiting")
        assert (on_gpu["gpu_model"] == on_gpu["model"]).all()
        assert (placed["node_id"].is_null() == (placed["status"] == "waiting")).all()

    def test_members_live_within_their_task(self, trace: Synthetic) -> None:
        tables = trace.tables
        both = tables["instances"].join(tables["tasks"], on=["job_id", "role"], suffix="_task")
        assert (both["start_time"] >= both["start_time_task"]).all()
        assert (both["end_time"] <= both["end_time_task"]).all()
        assert (both["end_time"] >= both["start_time"]).all()

    def test_use_lies_below_requests_as_published(self) -> None:
        """NSDI'22 §3.3 medians; below plan in the publisher's notebook: CPU 84.5 %, GPU 98.0 %, memory 95.9 %."""
        trace = generate("pai2020", jobs=20_000, seed=4, instances=True)
        asked = trace.tables["tasks"].select(
            "job_id",
            "role",
            cpu="cpu_milli",
            memory="memory_mib",
            gpu=(pl.col("gpu_count") * pl.col("gpu_milli")),
        )
        used = trace.usage().filter(pl.col("scope") == "instance").join(asked, on=["job_id", "role"])
        on_gpu = used.filter(pl.col("gpu") > 0)
        assert used["cpu_milli"].median() == pytest.approx(1_400, rel=0.2)
        assert on_gpu["gpu_milli"].median() == pytest.approx(42, rel=0.3)
        assert used["memory_mib"].median() / 1024 == pytest.approx(3.5, rel=0.25)
        assert (used["cpu_milli"] < used["cpu"]).mean() == pytest.approx(0.845, abs=0.04)
        assert (on_gpu["gpu_milli"] < on_gpu["gpu"]).mean() == pytest.approx(0.980, abs=0.02)
        assert (used["memory_mib"] < used["memory"]).mean() == pytest.approx(0.959, abs=0.02)

    def test_no_machine_is_used_beyond_what_it_has(self, trace: Synthetic) -> None:
        nodes = trace.tables["nodes"].select("node_id", cores="cpu_milli", capacity="memory_mib", gpus="gpu_count")
        usage = trace.usage().join(nodes, on="node_id")
        for used, has in (
            (pl.col("cpu_milli"), pl.col("cores")),
            (pl.col("memory_max_mib"), pl.col("capacity")),
            (pl.col("memory_mib"), pl.col("memory_max_mib")),
            (pl.col("gpu_milli"), pl.col("gpus") * WHOLE_GPU_MILLI),
            (pl.col("cpu_percent"), pl.lit(100)),
            (pl.col("gpu_percent"), pl.lit(100)),
        ):
            assert usage.select((used <= has).all()).item()
        devices = usage.filter(pl.col("device").is_not_null())
        assert (devices["device"].str.tail(1).cast(pl.Int32) < devices["gpus"]).all()


class TestPublisher:
    def test_reading_the_seven_tables_back_gives_the_same_trace(self, trace: Synthetic, tmp_path: Path) -> None:
        paths = write_pai2020(trace, tmp_path)
        assert len(paths) == 7
        read = ingest(paths)
        for name, frame in trace.tables.items():
            assert read.frame(name).equals(frame), name
        assert read.usage.equals(trace.usage())
        assert read.meta.rows_dropped == 0

    def test_lines_look_like_the_publisher_s(self, trace: Synthetic, tmp_path: Path) -> None:
        write_pai2020(trace, tmp_path)
        first = {p.stem: p.read_text().split("\n", 1)[0].split(",") for p in tmp_path.glob("*.csv")}
        widths = {
            "pai_job_table": 6,
            "pai_task_table": 10,
            "pai_instance_table": 9,
            "pai_sensor_table": 16,
            "pai_group_tag_table": 5,
            "pai_machine_spec": 5,
            "pai_machine_metric": 12,
        }
        assert {name: len(fields) for name, fields in first.items()} == widths
        job, inst, user, status, start, _ = first["pai_job_table"]
        assert [len(job), len(inst), len(user)] == [24, 60, 12]
        assert status in {"Terminated", "Failed", "Running", "Waiting"}
        assert start.endswith(".0")
        assert first["pai_machine_spec"][1:] == ["CPU", "96", "512", "0"]
        assert first["pai_machine_metric"][2].isdigit()
        memory = {line.split(",")[7] for line in (tmp_path / "pai_task_table.csv").read_text().splitlines()}
        assert "29.296875" in memory

    def test_without_instances_four_tables_are_written(self, tmp_path: Path) -> None:
        trace = generate("pai2020", jobs=50, seed=1)
        assert len(write_pai2020(trace, tmp_path)) == 4
        assert ingest([tmp_path]).tasks.equals(trace.tables["tasks"])

    def test_tables_of_the_publisher_are_never_overwritten(self, tmp_path: Path) -> None:
        trace = generate("pai2020", jobs=50, seed=1)
        (tmp_path / "pai_job_table.csv").write_text("published")
        with pytest.raises(UserError, match="refusing to overwrite"):
            write_pai2020(trace, tmp_path)
        assert (tmp_path / "pai_job_table.csv").read_text() == "published"
        write_pai2020(trace, tmp_path / "ours")
        assert len(write_pai2020(trace, tmp_path / "ours")) == 4

    def test_other_traces_have_neither_instances_nor_a_publisher_s_form(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="no instances"):
            generate("philly", jobs=10, seed=0, instances=True)
        with pytest.raises(UserError, match="philly"):
            write_pai2020(generate("philly", jobs=10, seed=0), tmp_path)
