"""What a full ingest of the seven PAI 2020 tables costs, beside one bare Polars pass from the same CSV to Parquet.

    python benchmarks/ingestion.py               # a tenth of the published size, about a minute
    python benchmarks/ingestion.py --scale 1.0   # 1.06 million jobs, 7.5 million instances: 7 GB of CSV

Each side runs in a process of its own, and CPU time is that process's user and system time, so that neither the
number of cores nor what else they do changes the ratio. Fails if the ratio or the peak memory is out of bounds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

PUBLISHED_JOBS = 1_060_000
MOST_TIMES_BARE = 3.0
MOST_PEAK_MIB = 6 * 1024


@dataclass(frozen=True)
class Cost:
    """What a process took."""

    cpu_seconds: float
    wall_seconds: float
    peak_mib: float


def generate_tables(folder: Path, jobs: int) -> None:
    from gputwin.traces.synthetic import generate
    from gputwin.traces.synthetic.publisher import write_pai2020

    write_pai2020(generate("pai2020", jobs=jobs, seed=0, instances=True), folder)


def scan_bare(folder: Path, into: Path) -> None:
    import polars as pl

    into.mkdir()
    for file in sorted(folder.glob("*.csv")):
        pl.scan_csv(file, has_header=False).sink_parquet(into / f"{file.stem}.parquet")


def ingest_all(folder: Path, into: Path) -> None:
    from gputwin.traces.ingest import ingest

    ingest([folder], into)


def run_apart(step: str, *arguments: Path | int) -> Cost:
    """Return what one step of this file costs in a process of its own."""
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, __file__, "--step", step, *map(str, arguments)])
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{step} failed")
    return Cost(used.ru_utime + used.ru_stime, time.perf_counter() - started, used.ru_maxrss / 1024)


def compare(folder: Path) -> bool:
    """Print both costs and return whether the ingest is within its bounds."""
    files = sorted(folder.glob("*.csv"))
    print(f"{len(files)} tables, {sum(f.stat().st_size for f in files) / 1e9:.2f} GB of CSV\n")
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        bare = run_apart("bare", folder, Path(scratch) / "bare")
        full = run_apart("ingest", folder, Path(scratch) / "trace")
    print(f"{'':12}{'CPU s':>10}{'wall s':>10}{'peak MiB':>10}")
    for name, cost in (("bare scan", bare), ("ingest", full)):
        print(f"{name:12}{cost.cpu_seconds:10.1f}{cost.wall_seconds:10.1f}{cost.peak_mib:10.0f}")
    ratio = full.cpu_seconds / bare.cpu_seconds
    print(f"\nCPU ratio {ratio:.2f} (at most {MOST_TIMES_BARE:g}), peak at most {MOST_PEAK_MIB} MiB")
    return ratio <= MOST_TIMES_BARE and full.peak_mib <= MOST_PEAK_MIB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.1, help="share of the published size (default 0.1)")
    parser.add_argument("--tables", type=Path, help="folder with the seven tables as CSV, instead of generating them")
    parser.add_argument("--step", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        step, folder, target = options.step
        if step == "generate":
            generate_tables(Path(folder), int(target))
        else:
            {"bare": scan_bare, "ingest": ingest_all}[step](Path(folder), Path(target))
        return
    if options.tables:
        sys.exit(not compare(options.tables))
    with tempfile.TemporaryDirectory(prefix="gputwin-ingestion-") as scratch:
        run_apart("generate", Path(scratch) / "raw", round(PUBLISHED_JOBS * options.scale))
        sys.exit(not compare(Path(scratch) / "raw"))


if __name__ == "__main__":
    main()
