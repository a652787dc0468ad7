"""How GPUs are shared in a run: the rule and its settings, and what it makes of the requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from gputwin.core.errors import UserError
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.engine.state.records import LINK, SLOT, WHOLE, Ints, Sharing
from gputwin.simulation.interference.table import PairTable
from gputwin.simulation.mig_requests import cut_requests, mig_gpu_of
from gputwin.simulation.policy import SHARINGS, SharingRule
from gputwin.simulation.policy_parameters import settle
from gputwin.simulation.workload import Workload


@dataclass(frozen=True)
class GpuSharing:
    """A rule of sharing with its parameters, and the speeds of pairs where jobs slow each other."""

    name: str = "fraction"
    parameters: Mapping[str, float] = field(default_factory=dict)
    pairs: PairTable | None = None

    @property
    def rule(self) -> SharingRule:
        """Return the rule; one that does not exist is a user error."""
        return SHARINGS.get(self.name)

    @property
    def slows(self) -> bool:
        """Return whether neighbours change how fast a job runs."""
        values, fast = settle(self.rule, self.parameters), self.rule.full_speed_with
        if self.rule.factor is None or (fast and all(values[k] == v for k, v in fast.items())):
            return False
        return not self.rule.uses_pairs or self.pairs is not None

    @property
    def cuts(self) -> bool:
        """Return whether devices are cut into MIG instances."""
        return self.name == "mig"

    def check(self) -> GpuSharing:
        """Return the settings; a rule, a parameter or a combination that does not exist is a user error."""
        settle(self.rule, self.parameters)
        if self.pairs is not None and not self.rule.uses_pairs:
            able = ", ".join(rule.name for rule in SHARINGS if rule.uses_pairs)
            raise UserError(
                f"interference does not go with sharing '{self.name}', where jobs do not run side by side; use: {able}"
            )
        if self.pairs is None and self.rule.needs_pairs:
            raise UserError(
                f"sharing '{self.name}' needs a table of pairs; give interference, as in interference: built-in"
            )
        return self


def with_sharing(workload: Workload, sharing: GpuSharing, cluster: Cluster) -> Workload:
    """Return the same jobs with requests as the rule of sharing fits them on devices.

    What each would use of a device alone stays known as its demand.
    """
    values = settle(sharing.rule, sharing.parameters)
    requests = workload.requests.copy()
    with_gpus = requests["gpu_count"] > 0
    requests["demand"], requests["held"] = requests["gpu_milli"], requests["gpu_memory"]
    if sharing.cuts:
        cut_requests(requests, mig_gpu_of(cluster), values["least_share"])
    if sharing.rule.divides:
        requests["gpu_milli"] = np.where(with_gpus, WHOLE // int(values["most"]), 0)
    if values.get("swap"):
        requests["gpu_memory"] = 0
    return replace(workload, requests=requests)


def with_kinds(workload: Workload, kinds: Ints) -> Workload:
    """Return the same jobs, those of different types having shapes and requests of their own; `kinds`: type of each job."""
    jobs = workload.jobs.copy()
    base = int(kinds.max(initial=0)) + 1
    codes, number = np.unique(jobs["shape"].astype(np.int64) * base + kinds, return_inverse=True)
    jobs["shape"] = number
    shapes = workload.shapes[codes // base].copy()
    members = np.concatenate([np.arange(s["first_group"], s["first_group"] + s["groups"]) for s in shapes])
    shapes["first_group"] = np.cumsum(shapes["groups"]) - shapes["groups"]
    groups = workload.groups[members].copy()
    of_group = np.repeat(codes % base, shapes["groups"])
    asked, request = np.unique(groups["request"].astype(np.int64) * base + of_group, return_inverse=True)
    groups["request"] = request
    requests = workload.requests[asked // base].copy()
    requests["kind"] = asked % base
    constraints = tuple(workload.constraints[r] for r in asked // base) if workload.constraints else ()
    return replace(
        workload,
        jobs=jobs,
        shapes=shapes,
        groups=groups,
        requests=requests,
        allowed=workload.allowed[asked // base],
        constraints=constraints,
    )


def no_sharing(models: int) -> Sharing:
    """Return what the engine is given where neighbours do not matter."""
    return Sharing(np.zeros(0), np.zeros((models, 1, 1)), np.zeros(1, np.int64), np.zeros(1, SLOT), np.zeros(1, LINK))


def make_sharing(sharing: GpuSharing, workload: Workload, cluster: Cluster) -> Sharing:
    """Return what the engine is given of the rule; who runs where is added when the world is made."""
    memory = cluster.nodes()["gpu_memory_mib"].cast(pl.Int64).fill_null(0).to_numpy()
    values = np.array(list(settle(sharing.rule, sharing.parameters).values()), np.float64)
    # A copy: an array that cannot be written is another type, for which the engine would be compiled anew.
    made = no_sharing(len(workload.models))._replace(numbers=values, memory=np.array(memory))
    return made if sharing.pairs is None else made._replace(pairs=sharing.pairs.for_models(workload.models))
