"""Compiled functions are put together of parts that are optimised by themselves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def run(cache: Path, **environment: str) -> Any:
    """Return what a process with its own cache makes of the sample parts, and how."""
    given = {**os.environ, "GPUTWIN_CACHE": str(cache), **environment}
    command = [sys.executable, "-m", "tests.simulation.part_samples"]
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_parts_compute_what_python_does_and_only_what_is_entered_is_machine_code(tmp_path: Path) -> None:
    expected = run(tmp_path, NUMBA_DISABLE_JIT="1")["values"]
    first = run(tmp_path, NUMBA_DISABLE_JIT="0")
    assert first["values"] == expected
    for part in ("plus", "large", "both"):
        # Its own code and nothing of what it calls.
        assert first[part] == {"code_of": 1, "machine_code": False}
    assert first["entry"]["machine_code"]
    assert set(first["hits"].values()) == {0}
    again = run(tmp_path, NUMBA_DISABLE_JIT="0")
    assert again["values"] == expected
    # Found whole: its parts are not even asked for.
    assert again["hits"] == {"plus": 0, "large": 0, "both": 0, "entry": 1}


def test_parts_are_found_again_by_another_function_that_calls_them(tmp_path: Path) -> None:
    first = run(tmp_path, NUMBA_DISABLE_JIT="0")
    for kept in [*tmp_path.rglob("*entry-*.nbi"), *tmp_path.rglob("*entry-*.nbc")]:
        kept.unlink()
    again = run(tmp_path, NUMBA_DISABLE_JIT="0")
    assert again["values"] == first["values"]
    assert again["hits"] == {"plus": 1, "large": 0, "both": 1, "entry": 0}
