"""Requests for shares of a GPU as MIG instances: the smallest profile that is enough, and where it may begin."""

from __future__ import annotations

import numpy as np

from gputwin.core.errors import UserError
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.engine.state.records import WHOLE, Machines, Records
from gputwin.simulation.mig_profiles import MIG_GPUS, MigGpu, Profile

UNNAMED = "A100-40GB"
"""What GPUs of no stated model count as."""
_MIB_PER_GB = 1024


def mig_gpu_of(cluster: Cluster) -> MigGpu:
    """Return the GPU whose profiles all GPUs of the cluster have; a model without MIG, or two geometries, is a user error.

    Of models that differ in memory alone, the one with least counts.
    """
    found = _gpus_of(cluster)
    if not found:
        raise UserError("sharing 'mig': the cluster has no GPUs")
    geometries = {(gpu.compute_slices, gpu.memory_slices) for gpu in found}
    if len(geometries) > 1:
        names = ", ".join(sorted({gpu.name for gpu in found}))
        raise UserError(f"sharing 'mig': {names} are cut in different ways; simulate them apart")
    return min(found, key=lambda gpu: (memory_gb(gpu), gpu.name))


def table_taken(cluster: Cluster) -> str | None:
    """Return which table of profiles all GPUs are cut by, where the cluster's GPU models do not say it by themselves."""
    taken, unnamed = mig_gpu_of(cluster).name, sum(g.count * g.gpus for g in cluster.groups if not g.gpu_model)
    others = sorted({gpu.name for gpu in _gpus_of(cluster)} - {taken})
    if unnamed:
        why = (
            f"{unnamed:,} of {cluster.gpu_count:,} GPUs have no model; give gpu_model in the cluster for another table"
        )
    elif others:
        why = f"it has the least memory; {', '.join(others)} count as it"
    else:
        return None
    return f"sharing 'mig' cuts all GPUs as {taken}: {why}"


def _gpus_of(cluster: Cluster) -> list[MigGpu]:
    """Return the GPU with MIG profiles that the GPUs of each node group count as."""
    return [_gpu_of(group.gpu_model, group.gpu_memory_mib) for group in cluster.groups if group.gpus > 0]


def memory_gb(gpu: MigGpu) -> int:
    """Return the memory of the GPU, GB, as its name says."""
    return int(gpu.name.rpartition("-")[2].removesuffix("GB"))


def _gpu_of(model: str | None, memory_mib: int | None) -> MigGpu:
    if not model:
        return MIG_GPUS[UNNAMED]
    wanted = model.lower().split("-")[0]
    near = [
        gpu for name, gpu in MIG_GPUS.items() if wanted in [part.lower() for part in name.replace("/", "-").split("-")]
    ]
    exact = [gpu for name, gpu in MIG_GPUS.items() if name.lower() == model.lower()]
    if not near and not exact:
        known = ", ".join(MIG_GPUS)
        raise UserError(f"sharing 'mig': a {model} cannot be cut into MIG instances; GPUs that can: {known}")
    given = memory_gb(near[0]) if memory_mib is None else memory_mib / _MIB_PER_GB
    return exact[0] if exact else min(near, key=lambda gpu: abs(memory_gb(gpu) - given))


def profile_for(gpu: MigGpu, milli: int, memory_mib: int, least_share: float = 1.0) -> Profile:
    """Return the smallest profile with at least `least_share` of the SMs asked for and with the memory; else the largest."""
    plain = sorted(
        (p for p in gpu.profiles if not p.name.endswith("+me")), key=lambda p: (p.compute_slices, p.memory_slices)
    )
    slice_mib = memory_gb(gpu) * _MIB_PER_GB // gpu.memory_slices
    for profile in plain:
        enough = share_milli(gpu, profile) >= milli * least_share - 1e-9
        if enough and profile.memory_slices * slice_mib >= memory_mib:
            return profile
    return plain[-1]


def share_milli(gpu: MigGpu, profile: Profile) -> float:
    """Return the share of the GPU's SMs that an instance has, milli; by compute slices where SMs are not known."""
    if profile.sms is not None and gpu.sms is not None:
        return WHOLE * profile.sms / gpu.sms
    return WHOLE * profile.compute_slices / gpu.compute_slices


def cut_requests(requests: Records, gpu: MigGpu, least_share: float) -> None:
    """Make requests for GPUs ones for MIG instances, in place: compute slices as milli, memory as the bits of its slices.

    Instances on several GPUs cannot reach each other's memory, so whoever asks for several has whole ones. `held` becomes
    the share of SMs, milli.
    """
    for request in requests:
        if request["gpu_count"] == 0:
            continue
        whole = request["gpu_count"] > 1 or request["gpu_milli"] == WHOLE
        asked = WHOLE if whole else int(request["gpu_milli"])
        profile = profile_for(gpu, asked, int(request["gpu_memory"]), 1.0 if whole else least_share)
        is_all = profile.compute_slices == gpu.compute_slices
        request["gpu_milli"] = WHOLE if is_all else WHOLE // gpu.compute_slices * profile.compute_slices
        request["gpu_memory"] = (1 << profile.memory_slices) - 1
        request["starts"] = sum(1 << start for start in profile.starts)
        request["held"] = int(share_milli(gpu, profile))


def uncut(machines: Machines, slices: int) -> None:
    """Let all slices of all devices be free: their free memory is the set of free memory slices."""
    exists = np.arange(machines.gpus.shape[1]) < machines.nodes["gpu_count"][:, None]
    machines.gpus["memory_free"] = np.where(exists, (1 << slices) - 1, 0)
