"""Sixty jobs under the policies of Tiresias's simulator, each job's end compared."""

from __future__ import annotations

from gputwin.studies.reproduce.tiresias60 import POLICIES, reproduce


def test_jobs_end_as_in_the_authors_simulator(reference):
    """All but the last rule are exact. There limits (2000 against 2700 GPU-seconds) and the order within a queue (by
    demotion against by submission) differ, and 45 of 60 jobs end as published."""
    result = reproduce(reference / "oracles/schedulers/tiresias").summary()
    same = dict(zip(result["policy"], result["same_end"], strict=True))
    assert result["jobs"].to_list() == [60] * len(POLICIES)
    assert {name: same[name] for name in POLICIES if "@" not in name} == dict.fromkeys(list(POLICIES)[:-1], 60)
    low = result.filter(policy="dlas-gpu@300,900,2000")
    assert low["same_end"].item() >= 45
