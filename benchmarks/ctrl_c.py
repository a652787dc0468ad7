"""How long each long verb takes to end after Ctrl-C, at moments spread over its first seconds.

python -m benchmarks.ctrl_c                       # every verb, five moments each
python -m benchmarks.ctrl_c --verb plan --times 20

The interrupt goes to the command and to all that it started, as a terminal sends it. A moment before the command has
begun (Python itself starts) ends it as well, with -2, the system's own way.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = "from gputwin.cli.start import run; run()"
WITHIN = 1.0
INTERRUPTED = (130, -signal.SIGINT)
JOBS = "synthetic:philly?jobs=40000"
MANY = "synthetic:pai2020?jobs=1000000"
ON = ("--cluster", "homogeneous:36x8")
VERBS: dict[str, tuple[str, ...]] = {
    "ingest": ("raw", "-o", "again"),
    "generate": ("pai2020", "--jobs", "2000000", "-o", "made"),
    "describe": (MANY,),
    "slice": (MANY, "--first", "50%", "-o", "first"),
    "split": (MANY, "-o", "parts"),
    "merge": (JOBS, JOBS, "-o", "merged"),
    "check": (MANY, "--cluster", "pai2020"),
    "analyze": (JOBS,),
    "profile": (JOBS, *ON),
    "predict": ("model", JOBS, "-o", "predicted.csv"),
    "forecast": (JOBS,),
    "queueing": (JOBS, *ON),
    "simulate": ("synthetic:pai2020?jobs=400000", "--cluster", "pai2020", "--backfill", "easy"),
    "plan": (JOBS, *ON, "--target", "p95_wait=600"),
    "autoscale": (JOBS, *ON, "--spot", "0", "--spot", "0.3"),
    "place": ("synthetic:dlrm2025?jobs=20000",),
    "fit": ("run", "--gang", "8", "--gpus", "8", "--at", "busiest"),
    "mig": ("--gpu", "A100-40GB", "--gpus", "2000", "--periods", "day.yaml", "-o", "layouts"),
    "tune": ("tune.yaml", "-o", "tuned"),
    "study": ("study.yaml", "-o", "runs"),
    "report": (JOBS, *ON, "-o", "report.html"),
    "eta": (JOBS, *ON, "--backtest"),
    "serve": ("--workspace", "space", "--port", "18417"),
    "demo": ("-o", "demo"),
    "reproduce": ("queueing-models",),
    "bench": (),
}
FILES = {
    "day.yaml": "".join(
        f"- {{7g.40gb: {200 + 90 * k}, 1g.5gb: {3000 - 400 * k}, 3g.20gb: {900 - 50 * k}}}\n" for k in range(6)
    ),
    "study.yaml": f"trace: {JOBS}\ncluster: homogeneous:36x8\ngrid: {{order: [fifo, sjf, las]}}\nseeds: 3\n",
    "tune.yaml": (
        f"trace: {JOBS}\ncluster: homogeneous:36x8\nwindows: 6\nheld_out: 3\npresent: {{order: fifo, backfill: greedy}}\n"
        "configurations: {order: [fifo, sjf, las]}\nobjectives: {mean_wait: 1}\n"
    ),
}


def command(*words: str) -> list[str]:
    """Return the words that start `gputwin` with these arguments from this checkout."""
    return [sys.executable, "-c", PROGRAM, *words]


def environment() -> dict[str, str]:
    """Return the variables that let processes find this gputwin."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "src")}


def prepare(folder: Path) -> None:
    """Make what the verbs read: study files, raw tables, a model, a run."""
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    for words in (
        ("generate", "pai2020", "--jobs", "100000", "--publisher", "raw"),
        ("simulate", JOBS, *ON, "-o", "run"),
        ("profile", "synthetic:philly?jobs=2000", "--model", "group-median", "--no-value", "-o", "kept"),
    ):
        subprocess.run(command(*words, "--quiet"), cwd=folder, env=environment(), stdout=subprocess.DEVNULL, check=True)
    (folder / "model").symlink_to(folder / "kept" / "model")


def interrupted(verb: str, after: float, folder: Path) -> tuple[float, int] | None:
    """Return the seconds from the interrupt until nobody of the command is left, and its code; None: it ended before."""
    run = subprocess.Popen(
        command(verb, *VERBS[verb]),
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        # A shell starts what runs in the background deaf to Ctrl-C; a terminal does not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        run.communicate(timeout=after)
    except subprocess.TimeoutExpired:
        begin = time.monotonic()
        os.killpg(run.pid, signal.SIGINT)
        # Whoever still runs holds on to the pipe.
        run.communicate(timeout=60)
        return time.monotonic() - begin, run.returncode
    return None


def main() -> None:
    """Print the table; exits with 1 if something took a second or more, or ended with another code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verb", action="append", choices=list(VERBS), help="only these; repeatable")
    parser.add_argument("--times", type=int, default=5, help="interrupts per verb")
    parser.add_argument("--latest", type=float, default=12.0, help="the last moment, in seconds after the start")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng, is_late = random.Random(given.seed), False
    print(f"{'verb':<10} {'slowest':>8} {'codes':<12} interrupted after (s): took (s)")
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name))
        for verb in given.verb or VERBS:
            width = given.latest / given.times
            moments = [round((k + rng.random()) * width, 1) for k in range(given.times)]
            found = [(after, done) for after in moments if (done := interrupted(verb, after, Path(name)))]
            slowest = max((took for _, (took, _) in found), default=0.0)
            codes = sorted({code for _, (_, code) in found})
            is_late |= slowest >= WITHIN or any(code not in INTERRUPTED for code in codes)
            each = ", ".join(f"{after:g}: {took:.2f}" for after, (took, _) in found)
            ended = "" if len(found) == len(moments) else f" ({len(moments) - len(found)} ended before)"
            print(f"{verb:<10} {slowest:7.2f}s {','.join(map(str, codes)):<12} {each}{ended}", flush=True)
    sys.exit(is_late)


if __name__ == "__main__":
    main()
