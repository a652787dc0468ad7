"""How many processors there are to use."""

from __future__ import annotations

import os


def processors() -> int:
    """Return how many processors this process may use; where the system does not say, how many there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
