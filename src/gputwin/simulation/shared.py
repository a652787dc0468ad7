"""How GPUs are shared in a run: the rule and its settings, and what it makes of the requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from gputwin.core.errors import UserError
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.engine.state.records import LINK, SLOT, WHOLE, Flags, Ints, Sharing
from gputwin.simulation.interference.reserved import with_reservation
from gputwin.simulation.interference.table import PairTable
from gputwin.simulation.memory_pools import PARTITIONS, partition_mib, partition_requests
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
        """Return whether the memory of devices is cut: into MIG instances, or partitions."""
        return self.name in ("mig", "memory")

    @property
    def splits(self) -> bool:
        """Return whether jobs of high priority ask otherwise than the same jobs of low priority."""
        values = settle(self.rule, self.parameters)
        return self.rule.by_priority and (self.cuts or (self.pairs is not None and values["bandwidth"] > 0))

    def slices(self, cluster: Cluster) -> int:
        """Return into how many pieces the memory of a device is cut."""
        return mig_gpu_of(cluster).memory_slices if self.name == "mig" else PARTITIONS

    def check(self) -> GpuSharing:
        """Return the settings; a rule, a parameter or a combination that does not exist is a user error."""
        values = settle(self.rule, self.parameters)
        for name, most in self.rule.at_most.items():
            if values[name] > most:
                raise UserError(f"'{self.name}:{name}={values[name]:g}': give at most {most:g}")
        if values.get("bandwidth") and self.pairs is None:
            raise UserError(
                f"'{self.name}:bandwidth={values['bandwidth']:g}' is kept from neighbours that slow each other; give "
                "interference, as in interference: built-in"
            )
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
    is_high = np.zeros(workload.requests.size, bool)
    if sharing.splits:
        workload, is_high = _split_by_priority(workload, values["priority"])
    requests = workload.requests.copy()
    with_gpus = requests["gpu_count"] > 0
    requests["demand"], requests["held"] = requests["gpu_milli"], requests["gpu_memory"]
    if sharing.name == "mig":
        cut_requests(requests, mig_gpu_of(cluster), values["least_share"])
    elif sharing.name == "memory":
        partition_requests(requests, is_high, int(values["reserved"]), partition_mib(cluster))
    elif sharing.splits:
        # Rows of a table with twice as many types, see `interference/reserved.py`.
        requests["kind"] = 2 * requests["kind"] + is_high
    if sharing.rule.divides:
        requests["gpu_milli"] = np.where(with_gpus, WHOLE // int(values["most"]), 0)
    if values.get("swap"):
        requests["gpu_memory"] = 0
    return replace(workload, requests=requests)


def _split_by_priority(workload: Workload, priority: float) -> tuple[Workload, Flags]:
    """Return the same jobs, those of priority `priority` or more with requests of their own, and which these are."""
    first = workload.groups["request"][workload.shapes["first_group"][workload.jobs["shape"]]]
    kind = workload.requests["kind"][first].astype(np.int64)
    apart = with_kinds(workload, 2 * kind + (workload.jobs["priority"] >= priority))
    requests = apart.requests.copy()
    is_high = requests["kind"] % 2 == 1
    requests["kind"] //= 2
    return replace(apart, requests=requests), is_high


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
    if sharing.pairs is None:
        return made
    pairs = sharing.pairs.for_models(workload.models)
    if sharing.splits and not sharing.cuts:
        pairs = with_reservation(pairs, settle(sharing.rule, sharing.parameters)["bandwidth"])
    return made._replace(pairs=pairs)
