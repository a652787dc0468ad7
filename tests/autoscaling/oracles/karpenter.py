"""Cases of Karpenter's scoring and budget tests as calls of ours."""

from __future__ import annotations

import math
from typing import Any

from gputwin.autoscaling.pools.budgets import Budget, allowed
from gputwin.autoscaling.pools.interface import Task
from gputwin.autoscaling.pools.scoring import savings_ratio, score_move

Case = dict[str, Any]


def run(table: str, case: Case) -> Case:
    """Return what ours gives for one case of a table."""
    if table == "score_move":
        done = score_move(
            case["savings"],
            case["move_disruption_cost"],
            case["pool_total_cost"],
            case["pool_total_disruption_cost"],
            case["k"],
        )
        return {"approved": done.approved, "score": done.score, "infinite": done.is_infinite}
    if table == "savings_ratio":
        tasks = [Task(f"pod-{i}", {}) for i in range(case["pods"])]
        return {"ratio": savings_ratio(case["price"], tasks)}
    assert table == "budgets", table
    budgets = [
        Budget(given) if isinstance(given, str) else Budget(given["nodes"], tuple(given["reasons"]))
        for given in case["active_budgets"]
    ]
    leaving = case.get("already_disrupting", 0)
    reasons = case["expected_allowed"]
    return {"allowed": {reason: allowed(budgets, reason, case["nodes_in_pool"], leaving) for reason in reasons}}


def agrees(table: str, case: Case) -> bool:
    ours = run(table, case)
    if table == "score_move":
        same = (ours["approved"], ours["infinite"]) == (case["expected_approved"], case["expected_infinite"])
        expected = case["expected_score"]
        # The source states scores to five digits at most; where it gives none, ours is none or infinite.
        if expected is None:
            return same and (ours["score"] is None or ours["infinite"])
        return same and math.isclose(ours["score"], expected, rel_tol=1e-3, abs_tol=1e-9)
    if table == "savings_ratio":
        return math.isclose(ours["ratio"], case["expected_ratio"], abs_tol=1e-9)
    return bool(ours["allowed"] == case["expected_allowed"])
