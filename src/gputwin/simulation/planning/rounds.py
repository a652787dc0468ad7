"""Rounds: how a plan of shares becomes GPUs held by jobs, and a simulation of jobs under it.

Narayanan et al., OSDI'20, section 5. Time is cut into rounds. A job's priority on a GPU model is its planned share over
the share of that model's time it received since the last plan; each round, each model's GPUs go to the jobs of highest
priority, and a job that is picked again keeps its GPUs (its lease is extended, nothing is saved or restored).
This module simulates rounds by itself; snapshots and plans are those an engine with a planner would exchange.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gputwin.simulation.planning.snapshot import Floats, Ints, Plan, Planner, PlannerPolicy, Snapshot, snapshot_of

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class RoundJobs:
    """Jobs in order of submission: when, how many steps, how many GPUs, steps a second on each GPU model."""

    submit: Floats
    steps: Floats
    gpus: Floats
    throughputs: Floats
    weights: Floats


@dataclass(frozen=True)
class RoundSettings:
    """Length of a round, least time between two plans (s), and the seed of the order in which models are filled."""

    round_seconds: float = 360.0
    least_replan_seconds: float = 1920.0
    seed: int = 0
    fill_order: tuple[str, ...] = ()
    """GPU models in the order in which they are filled, fastest first; shuffled each round if the plan ignores speed."""


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
    rounds = _Rounds(jobs, models, capacity, policy, settings or RoundSettings(), planner or policy.make())
    wanted = until or slice(0, len(jobs.submit))
    while np.isnan(rounds.result.end[wanted]).any():
        rounds.one()
    return rounds.result


class _Rounds:
    """State of the simulation; rows of the active arrays are the jobs in the system, in order of submission."""

    def __init__(
        self,
        jobs: RoundJobs,
        models: tuple[str, ...],
        capacity: Floats,
        policy: PlannerPolicy,
        settings: RoundSettings,
        planner: Planner,
    ) -> None:
        self.jobs, self.models, self.capacity = jobs, models, capacity.astype(np.float64)
        self.policy, self.settings, self.planner = policy, settings, planner
        self.result = RoundResult(np.full(len(jobs.submit), np.nan), submit=jobs.submit)
        self.throughputs = np.where(jobs.gpus[:, None] <= self.capacity, jobs.throughputs, 0.0)
        self.shuffler = random.Random(settings.seed + 5)
        self.fill_order = [models.index(m) for m in settings.fill_order or models]
        self.now = float(jobs.submit[0])
        self.last_end = 0.0
        self.running_until = 0.0
        self.arrived = 0
        self.ids: Ints = np.zeros(0, np.int64)
        self.left: Floats = np.zeros(0)
        self.is_planned: Bools = np.zeros(0, bool)
        wide = (0, len(models))
        self.share, self.received, self.deficit = np.zeros(wide), np.zeros(wide), np.zeros(wide)
        self.model_time = np.zeros(len(models))
        self.must_plan = True
        self.last_plan = 0.0
        self.held: Ints = np.zeros(0, np.int64)
        """Model that each active job held in the last round, −1: none."""

    def one(self) -> None:
        """Run one round: admit jobs, plan if something changed, pick jobs, let them run, remove those that end."""
        self._admit()
        self._plan()
        picked = self._pick()
        running = np.flatnonzero((picked >= 0) & self.is_planned)
        self._count_leases(picked)
        self.result.rounds += 1
        if not running.size:
            self._wait()
            return
        rate = self.throughputs[self.ids[running], picked[running]]
        # Steps are whole, as in the paper's system: a job stops at the last step that fits into the round.
        steps = np.minimum(np.floor(rate * self.settings.round_seconds), self.left[running])
        ends = self.now + steps / rate
        self.left[running] -= steps
        spent = ends - (self.last_end or self.now)
        np.add.at(self.received, (running, picked[running]), spent)
        np.add.at(self.model_time, picked[running], spent)
        done = running[self.left[running] <= 0]
        self.result.end[self.ids[done]] = ends[self.left[running] <= 0]
        self.now = self.last_end = float(ends.max())
        if done.size:
            self._remove(done)

    def _wait(self) -> None:
        """Let time pass until the next job comes."""
        if self.arrived >= len(self.jobs.submit):
            # Nobody comes any more and nobody runs: plan at the next moment that a plan may be made.
            if not self.must_plan:
                raise RuntimeError("jobs are left that the planner never lets run")
            self.now = max(self.now + 1.0, self.last_plan + self.settings.least_replan_seconds)
            return
        self.now = max(self.now, float(self.jobs.submit[self.arrived]))

    def _admit(self) -> None:
        stop = int(np.searchsorted(self.jobs.submit, self.now, side="right"))
        fresh = np.arange(self.arrived, stop)
        if not fresh.size:
            return
        self.arrived = stop
        rows = (fresh.size, len(self.models))
        self.ids = np.concatenate([self.ids, fresh])
        self.left = np.concatenate([self.left, self.jobs.steps[fresh]])
        self.is_planned = np.concatenate([self.is_planned, np.zeros(fresh.size, bool)])
        self.share = np.concatenate([self.share, np.zeros(rows)])
        self.deficit = np.concatenate([self.deficit, np.zeros(rows)])
        self.received = np.concatenate([self.received, np.full(rows, self.settings.round_seconds / 2)])
        self.held = np.concatenate([self.held, np.full(fresh.size, -1)])
        self.must_plan = True

    def _remove(self, done: Ints) -> None:
        keep = np.ones(len(self.ids), bool)
        keep[done] = False
        for name in ("ids", "left", "is_planned", "share", "deficit", "received", "held"):
            setattr(self, name, getattr(self, name)[keep])
        self.must_plan = True

    def _plan(self) -> None:
        """Plan anew if jobs came or ended, but not too often; what was missed so far is remembered as a deficit."""
        since = self.now - self.last_plan
        if not self.must_plan or not (since >= self.settings.least_replan_seconds or self.last_plan == 0.0):
            return
        half = self.settings.round_seconds / 2
        self.deficit += self.share * since - (self.received - half)
        self.received = np.full_like(self.received, half)
        self.model_time = self.received.sum(axis=0)
        self.last_plan, self.must_plan = self.now, False
        plan = self.planner(self.snapshot()) if len(self.ids) else Plan.of(self.share)
        self.share = plan.alone
        self.is_planned = np.ones(len(self.ids), bool)
        self.result.plans += 1

    def snapshot(self) -> Snapshot:
        """Return what the planner sees now."""
        return snapshot_of(
            self.models,
            self.capacity,
            self.throughputs[self.ids],
            ids=self.ids,
            gpus=self.jobs.gpus[self.ids],
            weights=self.jobs.weights[self.ids],
            steps_left=self.left,
            seconds_since_submit=self.now - self.jobs.submit[self.ids],
        )

    def _pick(self) -> Ints:
        """Return the model that each active job gets for this round, −1: none."""
        order = list(self.fill_order)
        if not self.policy.knows_speed:
            self.shuffler.shuffle(order)
        picked = np.full(len(self.ids), -1)
        gpus = self.jobs.gpus[self.ids]
        able = self.throughputs[self.ids] > 0
        priority = np.where(able & self.is_planned[:, None], self.share * self.model_time / self.received, 0.0)
        for model in order:
            may = able[:, model] & (picked < 0)
            if self.policy.keeps_order:
                may &= priority[:, model] > 0
            rows = np.flatnonzero(may)
            sorted_rows = rows[
                np.lexsort((-self.share[rows, model], -self.deficit[rows, model], -priority[rows, model]))
            ]
            picked[_that_fit(sorted_rows, gpus, float(self.capacity[model]))] = model
        return picked

    def _count_leases(self, picked: Ints) -> None:
        self.result.leases += int((self.held >= 0).sum())
        self.result.extended += int(((self.held >= 0) & (self.held == picked)).sum())
        self.held = picked


def _that_fit(rows: Ints, gpus: Floats, free: float) -> Ints:
    """Return the jobs that get GPUs, in order; one that does not fit is passed over."""
    asked = gpus[rows]
    if not rows.size or asked.max() == 1.0:
        return rows[: int(free)]
    taken = []
    for row, count in zip(rows, asked, strict=True):
        if count <= free:
            taken.append(row)
            free -= count
            if free <= 0:
                break
    return np.array(taken, np.int64)
