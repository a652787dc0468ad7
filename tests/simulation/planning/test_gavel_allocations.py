"""Our plans beside the 43 allocations that the authors' code returned, by the objective each policy optimises.

The authors' makespan policy bisects to 5 % and stops: there ours must be at least as good and within those 5 %.
All other 41 objectives agree to 1e-4.
"""

from __future__ import annotations

import ast
import json

import numpy as np
import pytest

from gputwin.simulation.planning.finish_time import fairest
from gputwin.simulation.planning.max_min import worth_of
from gputwin.simulation.planning.shares import isolated_shares
from gputwin.simulation.planning.snapshot import PLANNERS, Pairs, Plan, snapshot_of

NAMES = {
    "allox": "allox",
    "isolated": "isolated",
    "max_min_fairness": "max-min",
    "max_min_fairness_perf": "max-min-speed",
    "max_min_fairness_packed": "max-min-sharing",
    "max_min_fairness_water_filling_perf": "water-filling",
    "finish_time_fairness": "finish-time",
    "finish_time_fairness_perf": "finish-time-speed",
    "max_sum_throughput_perf": "cost",
    "max_sum_throughput_normalized_by_cost_perf": "cost",
    "max_sum_throughput_normalized_by_cost_perf_SLOs": "cost",
    "min_total_duration_perf": "makespan",
}


def read(case):
    """Return the case's snapshot and the plan of the authors' code."""
    models = tuple(sorted(case["cluster"]))
    jobs = [name for name in case["throughputs"] if "," not in name]
    joint = [name for name in case["throughputs"] if "," in name]

    def of_jobs(key, default=1.0):
        return np.array([case.get(key, {}).get(job, default) for job in jobs], float)

    rows = {int(job): row for row, job in enumerate(jobs)}
    pairs = Pairs(
        np.array([[rows[j] for j in ast.literal_eval(name)] for name in joint], np.int64).reshape(-1, 2),
        np.array([[case["throughputs"][name][m] for m in models] for name in joint]).reshape(-1, len(models), 2),
    )
    snapshot = snapshot_of(
        models,
        np.array([case["cluster"][m] for m in models]),
        np.array([[case["throughputs"][job][m] for m in models] for job in jobs]),
        ids=np.array([int(job) for job in jobs]),
        gpus=of_jobs("scale_factors"),
        weights=of_jobs("priority_weights"),
        steps_left=of_jobs("num_steps_remaining"),
        seconds_since_submit=of_jobs("times_since_start", 0.0),
        deadline_seconds=of_jobs("SLOs", np.inf),
        prices=np.array([case["instance_costs"][m] for m in models]) if "instance_costs" in case else None,
        pairs=pairs,
    )
    theirs = case["allocation_by_gavel_code"]
    alone, paired = (np.array([[theirs[n][m] for m in models] for n in names]) for names in (jobs, joint))
    return snapshot, Plan(alone, paired.reshape(-1, len(models)))


def objective(policy, snapshot, plan, alone_seconds):
    """Return what the policy optimises, larger is better."""
    got = plan.throughputs(snapshot)
    match policy:
        case "max-min":
            return (plan.alone.sum(axis=1) * snapshot.gpus / snapshot.weights).min()
        case "max-min-speed" | "max-min-sharing" | "water-filling":
            return (got / worth_of(snapshot)).min()
        case "finish-time" | "finish-time-speed":
            speeds = snapshot.throughputs
            if policy == "finish-time":
                speeds = np.broadcast_to(speeds.max(axis=1, keepdims=True), speeds.shape)
            alone = (speeds * isolated_shares(snapshot)).sum(axis=1)
            own = np.array([alone_seconds[int(job)] for job in snapshot.ids]) + snapshot.steps_left / alone
            return -(snapshot.steps_left / (speeds * plan.alone).sum(axis=1) / own).max()
        case "cost":
            return (plan.alone * snapshot.throughputs / snapshot.prices).sum()
        case "makespan":
            return -(snapshot.steps_left / got).max()
        case _:
            return got.sum()


def cases(reference):
    return json.loads((reference / "oracles/schedulers/gavel/policy_allocations.json").read_text())["cases"]


def test_every_allocation_of_the_authors_has_our_objective(reference):
    seen = 0
    planners = {}
    for case in cases(reference):
        policy = NAMES[case["policy"]]
        snapshot, theirs = read(case)
        # These were asked twice in a row, the second time of the same jobs with less work left.
        is_continued = "after" in case["id"] or (policy.startswith("finish") and "[200, 300]" in case["id"])
        planner = planners[policy] if is_continued else PLANNERS.get(policy).make()
        planners[policy] = planner
        ours = planner(snapshot)
        assert ours.alone.min() >= 0
        assert ours.alone.sum(axis=1).max() <= 1 + 1e-6
        held = (ours.alone * snapshot.gpus[:, None]).sum(axis=0)
        held += (ours.paired * snapshot.gpus[snapshot.pairs.jobs[:, 0]][:, None]).sum(axis=0)
        assert (held <= snapshot.capacity + 1e-6).all()
        memory = getattr(getattr(planner, "inner", planner), "alone_seconds", {})
        a, b = (objective(policy, snapshot, plan, memory) for plan in (ours, theirs))
        if policy == "makespan":
            assert b * 1e-9 <= a - b <= 0.05 * abs(b), case["id"]
        elif policy in ("isolated", "allox"):
            assert ours.alone == pytest.approx(theirs.alone, abs=1e-4), case["id"]
        else:
            assert a == pytest.approx(b, abs=1e-4), case["id"]
        seen += 1
    assert seen == 43


def test_finish_time_ratio_is_one_on_an_equal_share():
    snapshot = snapshot_of(("a", "b"), np.array([2.0, 2.0]), np.ones((4, 2)), steps_left=np.full(4, 100.0))
    own = snapshot.steps_left / (isolated_shares(snapshot)).sum(axis=1)
    assert fairest(snapshot, own)[1] == pytest.approx(1.0, abs=1e-5)
