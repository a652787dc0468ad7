"""Machine code is found by what a file says, not by where it lies."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import gputwin

PROGRAM = """
import numba
from gputwin.core.machine_code import code_folder, kept_in
from gputwin.core.made import twice
with kept_in(code_folder("test", [])):
    function = numba.njit(cache=True)(twice)
print(function(21), sum(function.stats.cache_hits.values()))
"""


def in_a_copy(folder: Path, source: str, cache: Path) -> str:
    """Return what a copy of the package below `folder` prints: the result, and how often its code was found."""
    copy = folder / "gputwin"
    shutil.copytree(Path(gputwin.__file__).parent / "core", copy / "core")
    (copy / "__init__.py").touch()
    (copy / "core" / "made.py").write_text(source, encoding="utf-8")
    environment = {"PYTHONPATH": str(folder), "GPUTWIN_CACHE": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_second_installation_finds_the_code_of_the_first_and_a_changed_one_does_not(tmp_path: Path) -> None:
    twice, cache = "def twice(x):\n    return 2 * x\n", tmp_path / "cache"
    assert in_a_copy(tmp_path / "one", twice, cache) == "42 0"
    assert in_a_copy(tmp_path / "two", twice, cache) == "42 1"
    assert in_a_copy(tmp_path / "three", twice.replace("2 *", "3 *"), cache) == "63 0"
    assert in_a_copy(tmp_path / "four", twice, cache) == "42 1"
