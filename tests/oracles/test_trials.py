"""Trying leaves nothing behind: reservations, plans, searches for victims and FGD's score change no byte of the world."""

from __future__ import annotations

import os
import subprocess
import sys

CASES = 1


def test_every_trial_leaves_the_world_as_it_was() -> None:
    # In a process of its own: only an engine that is not compiled can be watched.
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.oracles.watch_trials", str(CASES)],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    seen = {kind: int(count) for kind, count in (line.rsplit(" ", 1) for line in done.stdout.splitlines())}
    assert set(seen) == {
        "changes.sizes",
        "classical_victims",
        "fair_victims",
        "fgd",
        "loop",
        "passes.kube on the best node",
        "passes.kueue by rank",
        "passes.preemptive by benefit",
        "passes.preemptive by rank",
        "passes.reclaim by rank",
        "reservations.beside",
        "reservations.earliest",
        "reservations.first_blocked",
        "reservations.planning",
        "reservations.trial",
        "share_with",
    }
