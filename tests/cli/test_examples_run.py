"""Every example of `--help` runs in a folder that has the files it names; `run_examples` runs the slow ones too."""

from __future__ import annotations

from pathlib import Path

from tests.cli.process import python
from tests.cli.run_examples import chosen
from tests.conftest import REPOSITORY

FEWEST = 60


def test_examples_of_the_help_run(tmp_path: Path, real_data: Path, reference: Path) -> None:
    assert len(chosen(quick=True)) >= FEWEST
    path = f"{REPOSITORY / 'src'}:{REPOSITORY}"
    # Each takes a moment with the engine interpreted; compiling the many rules they use would take minutes.
    interpreted = {"PYTHONPATH": path, "NUMBA_DISABLE_JIT": "1"}
    command = ("-W", "ignore", "-m", "tests.cli.run_examples", str(real_data), str(reference), "--quick")
    done = python(*command, folder=tmp_path, **interpreted)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
