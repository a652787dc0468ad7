"""No GPU is shared."""

from __future__ import annotations

from gputwin.simulation.policy import SHARINGS, SharingRule

SHARINGS.add(
    SharingRule("exclusive", "nobody shares a GPU: a request for a share is rounded up to whole GPUs", uses_pairs=True)
)
