"""Rounds as the published simulator of Gavel has them: the next begins when the last job of the one before is done.

Narayanan et al., OSDI'20, section 5. Jobs run in whole steps and are not placed on nodes; a job that is picked again keeps
its GPUs (its lease is extended, nothing is saved or restored). `drive.py` has rounds of equal length in the engine, on
nodes; which jobs get GPUs is the same (`mechanism.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gputwin.simulation.planning.mechanism import Mechanism, RoundSettings
from gputwin.simulation.planning.snapshot import Floats, Ints, Planner, PlannerPolicy, Snapshot, snapshot_of


@dataclass(frozen=True)
class RoundJobs:
    """Jobs in order of submission: when, how many steps, how many GPUs, steps a second on each GPU model."""

    submit: Floats
    steps: Floats
    gpus: Floats
    throughputs: Floats
    weights: Floats


@dataclass
class RoundResult:
    """When each job ended (NaN: not yet), and counts of plans, rounds and kept leases."""

    end: Floats
    rounds: int = 0
    plans: int = 0
    leases: int = 0
    extended: int = 0
    submit: Floats = field(default_factory=lambda: np.zeros(0))

    def mean_completion_seconds(self, jobs: slice) -> float:
        """Return the mean time from submission to end of these jobs."""
        return float((self.end - self.submit)[jobs].mean())


def simulate_rounds(
    jobs: RoundJobs,
    models: tuple[str, ...],
    capacity: Floats,
    policy: PlannerPolicy,
    settings: RoundSettings | None = None,
    *,
    until: slice | None = None,
    planner: Planner | None = None,
) -> RoundResult:
    """Return when each job ended under the planner, rounds of which begin when the last job of the one before is done.

    The simulation stops when all jobs of the slice `until` have ended (all jobs without it).
    """
    rounds = _Rounds(jobs, capacity, Mechanism(models, policy, settings or RoundSettings(), planner))
    wanted = until or slice(0, len(jobs.submit))
    while np.isnan(rounds.result.end[wanted]).any():
        rounds.one()
    return rounds.result


class _Rounds:
    """State of the simulation; rows of the active arrays are the jobs in the system, in order of submission."""

    def __init__(self, jobs: RoundJobs, capacity: Floats, mechanism: Mechanism) -> None:
        self.jobs, self.capacity, self.mechanism = jobs, capacity.astype(np.float64), mechanism
        self.result = RoundResult(np.full(len(jobs.submit), np.nan), submit=jobs.submit)
        self.throughputs = np.where(jobs.gpus[:, None] <= self.capacity, jobs.throughputs, 0.0)
        self.now = float(jobs.submit[0])
        self.last_end = 0.0
        self.arrived = 0
        self.left: Floats = np.zeros(0)
        self.held: Ints = np.zeros(0, np.int64)
        """Model that each active job held in the last round, −1: none."""

    def one(self) -> None:
        """Run one round: admit jobs, plan if something changed, pick jobs, let them run, remove those that end."""
        self._admit()
        mechanism = self.mechanism
        mechanism.plan(self.now, self.snapshot)
        self.result.plans = mechanism.plans
        throughputs = self.throughputs[mechanism.ids]
        picked, _ = mechanism.pick(self.jobs.gpus[mechanism.ids], throughputs > 0, self.capacity)
        running = np.flatnonzero((picked >= 0) & mechanism.is_planned)
        self._count_leases(picked)
        self.result.rounds += 1
        if not running.size:
            self._wait()
            return
        rate = throughputs[running, picked[running]]
        # Steps are whole, as in the paper's system: a job stops at the last step that fits into the round.
        steps = np.minimum(np.floor(rate * mechanism.settings.round_seconds), self.left[running])
        ends = self.now + steps / rate
        self.left[running] -= steps
        mechanism.receive(running, picked[running], ends - (self.last_end or self.now))
        done = running[self.left[running] <= 0]
        self.result.end[mechanism.ids[done]] = ends[self.left[running] <= 0]
        self.now = self.last_end = float(ends.max())
        if done.size:
            self._remove(done)

    def _wait(self) -> None:
        """Let time pass until the next job comes."""
        if self.arrived >= len(self.jobs.submit):
            # Nobody comes any more and nobody runs: plan at the next moment that a plan may be made.
            if not self.mechanism.must_plan:
                raise RuntimeError("jobs are left that the planner never lets run")
            self.now = max(self.now + 1.0, self.mechanism.last_plan + self.mechanism.settings.least_replan_seconds)
            return
        self.now = max(self.now, float(self.jobs.submit[self.arrived]))

    def _admit(self) -> None:
        stop = int(np.searchsorted(self.jobs.submit, self.now, side="right"))
        fresh = np.arange(self.arrived, stop)
        if fresh.size:
            self.arrived = stop
            self.mechanism.admit(fresh)
            self.left = np.concatenate([self.left, self.jobs.steps[fresh]])
            self.held = np.concatenate([self.held, np.full(fresh.size, -1)])

    def _remove(self, done: Ints) -> None:
        rows = np.ones(len(self.left), bool)
        rows[done] = False
        self.mechanism.keep(rows)
        self.left, self.held = self.left[rows], self.held[rows]

    def snapshot(self) -> Snapshot:
        """Return what the planner sees now."""
        ids = self.mechanism.ids
        return snapshot_of(
            self.mechanism.models,
            self.capacity,
            self.throughputs[ids],
            ids=ids,
            gpus=self.jobs.gpus[ids],
            weights=self.jobs.weights[ids],
            steps_left=self.left,
            seconds_since_submit=self.now - self.jobs.submit[ids],
        )

    def _count_leases(self, picked: Ints) -> None:
        self.result.leases += int((self.held >= 0).sum())
        self.result.extended += int(((self.held >= 0) & (self.held == picked)).sum())
        self.held = picked
