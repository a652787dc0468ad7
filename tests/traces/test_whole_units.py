"""Amounts reach the canonical tables as whole units, rounded, and are counted where they were not whole."""

from __future__ import annotations

import polars as pl

from gputwin.traces.ingest import conform_counted
from gputwin.traces.quality import QualityLog
from gputwin.traces.schema import TASKS


def test_a_product_just_below_a_whole_number_is_that_number():
    quality = QualityLog()
    frame = conform_counted(TASKS, pl.DataFrame({"job_id": ["a"], "cpu_milli": [4.35 * 100]}), quality)
    assert (frame["cpu_milli"].item(), quality.findings) == (435, [])


def test_a_fraction_of_a_unit_is_rounded_and_counted():
    quality = QualityLog()
    given = pl.DataFrame({"job_id": ["a", "b", "c"], "gpu_milli": [333.4, 250.0, None]})
    assert conform_counted(TASKS, given, quality)["gpu_milli"].to_list() == [333, 250, None]
    (finding,) = quality.findings
    assert (finding.rule, finding.count, finding.detail) == ("F10", 1, "gpu_milli")
    assert finding.examples == ({"job_id": "a", "gpu_milli": 333.4},)
