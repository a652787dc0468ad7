"""How a plan of shares becomes GPUs held by jobs, round by round.

Narayanan et al., OSDI'20, section 5. A job's priority on a GPU model is its planned share over the share of that model's
time it received since the last plan; each round, each model's GPUs go to the jobs of highest priority. What a job missed
under earlier plans is its deficit, which decides between equals.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gputwin.simulation.planning.snapshot import Floats, Ints, Plan, Planner, PlannerPolicy, Snapshot

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class RoundSettings:
    """Length of a round, least time between two plans (s), and the seed of the order in which models are filled."""

    round_seconds: float = 360.0
    least_replan_seconds: float = 1920.0
    seed: int = 0
    fill_order: tuple[str, ...] = ()
    """GPU models in the order in which they are filled, fastest first; shuffled each round if the plan ignores speed."""


class Mechanism:
    """The jobs in the system, in order of submission, with what each was promised and what it received."""

    def __init__(
        self, models: tuple[str, ...], policy: PlannerPolicy, settings: RoundSettings, planner: Planner | None = None
    ) -> None:
        self.policy, self.settings, self.planner = policy, settings, planner or policy.make()
        self.models = models
        self.plans = 0
        self.must_plan = True
        self.last_plan = 0.0
        self.ids: Ints = np.zeros(0, np.int64)
        self.is_planned: Bools = np.zeros(0, bool)
        wide = (0, len(models))
        self.share, self.received, self.deficit = np.zeros(wide), np.zeros(wide), np.zeros(wide)
        self.model_time = np.zeros(len(models))
        self._fill_order = [models.index(m) for m in settings.fill_order or models]
        self._shuffler = random.Random(settings.seed + 5)

    def admit(self, ids: Ints) -> None:
        """Add jobs that came."""
        rows = (ids.size, len(self.models))
        self.ids = np.concatenate([self.ids, ids])
        self.is_planned = np.concatenate([self.is_planned, np.zeros(ids.size, bool)])
        self.share = np.concatenate([self.share, np.zeros(rows)])
        self.deficit = np.concatenate([self.deficit, np.zeros(rows)])
        self.received = np.concatenate([self.received, np.full(rows, self.settings.round_seconds / 2)])
        self.must_plan = True

    def keep(self, rows: Bools) -> None:
        """Forget the jobs of the other rows, which have left."""
        for name in ("ids", "is_planned", "share", "deficit", "received"):
            setattr(self, name, getattr(self, name)[rows])
        self.must_plan = True

    def plan(self, now: float, snapshot: Callable[[], Snapshot]) -> None:
        """Plan anew if jobs came or left, but not too often; what was missed so far is remembered as a deficit."""
        since = now - self.last_plan
        if not self.must_plan or not (since >= self.settings.least_replan_seconds or self.last_plan == 0.0):
            return
        half = self.settings.round_seconds / 2
        self.deficit += self.share * since - (self.received - half)
        self.received = np.full_like(self.received, half)
        self.model_time = self.received.sum(axis=0)
        self.last_plan, self.must_plan = now, False
        plan = self.planner(snapshot()) if len(self.ids) else Plan.of(self.share)
        self.share = plan.alone
        self.is_planned = np.ones(len(self.ids), bool)
        self.plans += 1

    def receive(self, rows: Ints, models: Ints, seconds: Floats) -> None:
        """Note that these jobs held GPUs of these models for so long."""
        np.add.at(self.received, (rows, models), seconds)
        np.add.at(self.model_time, models, seconds)

    def pick(self, gpus: Floats, able: Bools, capacity: Floats) -> tuple[Ints, Ints]:
        """Return the model that each job gets for this round (−1: none), and the rows of those that get one, in order.

        `able`: where each job can run.
        """
        order = list(self._fill_order)
        if not self.policy.knows_speed:
            self._shuffler.shuffle(order)
        picked, taken = np.full(len(self.ids), -1), []
        priority = np.where(able & self.is_planned[:, None], self.share * self.model_time / self.received, 0.0)
        for model in order:
            may = able[:, model] & (picked < 0)
            if self.policy.keeps_order:
                may &= priority[:, model] > 0
            rows = np.flatnonzero(may)
            first = np.lexsort((-self.share[rows, model], -self.deficit[rows, model], -priority[rows, model]))
            fitting = _that_fit(rows[first], gpus, float(capacity[model]))
            picked[fitting] = model
            taken.append(fitting)
        return picked, np.concatenate(taken) if taken else np.zeros(0, np.int64)


def _that_fit(rows: Ints, gpus: Floats, free: float) -> Ints:
    """Return the jobs that get GPUs, in order; one that does not fit is passed over."""
    asked = gpus[rows]
    if not rows.size or (asked.max() == 1.0 and asked.min() == 1.0):
        return rows[: int(free)]
    taken = []
    for row, count in zip(rows, asked, strict=True):
        if count <= free:
            taken.append(row)
            free -= count
            if free <= 0:
                break
    return np.array(taken, np.int64)
