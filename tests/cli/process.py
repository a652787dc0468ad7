"""The command line as its users run it: in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import REPOSITORY

PROGRAM = "from gputwin.cli.start import run; run()"


def gputwin(arguments: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Return the finished process of `gputwin ARGUMENTS`, run in `folder`."""
    return python("-m", "gputwin", *arguments, folder=folder, **environment)


def python(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Return the finished process of Python run in `folder` with this checkout on its path."""
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src"), **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
    )
