"""Cases of KEDA's executor tests as calls of ours."""

from __future__ import annotations

from typing import Any

from gputwin.autoscaling.decisions.keda.executor import Switch, switched
from gputwin.autoscaling.decisions.keda.jobs import JobStrategy, jobs_to_start

Case = dict[str, Any]
NOW_S = 100_000.0


def run_job(case: Case) -> Case:
    """Return the most jobs to start and how many are asked for."""
    strategy = JobStrategy(case["strategy"], case.get("queue_length_deduction"), case.get("running_job_percentage"))
    most, asked = jobs_to_start(
        strategy,
        case["max_scale"],
        case["running_jobs"],
        case["pending_jobs"],
        case.get("min_replicas", 0),
        case.get("max_replicas", 100),
        case["scale_to"],
    )
    return {"max_scale": most, "scale_to": asked}


def run_object(case: Case) -> Case:
    """Return the replicas after one pass of the executor."""
    switch = Switch(
        case["min_replicas"],
        case["idle_replicas"],
        case.get("cooldown_seconds", 300.0),
        case.get("initial_cooldown_seconds", 0.0),
        pause_in=case.get("pause_scale_in", False),
        pause_out=case.get("pause_scale_out", False),
        force_activation=case.get("force_activation", False),
    )
    ago = case.get("last_active")
    last = None if ago is None else NOW_S - float(ago)
    replicas, _ = switched(switch, case["current"], case["active"], bool(case.get("error")), NOW_S, last)
    return {"replicas": case["current"] if replicas is None else replicas}


def run(table: str, case: Case) -> Case:
    return run_job(case) if table == "scaled_job_strategies" else run_object(case)


def agrees(table: str, case: Case) -> bool:
    ours = run(table, case)
    if table == "scaled_object":
        return bool(ours["replicas"] == case["expected"])
    return all(case.get(f"expected_{name}") in (value, None) for name, value in ours.items())
