"""Small node pools for tests."""

from __future__ import annotations

from gputwin.autoscaling.nodes.spec import NodePools, PoolGroup
from gputwin.simulation.cluster import NodeGroup


def pools(count: int = 4, gpus: int = 2, **more: object) -> NodePools:
    """Return one pool; a node costs 6 an hour, as spot 2; decisions every 10 s and boots of 30 s unless said otherwise."""
    group = PoolGroup(NodeGroup("n", count, gpus, price_per_hour=6.0), 0, 2.0)
    settings = {"unneeded_for_s": 60.0, "delay_after_add_s": 0.0}
    given = {"settings": settings, "period_seconds": 10.0, "boot_seconds": 30.0, "boot_sigma": 0.0, **more}
    return NodePools("made", (group,), **given)
