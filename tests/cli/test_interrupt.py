"""Ctrl-C ends a command within a second, worker processes included, also from compiled code that lets no thread run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.process import PROGRAM
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
LOCKED = (
    "import sys; from gputwin.cli import interrupt; interrupt.leave_promptly();"
    "print('begun', file=sys.stderr, flush=True);"
    # One instruction of Python: neither signals nor threads are served until it is over.
    "sum(range(10**11))"
)
COMMANDS = {
    "simulate": (["synthetic:pai2020?jobs=300000", "--cluster", "pai2020", "--backfill", "easy"], "simulating"),
    "plan": (["synthetic:philly?jobs=60000", "--cluster", "homogeneous:36x8", "--target", "p95_wait=600"], "simulat"),
    "forecast": (["synthetic:philly?jobs=20000"], "model|fitting|backtest"),
}


def seconds_to_end(arguments: list[str], wait_for: str, folder: Path) -> tuple[float, int, str]:
    """Return how long a process takes to end after an interrupt, once it has said `wait_for`, its code and its words."""
    said = folder / "said"
    with said.open("w") as errors:
        run = subprocess.Popen(
            [sys.executable, *arguments],
            env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
    until = time.monotonic() + 120
    while not any(word in said.read_text() for word in wait_for.split("|")):
        assert run.poll() is None, said.read_text()
        assert time.monotonic() < until, said.read_text()
        time.sleep(0.02)
    time.sleep(0.3)
    begin = time.monotonic()
    os.killpg(run.pid, signal.SIGINT)
    # Whoever still runs holds on to the pipe.
    run.communicate(timeout=60)
    return time.monotonic() - begin, run.returncode, said.read_text()


@pytest.mark.parametrize("verb", COMMANDS)
def test_commands_end_within_a_second(verb: str, tmp_path: Path) -> None:
    arguments, wait_for = COMMANDS[verb]
    took, code, said = seconds_to_end(["-c", PROGRAM, verb, *arguments, "-v"], wait_for, tmp_path)
    assert took < 1.0
    assert code in (130, -signal.SIGINT)
    assert "Traceback" not in said
    assert said.count("gputwin: interrupted") <= 1


def test_code_that_lets_no_thread_run_is_ended_from_outside(tmp_path: Path) -> None:
    took, code, said = seconds_to_end(["-c", LOCKED], "begun", tmp_path)
    assert took < 1.0
    assert code in (130, -signal.SIGINT)
    assert "Traceback" not in said


@pytest.mark.parametrize("imports", ["", "import polars;"])
def test_the_code_is_that_of_an_interrupt_whatever_is_imported(imports: str, tmp_path: Path) -> None:
    """Polars puts its own handler in the place of the one that a second interrupt ends."""
    program = LOCKED.replace("print", imports + "print")
    took, code, said = seconds_to_end(["-c", program], "begun", tmp_path)
    assert took < 0.9
    assert code == -signal.SIGINT
    assert "Traceback" not in said


def test_the_output_ends_with_the_command(tmp_path: Path) -> None:
    """No helper holds on to it after a command that listens to its interrupt."""
    program = LOCKED.replace("sum(range(10**11))", "import time; time.sleep(60)")
    took, _, _ = seconds_to_end(
        ["-c", f"import os\ntry:\n {program}\nexcept KeyboardInterrupt:\n os._exit(130)"], "begun", tmp_path
    )
    assert took < 0.2


def test_an_interrupt_while_the_command_loads_says_nothing(tmp_path: Path) -> None:
    program = (
        "import sys, time, types\n"
        "class Slow:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'gputwin.cli.main':\n"
        "            print('begun', file=sys.stderr, flush=True)\n"
        "            time.sleep(60)\n"
        "sys.meta_path.insert(0, Slow())\n" + PROGRAM
    )
    took, code, said = seconds_to_end(["-c", program], "begun", tmp_path)
    assert took < 0.5
    assert (code, said) == (-signal.SIGINT, "begun\n")


def test_a_command_that_ends_leaves_no_process(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, "--version"],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    # Its output ends, so nobody holds on to it.
    assert (run.returncode, run.stderr) == (0, "")
