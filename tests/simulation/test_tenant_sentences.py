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


def test_jobs_without_a_tenant_are_not_called_one() -> None:
    found = view({("unknown", "quota_or_fairness"): 900.0, ("vision", "gpu_shortage"): 100.0}).sentences()
    assert found[0].startswith("Jobs of unknown tenants wait 900 GPU-hours for quota or fairness, ")


def test_little_waiting_for_a_quota_is_not_the_news() -> None:
    found = view({("llm", "quota_or_fairness"): 5.0, ("vision", "gpu_shortage"): 95.0}).sentences()
    assert not any("quota" in sentence for sentence in found)


def test_what_the_many_others_wait_for_among_themselves_is_for_each_other() -> None:
    """Of 100 GPU-hours a holds 10; the 90 are between tenants too many to be told apart, none of whom waits for itself."""
    tenants = pl.DataFrame(
        {
            "tenant": ["a", "b"],
            "mean_wait_seconds": [0.0, 3600.0],
            "waited_gpu_hours": [0.0, None],
            "others_wait_gpu_hours": [10.0, None],
            "gpu_hour_share": [0.1, 0.01],
        }
    )
    charged = {"waiting": ["all others"] * 2, "holding": ["all others", "a"], "gpu_hours": [90.0, 10.0]}
    causes = pl.DataFrame({"tenant": ["b"], "cause": ["gpu_shortage"], "gpu_hours": [100.0]})
    (said,) = TenantView(tenants, pl.DataFrame(charged), causes).sentences()
    assert said.startswith(
        "a holds most of what others wait for: 10 GPU-hours, 10.0 % of all waiting for what others hold,"
    )
