"""What a full ingest of the seven PAI 2020 tables costs, beside one bare Polars pass from the same CSV to Parquet.

    python -m benchmarks.ingestion               # a tenth of the published size, about a minute
    python -m benchmarks.ingestion --scale 1.0   # 1.06 million jobs, 7.5 million instances: 7 GB of CSV

Fails if the ratio or the peak memory is out of bounds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.apart import PUBLISHED_JOBS, is_within, run_apart

MOST_TIMES_BARE = 3.0
MOST_PEAK_MIB = 6 * 1024


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


def compare(folder: Path) -> bool:
    """Print both costs and return whether the ingest is within its bounds."""
    files = sorted(folder.glob("*.csv"))
    print(f"{len(files)} tables, {sum(f.stat().st_size for f in files) / 1e9:.2f} GB of CSV\n")
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        costs = {
            "bare scan": run_apart("benchmarks.ingestion", "bare", folder, Path(scratch) / "bare"),
            "ingest": run_apart("benchmarks.ingestion", "ingest", folder, Path(scratch) / "trace"),
        }
    return is_within(costs, MOST_TIMES_BARE, MOST_PEAK_MIB)


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
        run_apart("benchmarks.ingestion", "generate", Path(scratch) / "raw", round(PUBLISHED_JOBS * options.scale))
        sys.exit(not compare(Path(scratch) / "raw"))


if __name__ == "__main__":
    main()
