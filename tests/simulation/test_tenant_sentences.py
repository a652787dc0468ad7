"""What a run's tables of tenants say in words, waiting for a quota included."""

from __future__ import annotations

import polars as pl

from gputwin.simulation.waits_by_tenant import TenantView


def view(causes: dict[tuple[str, str], float]) -> TenantView:
    tenants = pl.DataFrame({"tenant": ["llm", "vision"], "mean_wait_seconds": [72_720.0, 249.0]})
    blocking = pl.DataFrame(schema={"waiting": pl.String, "holding": pl.String, "gpu_hours": pl.Float64})
    rows = [{"tenant": who, "cause": why, "gpu_hours": hours} for (who, why), hours in causes.items()]
    return TenantView(tenants, blocking, pl.DataFrame(rows))


def test_who_waits_for_a_quota_is_named_first() -> None:
    found = view({("llm", "quota_or_fairness"): 900.0, ("vision", "gpu_shortage"): 100.0}).sentences()
    assert found[0] == "llm waits 900 GPU-hours for quota or fairness, 90.0 % of all waiting."


def test_little_waiting_for_a_quota_is_not_the_news() -> None:
    found = view({("llm", "quota_or_fairness"): 5.0, ("vision", "gpu_shortage"): 95.0}).sentences()
    assert not any("quota" in sentence for sentence in found)
