"""Max-min fairness: the least of the jobs' normalised throughputs is as large as can be."""

from __future__ import annotations

from gputwin.simulation.planning.embedding import solve_embedded
from gputwin.simulation.planning.programs import blind, raise_levels
from gputwin.simulation.planning.shares import proportional_throughputs
from gputwin.simulation.planning.snapshot import PLANNERS, Floats, Plan, PlannerPolicy, Snapshot

SOURCE = "Narayanan et al., Heterogeneity-Aware Cluster Scheduling Policies, OSDI'20, section 4.1"


def worth_of(snapshot: Snapshot) -> Floats:
    """Return the throughput that counts as 1 for each job: weight × equal share's throughput / GPUs taken."""
    return snapshot.weights * proportional_throughputs(snapshot) / snapshot.gpus


def max_min(snapshot: Snapshot) -> Plan:
    """Return shares that maximise the least throughput / (weight × equal share's throughput / GPUs).

    Of many such plans, the one of the published system: its program is linear, and the solver's method is known.
    """
    return raise_levels(snapshot, worth_of(snapshot), method=solve_embedded)[0]


PLANNERS.add(
    PlannerPolicy(
        "max-min",
        "max-min fairness over GPU models that count as equal, weighted",
        SOURCE,
        lambda: lambda s: max_min(blind(s)),
        knows_speed=False,
    )
)
PLANNERS.add(
    PlannerPolicy("max-min-speed", "max-min fairness of normalised throughputs, weighted", SOURCE, lambda: max_min)
)
