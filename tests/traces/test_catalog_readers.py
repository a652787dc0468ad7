"""Every public trace of the catalogue has a reader, and Acme's is read as its publisher means it."""

from __future__ import annotations

import pytest

from gputwin.traces.catalog import CATALOG
from gputwin.traces.ingest import ingest
from gputwin.traces.reader import READERS
from tests.traces.samples import acme


@pytest.mark.parametrize("name", CATALOG.names())
def test_every_public_trace_names_a_reader(name: str) -> None:
    assert CATALOG.get(name).format in READERS.names()


def test_acme_times_shapes_and_the_duration_that_is_none(tmp_path):
    trace = ingest(acme.write(tmp_path))
    tasks = {r["job_id"]: r for r in trace.tasks.to_dicts()}
    assert trace.meta.origin_unix_seconds == 1677600600.0  # 2023-03-01 00:10 in Shanghai
    assert (tasks["11"]["submit_time"], tasks["11"]["start_time"], tasks["11"]["end_time"]) == (0.0, 30.0, 150.0)
    # 16 GPUs do not divide by 3 nodes.
    assert (tasks["12"]["instances"], tasks["12"]["gpu_count"]) == (16, 1)
    assert (tasks["dlca"]["instances"], tasks["dlca"]["gpu_count"], tasks["dlca"]["memory_mib"]) == (8, 8, 1024000)
    assert tasks["13"]["is_running"]
    assert {t["tenant"] for t in tasks.values()} == {"seren", "kalos"}
    # Kalos counts the wait as duration: its job ran for 10 s, not 20.
    assert tasks["dlca"]["end_time"] - tasks["dlca"]["start_time"] == 10.0
    assert [(f.count, f.detail) for f in trace.meta.findings if f.rule == "F12"] == [
        (1, "duration is not end_time less start_time")
    ]
