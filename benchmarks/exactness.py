"""Every start, node, device and cause of every order, backfill rule and placement, compared with another revision's.

    python -m benchmarks.exactness DATA --against REVISION            # a revision of this repository, or a checkout
    python -m benchmarks.exactness DATA --against REVISION --jobs 20000 --only easy

DATA is the folder of the public traces. Both sides read the same canonical traces: synthetic jobs like PAI's on half of
their cluster (so that jobs wait), openb, Philly and ThetaGPU. Each side runs in a process of its own with its own sources.
Starts, nodes and devices must be equal to the byte, causes within 1e-9 s. Rules and placements that only one side has are
named and left out. Fails where anything differs.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

SYNTHETIC_JOBS = 200_000
SLOW = {"easy": 10, "conservative": 100, "fgd": 10}
"""So many times fewer synthetic jobs: EASY asks all waiting shapes beside the reservation, conservative looks at the plans
of all waiting jobs after each end, and FGD's score costs a hundred times that of other placements."""
LEAST_OF_SLOW = 2_000
PUBLIC = {
    "openb": "alibaba_v2023_openb/openb_pod_list_default.csv.gz",
    "philly": "philly/philly_jobs_by_vc.csv.gz",
    "thetagpu": "thetagpu/thetagpu_jobs.csv.gz",
}
PUBLIC_JOBS = 5_000
"""Of each public trace under conservative backfilling; all of them under the others."""
CLUSTERS = {
    "pai2020": "half.yaml",
    "openb": "hundredth.yaml",
    "philly": "homogeneous:60x8",
    "thetagpu": "homogeneous:2x8",
}
"""Small, so that jobs wait: half of PAI's cluster, a hundredth of openb's, two nodes for ThetaGPU."""
FEW_JOBS, SMALL = 50_000, "small.yaml"
"""Fewer synthetic jobs than these run on a sixteenth of their cluster, so that many of them wait."""
WITHIN_SECONDS = 1e-9


def main() -> int:
    """Compare, print a line for each combination, and return whether anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--against", required=True, help="a revision, or a folder with a checkout")
    parser.add_argument("--jobs", type=int, default=SYNTHETIC_JOBS, help="synthetic jobs")
    parser.add_argument("--only", action="append", default=[], help="only combinations with this word; repeatable")
    parser.add_argument("--without", action="append", default=[], help="no combinations with this word; repeatable")
    parser.add_argument("--sample", type=int, help="so many combinations, drawn by chance, instead of all")
    parser.add_argument("--traces", nargs="*", default=[*CLUSTERS], choices=[*CLUSTERS])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _make_traces(arguments.data, arguments.jobs, arguments.traces, folder)
        here = Path(__file__).resolve().parents[1] / "src"
        sides = [Side(here, folder, "here"), Side(_sources(arguments.against), folder, "there")]
        return _compare(sides, arguments.traces, arguments.jobs, arguments.only, arguments.without, arguments.sample)


def _sources(against: str) -> Path:
    """Return the sources to compare with: those of a checkout, or of a revision, unpacked."""
    if Path(against).is_dir():
        return Path(against).resolve() / "src"
    revision = subprocess.run(["git", "rev-parse", "--short", against], capture_output=True, text=True, check=True)
    # Where it stays the same, so that machine code is found again.
    folder = Path(tempfile.gettempdir()) / f"gputwin-{revision.stdout.strip()}"
    packed = subprocess.run(["git", "archive", against, "src"], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def _make_traces(data: Path, jobs: int, names: list[str], folder: Path) -> None:
    import yaml

    from gputwin.simulation.cluster import open_cluster
    from gputwin.traces.locate import open_trace

    clusters = (("pai2020", CLUSTERS["pai2020"], 2), ("pai2020", SMALL, 16), ("openb2023", CLUSTERS["openb"], 100))
    for cluster, file, parts in clusters:
        groups = open_cluster(cluster).to_json()["groups"]
        for group in groups:
            group["count"] = max(group["count"] // parts, 1)
        (folder / file).write_text(yaml.safe_dump({"groups": groups}), encoding="utf-8")
    for name in names:
        source = f"synthetic:pai2020?jobs={jobs}&seed=0" if name == "pai2020" else str(data / PUBLIC[name])
        open_trace(source).save(folder / name)


class Side:
    """One revision, in a process of its own that answers one question at a time."""

    def __init__(self, sources: Path, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--answer", str(folder)],
            env=os.environ | {"PYTHONPATH": str(sources)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.known = self._line()
        assert Path(self.known["sources"]).is_relative_to(sources), f"{self.known['sources']} is not in {sources}"

    def _line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def answer(self, question: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Run one combination and return what was found, and its arrays."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({**question, "file": f"{self.name}.npz"}) + "\n")
        self.process.stdin.flush()
        said = self._line()
        if "error" in said:
            return said, {}
        with np.load(self.folder / f"{self.name}.npz") as found:
            return said, dict(found)


def _compare(
    sides: list[Side], traces: list[str], jobs: int, only: list[str], without: list[str], sample: int | None
) -> int:
    first, second = (side.known for side in sides)
    for kind in ("orders", "backfills", "placements"):
        apart = sorted(set(first[kind]) ^ set(second[kind]))
        print(f"{kind} on one side only: {', '.join(apart) or 'none'}")
    wrong = compared = 0
    questions = list(_questions(first, second, traces, jobs))
    if sample is not None:
        questions = random.Random(0).sample(questions, min(sample, len(questions)))
    for question in questions:
        label = " ".join(str(question[k]) for k in ("trace", "order", "backfill", "placement"))
        words = set(label.split())
        if (only and not words & set(only)) or words & set(without):
            continue
        begun = time.monotonic()
        (said, here), (other, there) = (side.answer(question) for side in sides)
        problem = said.get("error") or other.get("error") or _difference(here, there)
        compared += 1
        wrong += problem is not None
        size = f"{said.get('jobs', 0):,} jobs, {said.get('waited', 0):,} waited"
        print(f"{label}: {size}, {problem or 'equal'}, {time.monotonic() - begun:.1f} s", flush=True)
    print(f"{compared - wrong} of {compared} combinations are equal")
    return 1 if wrong else 0


def _questions(first: dict[str, Any], second: dict[str, Any], traces: list[str], jobs: int) -> Iterator[dict[str, Any]]:
    both = {kind: [x for x in first[kind] if x in second[kind]] for kind in ("orders", "backfills", "placements")}
    for trace, backfill, order, placement in product(traces, both["backfills"], both["orders"], both["placements"]):
        if backfill == "loss" and order != "fifo":
            continue  # Nobody waits, so there is no order.
        least = min(jobs, LEAST_OF_SLOW)
        most = jobs // max(SLOW.get(backfill, 1), SLOW.get(placement, 1)) if trace == "pai2020" else None
        if trace != "pai2020" and backfill == "conservative":
            most = PUBLIC_JOBS
        most = None if most is None else max(most, least)
        yield {"trace": trace, "order": order, "backfill": backfill, "placement": placement, "most": most}


def _difference(here: dict[str, Any], there: dict[str, Any]) -> str | None:
    """Return in words what differs first; None where nothing does."""
    for name in ("start", "node", "devices"):
        if here[name].tobytes() != there[name].tobytes():
            if here[name].shape != there[name].shape:
                return f"{name}: {here[name].size} against {there[name].size}"
            at = np.flatnonzero(~np.equal(here[name], there[name]) & ~(np.isnan(here[name]) & np.isnan(there[name])))
            pair = f"{here[name][at[0]]} and {there[name][at[0]]}"
            return f"{at.size} of {here[name].size} values of {name} differ, first number {at[0]}: {pair}"
    # Causes that came later are nothing in earlier revisions.
    shared = [c for c in here["causes"].tolist() if c in there["causes"].tolist()]
    for cause in shared:
        a, b = (side["share"][:, side["causes"].tolist().index(cause)] for side in (here, there))
        if (worst := float(np.abs(a - b).max(initial=0.0))) > WITHIN_SECONDS:
            return f"cause {cause}: {worst:g} s apart"
    return None


def _answer(folder: Path) -> None:
    """Answer questions on standard input, one a line, with what this revision makes of them."""
    import gputwin
    from gputwin.simulation.cluster import cluster_for
    from gputwin.simulation.policy import BACKFILLS, ORDERINGS, PLACEMENTS
    from gputwin.simulation.workload import workload_of

    try:
        names = import_module("gputwin.simulation.engine.attribution.causes").CAUSE_NAMES
        machines, rules = import_module("gputwin.simulation.machines"), import_module("gputwin.simulation.rules")
        running = import_module("gputwin.simulation.run")
    except ModuleNotFoundError:  # Before jobs had lives, all of it was in one file.
        names = import_module("gputwin.simulation.engine.attribution").CAUSE_NAMES
        machines = rules = running = import_module("gputwin.simulation.simulate")
    told = sys.stdout
    sys.stdout = sys.stderr
    policies: dict[str, Any] = {"orders": ORDERINGS, "backfills": BACKFILLS, "placements": PLACEMENTS}
    first = {"sources": gputwin.__file__, **{kind: sorted(p.name for p in known) for kind, known in policies.items()}}
    print(json.dumps(first), file=told, flush=True)
    opened: dict[tuple[str, int | None], Any] = {}
    for line in sys.stdin:
        question = json.loads(line)
        name, most = question["trace"], question["most"]
        try:
            if (name, most) not in opened:
                trace = _opened(folder / name)
                named = SMALL if name == "pai2020" and most < FEW_JOBS else CLUSTERS[name]
                cluster = cluster_for(trace, str(folder / named) if named.endswith(".yaml") else named)
                workload = workload_of(_first_jobs(trace, most), machines.cluster_models(cluster))
                opened[name, most] = workload, cluster
            workload, cluster = opened[name, most]
            scheduler = rules.Scheduler(question["order"], question["backfill"], question["placement"])
            world = running.run(workload, cluster, scheduler).world
            jobs, slots = world.queue.jobs, world.slots
            np.savez(
                folder / question["file"],
                start=jobs["start"],
                node=slots["node"],
                devices=np.where(slots["node"] >= 0, slots["devices"], 0),
                share=world.causes.share,
                causes=np.array(names),
            )
            waited = int(np.count_nonzero(jobs["start"] > jobs["submit"]))
            answer: dict[str, Any] = {"jobs": int(jobs.size), "waited": waited}
        except Exception as error:  # Said to whoever asked.
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=told, flush=True)


def _opened(folder: Path) -> Any:
    """Return a trace, in an earlier revision without the columns that it does not know."""
    import polars as pl

    from gputwin.traces.dataset import Trace, TraceMeta
    from gputwin.traces.schema import TABLES

    meta = TraceMeta.from_json(json.loads((folder / "trace.json").read_text(encoding="utf-8")))
    tables = {}
    for file in folder.glob("*.parquet"):
        known = {column.name for column in TABLES[file.stem].columns}
        frame = pl.read_parquet(file)
        tables[file.stem] = frame.select(name for name in frame.columns if name in known)
    return Trace.from_frames(tables, meta)


def _first_jobs(trace: Any, most: int | None) -> Any:
    """Return the trace with its first jobs by submission."""
    if most is None:
        return trace
    import polars as pl

    tasks = trace.tasks
    jobs = tasks.group_by("job_id").agg(pl.col("submit_time").min()).sort("submit_time", "job_id").head(most)
    return trace.from_frames({"tasks": tasks.join(jobs.select("job_id"), on="job_id", how="semi")}, trace.meta)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--answer"]:
        _answer(Path(sys.argv[2]))
    else:
        sys.exit(main())
