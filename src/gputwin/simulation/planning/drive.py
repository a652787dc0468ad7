"""A planner in the engine: at each round it is shown the active jobs, and who holds GPUs is changed to what it plans.

Rounds have equal length. At the beginning of one, jobs that lose their GPUs are stopped (what that costs is up to the
scenario's checkpoints) and others start in their place; a job that keeps its GPU model stays where it is. A job that finds
no place, because the free GPUs of its model are spread over too many nodes, waits for the next round. GPUs that a job leaves
within a round are idle until the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gputwin.core.errors import UserError
from gputwin.simulation.engine.attribution.causes import QUOTA
from gputwin.simulation.engine.fit.room import MANY
from gputwin.simulation.engine.state.events import ROUND, YIELD, schedule_from_outside
from gputwin.simulation.engine.state.records import UP, WHOLE
from gputwin.simulation.engine.world import ARRIVAL, RUNS, WAITS, World
from gputwin.simulation.planning.mechanism import Mechanism, RoundSettings
from gputwin.simulation.planning.snapshot import PLANNERS, Floats, Ints, Snapshot, snapshot_of

if TYPE_CHECKING:
    from gputwin.simulation.engine.kernel import Stepper
    from gputwin.simulation.workload import Workload


@dataclass(frozen=True)
class Planning:
    """A planner by name, the length of a round, and the least time between two plans, s."""

    planner: str
    round_seconds: float = 360.0
    least_replan_seconds: float = 0.0


def check_planning(planning: Planning) -> None:
    """Raise a user error where there is no such planner in the engine."""
    if PLANNERS.get(planning.planner).shares_devices:
        raise UserError(f"planner '{planning.planner}' lets two jobs share a GPU, which runs cannot do; use another")


class RoundDriver:
    """Drives one run: `drive` of `simulation.run.run`. The workload's shapes are apart by GPU model."""

    def __init__(self, planning: Planning, workload: Workload) -> None:
        self.settings = RoundSettings(planning.round_seconds, planning.least_replan_seconds)
        self.models, self.shapes = workload.models, len(workload.shapes) // (1 + len(workload.models))
        self.mechanism = Mechanism(workload.models, PLANNERS.get(planning.planner), self.settings)
        self._base = workload.jobs["shape"].astype(np.int64)
        self._gpus = workload.jobs["gpu_milli"] / WHOLE
        self._arrived, self._since = 0, 0.0
        self._held: Ints = np.zeros(0, np.int64)
        """Model whose GPUs each active job holds in the present round; −1: none."""
        self._without: Ints = np.zeros(0, np.int64)
        """Jobs without GPUs that wait: they start as soon as there is room, whatever the plan."""

    def __call__(self, stepper: Stepper) -> None:
        """Take the run from round to round, until all jobs have come and gone or the planner lets nobody run."""
        world = stepper.world
        world.queue.shapes["cause"] = QUOTA
        self._throughputs = _throughputs(world, self.shapes)[self._base]
        now: float | None = float(world.queue.jobs["submit"][0])
        while now is not None and not stepper.run_until(now):
            self._note_round(stepper.world, now)
            self._round(stepper, now)
            if stepper.run_until(now):
                return
            self._since = now
            outcome = stepper.world.queue.jobs["outcome"][self.mechanism.ids]
            self._held = np.where(outcome == RUNS, self._held, -1)
            now = self._following(stepper.world, now)

    def _following(self, world: World, now: float) -> float | None:
        """Return when the next round begins; None: nobody runs, comes, or will be let run."""
        coming, jobs = int(world.loop[ARRIVAL]), world.queue.jobs
        if world.counters["running"][0] > 0:
            return now + self.settings.round_seconds
        if coming < jobs.size:
            waits = len(self.mechanism.ids) + self._without.size > 0
            following = float(jobs["submit"][coming])
            return min(following, now + self.settings.round_seconds) if waits else following
        if self.mechanism.must_plan and len(self.mechanism.ids):
            return max(now + self.settings.round_seconds, self.mechanism.last_plan + self.settings.least_replan_seconds)
        return None

    def _note_round(self, world: World, now: float) -> None:
        """Note what each job received in the round that ends now; forget those that left, admit those that came."""
        jobs, mechanism, ids = world.queue.jobs, self.mechanism, self.mechanism.ids
        held = np.flatnonzero(self._held >= 0)
        mechanism.receive(held, self._held[held], np.fmin(jobs["end"][ids[held]], now) - self._since)
        stays = np.isin(jobs["outcome"][ids], (WAITS, RUNS))
        # Whom a failure has stopped holds nothing.
        self._held = np.where(jobs["outcome"][ids] == RUNS, self._held, -1)[stays]
        if not stays.all():
            mechanism.keep(stays)
        came = np.arange(self._arrived, int(world.loop[ARRIVAL]))
        self._arrived = int(world.loop[ARRIVAL])
        came = came[jobs["outcome"][came] == WAITS]
        fresh = came[self._gpus[came] > 0]
        if fresh.size:
            mechanism.admit(fresh)
            self._held = np.concatenate([self._held, np.full(fresh.size, -1)])
        waiting = np.concatenate([self._without, came[self._gpus[came] == 0]])
        self._without = waiting[jobs["outcome"][waiting] == WAITS]

    def _round(self, stepper: Stepper, now: float) -> None:
        """Say who must yield and who starts."""
        world, mechanism = stepper.world, self.mechanism
        ids, jobs = mechanism.ids, world.queue.jobs
        capacity = gpus_by_model(world, len(self.models))
        mechanism.plan(now, lambda: self._snapshot(world, capacity, now))
        able = (self._throughputs[ids] > 0) & mechanism.is_planned[:, None]
        picked, order = mechanism.pick(self._gpus[ids], able, capacity)
        changed = picked != self._held
        stopped, started = ids[changed & (self._held >= 0)], order[changed[order]]
        shapes = self._base[ids[started]] + self.shapes * (1 + picked[started])
        starts = np.concatenate([self._without, ids[started]])
        carry_out(stepper, now, stopped, starts, np.concatenate([jobs["shape"][self._without], shapes]))
        self._held = picked

    def _snapshot(self, world: World, capacity: Floats, now: float) -> Snapshot:
        ids, jobs = self.mechanism.ids, world.queue.jobs
        lives = world.lives.records[ids]
        worked = np.maximum(now - lives["since"] - lives["overhead"], 0.0) * lives["rate"]
        done = jobs["done"][ids] + np.where(jobs["outcome"][ids] == RUNS, worked, 0.0)
        tenants = jobs["tenant"][ids].astype(np.int64)
        return snapshot_of(
            self.models,
            capacity,
            np.where(self._gpus[ids][:, None] <= capacity, self._throughputs[ids], 0.0),
            ids=ids,
            gpus=self._gpus[ids],
            steps_left=np.maximum(jobs["predicted"][ids] - done, 1.0),
            seconds_since_submit=now - jobs["submit"][ids],
            entity=np.unique(tenants, return_inverse=True)[1],
            entity_weights=np.ones(np.unique(tenants).size),
        )


def carry_out(stepper: Stepper, now: float, stopped: Ints, jobs: Ints, shapes: Ints) -> None:
    """Have jobs stopped, and then others started as, or changed to, these shapes, in order."""
    stepper.world.planned[0] = jobs.size
    stepper.world.planned[1 : 1 + 2 * jobs.size] = np.column_stack([jobs, shapes]).ravel()
    stepper.make_room(stopped.size + 1)
    for j in stopped.tolist():
        schedule_from_outside(stepper.world.events, now, int(YIELD), j)
    if jobs.size:
        schedule_from_outside(stepper.world.events, now, int(ROUND), 0)


def gpus_by_model(world: World, models: int) -> Floats:
    """Return the GPUs of each model on nodes that are up."""
    nodes = world.machines.nodes
    up = nodes["state"] == UP
    return np.bincount(nodes["model"][up], nodes["gpu_count"][up], models).astype(np.float64)


def _throughputs(world: World, shapes: int) -> Floats:
    """Return the work a second of a job of each shape on each GPU model; 0 where the model's nodes cannot hold it."""
    nodes, requests, groups = world.machines.nodes, world.requests, world.groups
    models = world.queue.shapes.size // shapes - 1
    base = requests[: requests.size // (1 + models)]
    room = np.zeros((base.size, models), np.int64)
    for node, count in zip(*np.unique(nodes[["model", "cpu", "memory", "gpu_count"]], return_counts=True), strict=True):
        fits = np.full(base.size, MANY, np.int64)
        for name in ("cpu", "memory", "gpu_count"):
            asked = base[name].astype(np.int64) * (base["gpu_milli"] if name == "gpu_count" else 1)
            there = int(node[name]) * (WHOLE if name == "gpu_count" else 1)
            fits = np.where(asked > 0, np.minimum(fits, there // np.maximum(asked, 1)), fits)
        room[:, node["model"]] += fits * count * world.index.allowed[: base.size, node["model"]]
    own = groups[: groups.size // (1 + models)]
    enough = (room[own["request"]] >= own["size"][:, None]) | (base["gpu_count"][own["request"]] == 0)[:, None]
    of_shape = np.repeat(np.arange(shapes), world.queue.shapes["groups"][:shapes])
    holds = np.ones((shapes, models), np.bool_)
    np.logical_and.at(holds, of_shape, enough)
    return np.where(holds, world.speeds[0, :models], 0.0)
