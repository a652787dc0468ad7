"""Clusters of public traces that are known by name."""

from __future__ import annotations

from collections.abc import Callable

from gputwin.core.units import MIB_PER_GIB
from gputwin.simulation.cluster import Cluster, NodeGroup


def _group(model: str | None, cores: int, memory_gib: int, gpus: int, count: int) -> NodeGroup:
    label = f"{model or 'cpu'}-{gpus}gpu-{cores}c-{memory_gib}g".lower()
    return NodeGroup(label, count, gpus, model, None, cores * 1000, memory_gib * MIB_PER_GIB)


def _pai2020() -> Cluster:
    """Return the PAI v2020 machines by type: 1,897 machines, 6,742 GPUs (pai_machine_spec)."""
    return Cluster(
        "pai2020",
        (
            _group("P100", 64, 512, 2, 798),
            _group("T4", 96, 512, 2, 497),
            _group("MISC", 96, 512, 8, 280),
            _group("V100M32", 96, 384, 8, 135),
            _group("V100", 96, 512, 8, 59),
            _group("V100", 96, 384, 8, 45),
            _group(None, 96, 512, 0, 83),
        ),
    )


def _openb2023() -> Cluster:
    """Return the GPU nodes of openb 2023 by type: 1,213 nodes, 6,212 GPUs (openb_node_list_gpu_node)."""
    return Cluster(
        "openb2023",
        (
            _group("G2", 96, 384, 8, 549),
            _group("T4", 104, 512, 2, 387),
            _group("P100", 16, 120, 2, 107),
            _group("G3", 128, 768, 8, 39),
            _group("V100M16", 32, 128, 4, 28),
            _group("P100", 64, 256, 2, 22),
            _group("V100M32", 96, 768, 8, 21),
            _group("V100M16", 8, 32, 1, 19),
            _group("T4", 96, 384, 4, 17),
            _group("V100M32", 48, 368, 4, 9),
            _group("V100M16", 64, 256, 8, 7),
            _group("P100", 8, 60, 1, 3),
            _group("P100", 8, 60, 2, 2),
            _group("A10", 128, 1024, 1, 2),
            _group("V100M16", 82, 336, 8, 1),
        ),
    )


BUILT_IN: dict[str, Callable[[], Cluster]] = {"pai2020": _pai2020, "openb2023": _openb2023}
