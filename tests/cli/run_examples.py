"""Runs the examples of every `--help` in a folder made for them, and prints how each ended and its CPU seconds.

python -m tests.cli.run_examples ../shared/data ../shared/reference           # all but those that need a network
python -m tests.cli.run_examples ../shared/data ../shared/reference --quick   # a moment each, as the suite does
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from gputwin.cli.main import main
from tests.cli.example_folder import adapted, prepare
from tests.cli.test_help import VERBS, examples

ELSEWHERE = {
    "traces fetch": "needs the publishers' sites: tests/traces/test_fetch.py",
    "serve": "runs until it is ended: tests/server",
    "spark://": "needs a Spark cluster: tests/analysis",
    "dask://": "needs a Dask cluster: tests/studies, python -m benchmarks.study_resume",
    "mirror.example.org": "needs a network: tests/traces/test_fetch.py",
    "verify": "needs downloaded files: tests/traces/test_fetch.py",
}
"""Examples that cannot run here, and where the same is tested."""
SLOW = (
    "autoscale",
    "bench",
    "compile",
    "demo",
    "forecast",
    "interference",
    "mig",
    "place",
    "plan",
    "profile",
    "queueing",
    "reproduce",
    "tune",
    "--backtest",
    "--planner",
    "--elastic",
)
"""Verbs and options of examples that take seconds each, all the more so with an engine that is not compiled."""


def chosen(quick: bool) -> list[list[str]]:
    """Return the examples to run, each once, in the order of the verbs."""
    found: list[list[str]] = []
    for verb in VERBS:
        for words in examples(verb):
            line = shlex.join(words)
            if words in found or any(name in line for name in ELSEWHERE):
                continue
            if quick and any(name in words for name in SLOW):
                continue
            found.append(words)
    return found


def run_all(folder: Path, quick: bool) -> list[str]:
    """Return the lines of examples that did not end with 0, after printing a row for each example."""
    failed = []
    for words in chosen(quick):
        arguments = adapted(words, folder)
        out, errors, before = StringIO(), StringIO(), time.process_time()
        with redirect_stdout(out), redirect_stderr(errors):
            code = main(arguments)
        line = f"gputwin {shlex.join(words)}"
        print(f"{code:>3} {time.process_time() - before:7.2f} s  {line}", flush=True)
        if code != 0:
            failed.append(f"{line}\n    {errors.getvalue().strip()}")
    return failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with the publishers' files")
    parser.add_argument("reference", type=Path, help="folder with published results")
    parser.add_argument("--quick", action="store_true", help="only those that take a moment")
    given = parser.parse_args()
    given.data, given.reference = given.data.resolve(), given.reference.resolve()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        prepare(Path(name), given.data, given.reference)
        failures = run_all(Path(name), given.quick)
    print("\n".join([f"{len(failures)} failed", *failures]))
    sys.exit(bool(failures))
