"""Slurm's multifactor order in the plain simulator, by the functions that the documentation's examples check.

A priority is as of the last multiple of the period: factors follow from what ran until then.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from gputwin.simulation.slurm.order import settings_of
from gputwin.simulation.slurm.priority import Factors, age_factor, priority, size_factor
from gputwin.simulation.slurm.shares import Account, classic_factors, fair_tree_factors
from tests.oracles.reference import Job, Node, Outcome, Reference
from tests.oracles.reference_fair import CPU, GPU, MEMORY, capacity_of, demand_of


def accounts_of(group_of: Sequence[str], weights: Sequence[float], group_weights: Mapping[str, float]) -> list[Account]:
    """Return the accounts just below the root; user t is called by its number."""

    def below(path: str) -> tuple[Account, ...]:
        depth = len(path.split("/")) if path else 0
        inner = {
            "/".join(g.split("/")[: depth + 1]) for g in group_of if g and (g + "/").startswith(path + "/" * bool(path))
        }
        groups = [Account(g, group_weights.get(g, 1.0), below(g)) for g in sorted(inner - {path})]
        users = [Account(str(t), weights[t], (), True) for t, g in enumerate(group_of) if g == path]
        return (*groups, *users)

    return list(below(""))


class SlurmReference(Reference):
    """One run in order of Slurm's priority."""

    def __init__(
        self,
        nodes: Sequence[Node],
        jobs: Sequence[Job],
        backfill: str,
        placement: str,
        parameters: Mapping[str, float],
        accounts: list[Account],
    ) -> None:
        super().__init__(nodes, jobs, "fifo", backfill, placement)
        self.settings, self.accounts, self.nodes = settings_of(parameters), accounts, nodes
        capacity = capacity_of(nodes)
        self.parts = [[d / c if c > 0 else 0.0 for d, c in zip(demand_of(job), capacity, strict=True)] for job in jobs]
        self.changed: dict[str, list[tuple[float, float, float]]] = {}
        """When each user's use changed, what it had used by then, and what it held from then on."""
        self.at = -math.inf

    def _used(self, user: str, at: float) -> float:
        since, usage, rate = [(0.0, 0.0, 0.0), *(e for e in self.changed.get(user, []) if e[0] <= at)][-1]
        if (half_life := self.settings.decay_half_life) <= 0:
            return usage + rate * (at - since)
        faded = 0.5 ** ((at - since) / half_life)
        return usage * faded + rate * half_life / 0.6931471805599453 * (1.0 - faded)

    def _charge(self, j: int, sign: int) -> None:
        user = str(self.jobs[j].tenant)
        before = self.changed.setdefault(user, [(0.0, 0.0, 0.0)])
        before.append((self.now, self._used(user, self.now), before[-1][2] + sign * max(self.parts[j])))

    def _start(self, j: int, spots: tuple) -> None:
        super()._start(j, spots)
        self._charge(j, 1)

    def _finish(self, j: int) -> None:
        super()._finish(j)
        self._charge(j, -1)

    def priorities(self, at: float) -> dict[int, int]:
        """Return the priority of each waiting job as of `at`."""
        settings, users = self.settings, {str(job.tenant) for job in self.jobs}
        usage = {user: self._used(user, at) for user in users}
        if settings.fair_tree:
            shares = fair_tree_factors(self.accounts, usage)
        else:
            total = sum(usage.values()) or 1.0
            shares = classic_factors(self.accounts, {u: x / total for u, x in usage.items()}, settings.dampening)
        highest = max(job.priority for job in self.jobs)
        found = {}
        for j in self.waiting:
            job, part, nodes = self.jobs[j], self.parts[j], len(self.nodes)
            instances = min(sum(size for _, size in job.groups), nodes)
            cpus = part[CPU] if part[CPU] > 0 else part[GPU]
            factors = Factors(
                age=age_factor(at - job.submit, settings),
                fairshare=shares[str(job.tenant)],
                job_size=size_factor(cpus, instances, 1.0, nodes, job.predicted, settings),
                qos=max(job.priority, 0.0) / highest if highest > 0 else 0.0,
                tres={"cpu": part[CPU], "mem": part[MEMORY], "gres/gpu": part[GPU]},
            )
            found[j] = priority(factors, settings)
        return found

    def _pass(self) -> None:
        if not self.waiting:
            return
        period = self.settings.calc_period
        at = math.floor(self.now / period) * period
        if at > self.at:
            self.at, self.reserved = at, None
        of = self.priorities(at)
        self.waiting.sort(key=lambda j: (-of[j], j))
        super()._pass()


def simulate_slurm(
    nodes: Sequence[Node],
    jobs: Sequence[Job],
    rules: tuple[str, str],
    parameters: Mapping[str, float],
    accounts: list[Account],
) -> list[Outcome]:
    """Return what becomes of each job under (backfill, placement)."""
    return SlurmReference(nodes, jobs, *rules, parameters, accounts).simulate()
