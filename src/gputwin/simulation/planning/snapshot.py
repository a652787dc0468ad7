"""What a planner sees at a round, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from gputwin.core.registry import Registry

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pairs:
    """Jobs that may share a GPU, two at a time, and how fast each of the two then runs.

    `jobs[k]` are the two rows of the snapshot, `throughputs[k, j]` their steps a second on model j.
    """

    jobs: Ints
    throughputs: Floats

    @staticmethod
    def none(models: int) -> Pairs:
        """Return no pairs."""
        return Pairs(np.zeros((0, 2), np.int64), np.zeros((0, models, 2)))


@dataclass(frozen=True)
class Snapshot:
    """The active jobs and the GPUs, as a planner sees them at a round.

    Rows of `throughputs` are jobs, columns GPU models: steps a second, 0 where a job cannot run (also because there are
    fewer GPUs than it takes). A job takes `gpus` of them at once. `weights` are priorities (2: twice the share). Jobs are
    named by `ids`, which grow with arrival.
    """

    models: tuple[str, ...]
    capacity: Floats
    ids: Ints
    throughputs: Floats
    gpus: Floats
    weights: Floats
    steps_left: Floats
    seconds_since_submit: Floats
    deadline_seconds: Floats
    """Seconds from now until the job must have ended; infinite where there is no such limit."""
    prices: Floats
    """Cost of an hour on each GPU model; ones where cost does not matter."""
    entity: Ints
    """Number of the group (department, tenant) that a job belongs to, for hierarchical plans."""
    entity_weights: Floats
    pairs: Pairs

    @property
    def can_run(self) -> npt.NDArray[np.bool_]:
        """Return which jobs run anywhere at some speed."""
        runs: npt.NDArray[np.bool_] = np.any(self.throughputs > 0, axis=1)
        return runs

    def of(self, jobs: npt.NDArray[np.bool_]) -> Snapshot:
        """Return the snapshot with these jobs only, without pairs."""
        return replace(
            self,
            ids=self.ids[jobs],
            throughputs=self.throughputs[jobs],
            gpus=self.gpus[jobs],
            weights=self.weights[jobs],
            steps_left=self.steps_left[jobs],
            seconds_since_submit=self.seconds_since_submit[jobs],
            deadline_seconds=self.deadline_seconds[jobs],
            entity=self.entity[jobs],
            pairs=Pairs.none(len(self.models)),
        )


def snapshot_of(
    models: tuple[str, ...],
    capacity: Floats,
    throughputs: Floats,
    *,
    ids: Ints | None = None,
    gpus: Floats | None = None,
    weights: Floats | None = None,
    steps_left: Floats | None = None,
    seconds_since_submit: Floats | None = None,
    deadline_seconds: Floats | None = None,
    prices: Floats | None = None,
    entity: Ints | None = None,
    entity_weights: Floats | None = None,
    pairs: Pairs | None = None,
) -> Snapshot:
    """Return a snapshot; what is not given is 1 for each job, nothing elapsed, no deadline, one entity."""
    jobs = len(throughputs)
    ones = np.ones(jobs)
    return Snapshot(
        models,
        capacity.astype(np.float64),
        np.arange(jobs) if ids is None else ids,
        throughputs.astype(np.float64),
        ones if gpus is None else gpus.astype(np.float64),
        ones if weights is None else weights.astype(np.float64),
        ones if steps_left is None else steps_left.astype(np.float64),
        np.zeros(jobs) if seconds_since_submit is None else seconds_since_submit,
        np.full(jobs, np.inf) if deadline_seconds is None else deadline_seconds,
        np.ones(len(models)) if prices is None else prices,
        np.zeros(jobs, np.int64) if entity is None else entity,
        np.ones(1) if entity_weights is None else entity_weights,
        Pairs.none(len(models)) if pairs is None else pairs,
    )


@dataclass(frozen=True)
class Plan:
    """Shares of time: `alone[i, j]` of job i on model j, `paired[k, j]` of pair k; they sum to at most 1 per job."""

    alone: Floats
    paired: Floats

    @staticmethod
    def of(alone: Floats) -> Plan:
        """Return a plan without pairs."""
        return Plan(np.clip(alone, 0.0, 1.0), np.zeros((0, alone.shape[1])))

    def throughputs(self, snapshot: Snapshot) -> Floats:
        """Return the steps a second that each job gets on average."""
        got: Floats = (self.alone * snapshot.throughputs).sum(axis=1)
        for slot in (0, 1):
            of_pair = (self.paired * snapshot.pairs.throughputs[:, :, slot]).sum(axis=1)
            np.add.at(got, snapshot.pairs.jobs[:, slot], of_pair)
        return got


Planner = Callable[[Snapshot], Plan]


@dataclass(frozen=True)
class PlannerPolicy:
    """A named way to plan; `make` gives a planner that may remember its last plan."""

    name: str
    rule: str
    source: str
    make: Callable[[], Planner] = field(repr=False)
    knows_speed: bool = True
    """Whether the plan depends on which GPU model is faster for which job."""
    keeps_order: bool = False
    """Whether a job without a share must wait though GPUs are idle."""
    shares_devices: bool = False


PLANNERS: Registry[PlannerPolicy] = Registry("planner", "gputwin.simulation.planning")
