"""The parts of every completion time sum to it exactly, for each job and for all, whatever happens to jobs."""

from __future__ import annotations

import polars as pl
import pytest

from gputwin.simulation.completion import PER_SECOND, completion_of, completion_parts, completion_totals, rounding_of
from gputwin.simulation.result import result_of
from tests.conformance.crowd import crowd
from tests.oracles.cases import random_case
from tests.oracles.test_change_against_reference import random_setting

CASES = 60
MOST_NANOSECONDS = 100
"""Twenty parts, each rounded to a nanosecond, and what floating point loses in these short runs."""


@pytest.mark.parametrize("part", range(3))
def test_parts_of_random_cases_sum_exactly(part: int) -> None:
    seen = 0
    for seed in range(part * CASES, (part + 1) * CASES):
        # Times that are no round numbers, in every other case.
        case = random_case(seed) if seed % 2 else crowd(seed, 12)
        setting = random_setting(seed, case)
        if setting is None:
            continue
        jobs = result_of(setting.by_engine(case)).jobs
        found = completion_of(jobs)
        assert found.height == jobs.filter(pl.col("outcome") == "finished").height
        parts = [name for name in found.columns if name != "completion"]
        assert (found.select(pl.sum_horizontal(parts)).to_series() == found["completion"]).all()
        # The largest part gets no more than rounding.
        assert abs(rounding_of(jobs)).max(initial=0) <= MOST_NANOSECONDS
        totals = completion_totals(jobs)
        assert sum(totals[name] for name in parts) == totals["completion"] == sum(found["completion"].to_list())
        completion = jobs.filter(pl.col("outcome") == "finished")["jct_seconds"]
        assert totals["completion"] == pytest.approx(completion.sum() * PER_SECOND, rel=1e-12, abs=found.height)
        assert sum(completion_parts(totals).values()) == pytest.approx(totals["completion"] / PER_SECOND, rel=1e-12)
        seen += len([name for name in parts if totals[name] and name not in ("service", "wait")])
    assert seen > CASES


def test_totals_beyond_64_bits_are_exact() -> None:
    rows = 10
    jobs = pl.DataFrame(
        {
            "outcome": ["finished"] * rows,
            "duration_seconds": [3e9 + 1e-9] * rows,
            "wait_seconds": [1e9] * rows,
            "jct_seconds": [4e9] * rows,
        }
    )
    totals = completion_totals(jobs)
    assert totals["service"] + totals["wait"] == totals["completion"] == rows * 4_000_000_000 * PER_SECOND
    assert totals["completion"] > 1 << 63
