"""How many processors there are to use."""

from __future__ import annotations

import os


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))
