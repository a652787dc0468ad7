"""One job with a deadline on spot and on-demand nodes: greedy, uniform progress, and the optimum in hindsight.

Time goes in ticks. At each tick the job is idle, on a spot node (where one is available) or on demand. Moving to another
node takes `changeover` ticks that are paid and do no work. A spot node that is no longer available is lost; what the job
has done is kept.

Policies after Wu et al., "Can't Be Late: Optimizing Spot Instance Savings under Deadlines", NSDI 2024.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gputwin.core.errors import UserError

Flags = NDArray[np.bool_]
IDLE, SPOT, ON_DEMAND = range(3)
"""Where the job is."""


@dataclass(frozen=True)
class DeadlineJob:
    """Work, deadline and changeover in ticks; prices per tick, on demand and spot."""

    work: int
    deadline: int
    changeover: int = 0
    on_demand_price: float = 1.0
    spot_price: float = 0.35

    def __post_init__(self) -> None:
        if self.work < 1 or self.changeover < 0:
            raise UserError("a job with a deadline has at least one tick of work and a changeover of 0 or more")
        if self.deadline < self.work + self.changeover:
            raise UserError(
                f"work and one start take {self.work + self.changeover} ticks, so the deadline of {self.deadline} cannot "
                "be met; give a later one"
            )

    def price(self, mode: int) -> float:
        """Return what a tick costs."""
        return (0.0, self.spot_price, self.on_demand_price)[mode]


@dataclass(frozen=True)
class Progress:
    """The job at a tick, as a policy sees it; nothing of the future."""

    tick: int
    done: int
    mode: int
    """Where it was in the last tick; idle, if its spot node has been lost."""
    available: bool
    starting: int
    """Ticks of changeover left where it is."""


@dataclass(frozen=True)
class DeadlineRun:
    """What a job cost and when it ended; `end` is None where it missed its deadline."""

    cost: float
    end: int | None
    modes: tuple[int, ...]

    @property
    def on_demand_ticks(self) -> int:
        """Return the ticks paid on demand."""
        return self.modes.count(ON_DEMAND)


Policy = Callable[[DeadlineJob, Progress], int]


def safe(job: DeadlineJob, now: Progress) -> int:
    """Return where the job may be without risk to its deadline: on spot, idle, or else on demand (the safety net).

    Whatever happens, the time left must hold the work left and one changeover. Waiting takes a tick of it, a start on a
    spot node a changeover; staying on a spot node takes nothing.
    """
    spare = job.deadline - now.tick - (job.work - now.done)
    if now.available:
        return SPOT if now.mode == SPOT or spare >= 2 * job.changeover else ON_DEMAND
    return IDLE if spare > job.changeover else ON_DEMAND


def greedy(job: DeadlineJob, now: Progress) -> int:
    """Return: on spot where available, waiting where not, until only on demand meets the deadline; then to the end."""
    return ON_DEMAND if now.mode == ON_DEMAND else safe(job, now)


def uniform_progress(job: DeadlineJob, now: Progress) -> int:
    """Return: on demand while behind the even pace, spot where available, waiting while ahead.

    From on demand it goes back once it is two changeovers ahead, so that moving is worth it.
    """
    allowed, pace = safe(job, now), job.work / job.deadline
    if now.mode == ON_DEMAND and now.done < (now.tick + 2 * job.changeover) * pace:
        return ON_DEMAND
    if allowed == IDLE and now.done < now.tick * pace:
        return ON_DEMAND
    return allowed


def on_demand_only(job: DeadlineJob, now: Progress) -> int:
    """Return: on demand from the first tick on."""
    return ON_DEMAND


POLICIES: dict[str, Policy] = {
    "on-demand": on_demand_only,
    "greedy": greedy,
    "uniform-progress": uniform_progress,
}


def follow(job: DeadlineJob, available: Flags, policy: Policy) -> DeadlineRun:
    """Return how the job does under a policy; `available` says at which ticks there are spot nodes."""
    done, mode, starting, cost = 0, IDLE, 0, 0.0
    modes: list[int] = []
    for tick in range(job.deadline):
        here = bool(available[tick])
        before = IDLE if mode == SPOT and not here else mode
        chosen = policy(job, Progress(tick, done, before, here, starting))
        if chosen == SPOT and not here:
            raise ValueError("the policy uses a spot node that is not available")
        if chosen != before:
            starting = job.changeover
        mode = chosen
        modes.append(mode)
        cost += job.price(mode)
        if mode != IDLE:
            if starting > 0:
                starting -= 1
            else:
                done += 1
        if done == job.work:
            return DeadlineRun(cost, tick + 1, tuple(modes))
    return DeadlineRun(cost, None, tuple(modes))


def least_cost(job: DeadlineJob, available: Flags) -> float:
    """Return the least cost with which the job meets its deadline, all availability known (dynamic programming).

    Backwards over ticks; a state is the work done, where the job is, and the changeover left there.
    """
    starts = job.changeover
    # value[m, o, p]: cost to the end from mode m with o ticks of changeover left and p done; idle has o = 0 only.
    value = np.full((3, starts + 1, job.work + 1), np.inf)
    value[:, :, job.work] = 0.0
    for tick in range(job.deadline - 1, -1, -1):
        here = bool(available[tick])
        run = np.full((3, starts + 1, job.work + 1), np.inf)
        """Cost when this tick is spent in mode m, entered with o left."""
        run[IDLE, 0] = value[IDLE, 0]
        for mode in (SPOT, ON_DEMAND):
            if mode == SPOT and not here:
                continue
            price = job.price(mode)
            run[mode, 0, :-1] = price + value[mode, 0, 1:]
            run[mode, 1:] = price + value[mode, :-1]
        fresh = np.minimum(np.minimum(run[IDLE, 0], run[SPOT, starts]), run[ON_DEMAND, starts])
        value = np.minimum(run, fresh[None, None, :])
        if not here:
            value[SPOT] = fresh
        value[:, :, job.work] = 0.0
    return float(value[IDLE, 0, 0])
