"""Which limit of which ClusterQueue or Cohort held a job back, and for how long: worked out from the saved run."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from gputwin.core.units import format_duration
from gputwin.simulation.engine.state.records import Floats, Ints
from gputwin.simulation.quotas.balance import give_back, take
from gputwin.simulation.quotas.queues_of_run import queues_of_run
from gputwin.simulation.quotas.tree import QuotaTree
from gputwin.simulation.result import SimulationResult

_SHOWN = 3


class QuotaLimit(NamedTuple):
    """A limit that a job met while it waited, and for how long; amounts in the units of the quotas (milli-CPU, bytes)."""

    kind: str
    name: str
    resource: str
    seconds: float
    at_most: float
    in_use: float
    """When it was first met."""
    asked: float

    def sentence(self) -> str:
        """Return it in words."""
        return (
            f"{self.kind} {self.name} held it back for {format_duration(self.seconds)}: it may use {self.at_most:,g} of "
            f"{self.resource}, {self.in_use:,g} were in use, and the job asks for {self.asked:,g}."
        )


def limit_lines(limits: list[QuotaLimit]) -> list[str]:
    """Return sentences about the limits that held a job back longest."""
    return [limit.sentence() for limit in limits[:_SHOWN]]


def quota_limits(result: SimulationResult, row: int) -> list[QuotaLimit]:
    """Return the limits of queues and cohorts that the job in this row met whenever it waited, the longest first."""
    queues = queues_of_run(result)
    if queues is None:
        return []
    waits = _Waits(*queues)
    found: dict[tuple[str, str, str], QuotaLimit] = {}
    for begin, end in _waited(result, row):
        for limit in waits.limits(row, result.segments, begin, end):
            before = found.setdefault(limit[:3], limit._replace(seconds=0.0))
            found[limit[:3]] = before._replace(seconds=before.seconds + limit.seconds)
    return sorted(found.values(), key=lambda limit: -limit.seconds)


def _waited(result: SimulationResult, row: int) -> list[tuple[float, float]]:
    """Return when the job in this row waited: before its first start and after each stop."""
    own = result.segments.filter(pl.col("job") == row).sort("start_time", "end_time")
    submit = float(result.jobs["submit_time"][row])
    if own.is_empty():
        return [(submit, np.inf)]
    return [(a, b) for a, b in zip([submit, *own["end_time"][:-1]], own["start_time"], strict=True) if b > a]


class _Waits:
    """Usage of the tree while a job waits: who runs takes, who ends gives back."""

    def __init__(self, tree: QuotaTree, queue_of_job: Ints, amounts: Floats) -> None:
        self.tree, self.queue_of_job, self.amounts = tree, queue_of_job, amounts
        self.usage = tree.no_usage()

    def limits(self, row: int, segments: pl.DataFrame, submit: float, start: float) -> list[QuotaLimit]:
        self.usage = self.tree.no_usage()
        alive = segments.filter((pl.col("start_time") < start) & (pl.col("end_time") > submit) & (pl.col("job") != row))
        events: list[tuple[float, int, int]] = []
        for job, begin, end in alive.select("job", "start_time", "end_time").iter_rows():
            events.append((max(begin, submit), 1, job))
            if end < start:
                events.append((end, 0, job))
        met: dict[tuple[int, int], list[Any]] = {}
        since, binding = submit, None
        for time, together in itertools.groupby(sorted(events), key=lambda event: event[0]):
            if binding is not None and time > since:
                met[binding[:2]][0] += time - since
            # Who ends gives back before who starts takes.
            for _, starts, job in together:
                self._count(int(job), bool(starts))
            since, binding = time, self._binding(row)
            if binding is not None:
                met.setdefault(binding[:2], [0.0, binding[2]])
        if binding is not None and np.isfinite(start):
            met[binding[:2]][0] += start - since
        found = [self._limit(row, n, r, *told) for (n, r), told in met.items() if told[0] > 0]
        return sorted(found, key=lambda limit: -limit.seconds)

    def _count(self, job: int, starts: bool) -> None:
        tree, n = self.tree, int(self.queue_of_job[job])
        for r in np.flatnonzero(self.amounts[job]).tolist():
            change = take if starts else give_back
            change(tree.parent, tree.guaranteed, self.usage, n, r, float(self.amounts[job, r]))

    def _binding(self, row: int) -> tuple[int, int, float] | None:
        """Return the node and resource that refuse the job, and what is in use there; None where it is let through.

        Each node of the path to the root bounds what its queue may take (`balance.available`): the lowest bound refuses.
        """
        tree, usage = self.tree, self.usage
        for r in np.flatnonzero(self.amounts[row]).tolist():
            n, local = int(self.queue_of_job[row]), 0.0
            least, at = np.inf, n
            while tree.parent[n] >= 0:
                stored = tree.subtree[n, r] - tree.guaranteed[n, r]
                above = max(0.0, usage[n, r] - tree.guaranteed[n, r])
                local += max(0.0, tree.guaranteed[n, r] - usage[n, r])
                bound = local + stored - above + tree.borrowing[n, r]
                if bound < least:
                    least, at = bound, n
                n = int(tree.parent[n])
            if local + tree.subtree[n, r] - usage[n, r] < least:
                least, at = local + tree.subtree[n, r] - usage[n, r], n
            if self.amounts[row, r] > max(least, 0.0):
                return at, r, float(usage[at, r])
        return None

    def _limit(self, row: int, n: int, r: int, seconds: float, in_use: float) -> QuotaLimit:
        tree = self.tree
        flavor, resource = tree.resources[r]
        borrowing = 0.0 if tree.parent[n] < 0 else float(tree.borrowing[n, r])
        kind = "ClusterQueue" if tree.nodes[n].is_queue else "Cohort"
        at_most, asked = float(tree.subtree[n, r]) + borrowing, float(self.amounts[row, r])
        return QuotaLimit(kind, tree.nodes[n].name, f"{flavor}/{resource}", seconds, at_most, in_use, asked)
