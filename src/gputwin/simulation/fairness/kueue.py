"""Kueue's admission: queues with quotas in a tree of cohorts, borrowing, and preemption within it."""

from __future__ import annotations

from gputwin.simulation.engine.state.tenants import KUEUE_CLASSICAL, KUEUE_FAIR
from gputwin.simulation.policy import FAIRNESS, FairnessRule

FAIRNESS.add(
    FairnessRule(
        "kueue-classical",
        "a job starts within its ClusterQueue's quota or what that may borrow from its cohort, who does not borrow first; "
        "preemption within the queue and reclaim within the cohort as its policies say (needs --queues)",
        source="Kueue, KEP-79 (hierarchical cohorts) and its classical preemption",
        reclaims=KUEUE_CLASSICAL,
        queues=True,
    )
)
FAIRNESS.add(
    FairnessRule(
        "kueue-fair",
        "as kueue-classical, but the queue with the lowest dominant share goes next, and preemption evens shares: "
        "by the strategies LessThanOrEqualToFinalShare (`final_share`) and LessThanInitialShare (`initial_share`)",
        source="Kueue, KEP-1714 (fair sharing)",
        parameters={"final_share": True, "initial_share": True},
        reclaims=KUEUE_FAIR,
        queues=True,
    )
)
