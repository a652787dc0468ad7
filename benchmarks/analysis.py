"""What a full analysis costs, beside a bare scan of the same Parquet files with the group-bys it cannot do without.

    python -m benchmarks.analysis   # the published PAI size: 1.06 million jobs, 7.5 million instances, two minutes

The bare side reads the columns that analyses read and groups them once by each key: tasks by every dimension (count,
mean, median and 95th percentile of wait and runtime), instances by machine, usage by task and by machine. Each side runs
on one thread. Fails if the ratio or the peak memory is out of bounds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.apart import ONE_THREAD, PUBLISHED_JOBS, is_within, run_apart

MOST_TIMES_BARE = 4.0
MOST_PEAK_MIB = 8 * 1024
TASK_KEYS = (
    "role",
    "user",
    "workload",
    "gpu_model",
    "gpu_models_allowed",
    "instances",
    "gpu_count",
    "gpu_milli",
    "group",
)


def generate_trace(folder: Path, jobs: int) -> None:
    from gputwin.traces.synthetic import generate

    generate("pai2020", jobs=jobs, seed=0, instances=True).to_trace().save(folder)


def scan_bare(folder: Path) -> None:
    import polars as pl

    hour = (pl.col("submit_time") % 86400 // 3600).alias("hour")
    weekday = (pl.col("submit_time") // 86400 % 7).alias("weekday")
    columns = (
        *TASK_KEYS,
        "cpu_milli",
        "memory_mib",
        "status",
        "submit_time",
        "start_time",
        "end_time",
        "duration_seconds",
    )
    tasks = (
        pl.scan_parquet(folder / "tasks.parquet")
        .select(*columns, (pl.col("start_time") - pl.col("submit_time")).alias("wait"))
        .with_columns(hour, weekday, pl.col("duration_seconds").alias("runtime"))
        .collect()
        .lazy()
    )
    for key in (*TASK_KEYS, "hour", "weekday"):
        tasks.group_by(key).agg(
            pl.len(),
            *(pl.col(c).mean().alias(f"{c}_mean") for c in ("wait", "runtime")),
            *(pl.col(c).quantile(q, "linear").alias(f"{c}_{q}") for c in ("wait", "runtime") for q in (0.5, 0.95)),
        ).collect()
    instances = pl.scan_parquet(folder / "instances.parquet")
    held = (pl.col("end_time") - pl.col("start_time")).sum()
    instances.group_by("node_id").agg(pl.len(), held).collect()
    usage = pl.scan_parquet(folder / "usage.parquet")
    usage.filter(pl.col("scope") == "instance").group_by("job_id", "role").agg(
        pl.col("cpu_milli", "gpu_milli", "memory_mib").mean()
    ).collect()
    usage.filter(pl.col("scope") == "node").group_by("node_id").agg(
        pl.col("^cpu_.*_percent$", "cpu_percent", "gpu_percent", "load_1min", "network_receive_bytes", "workers").mean()
    ).collect()


def analyze_all(folder: Path) -> None:
    from gputwin.analysis import analyze
    from gputwin.traces.dataset import Trace

    analyze(Trace.open(folder))


def compare(folder: Path) -> bool:
    """Print both costs and return whether the analysis is within its bounds."""
    size = sum(f.stat().st_size for f in folder.glob("*.parquet"))
    print(f"{size / 1e9:.2f} GB of Parquet\n")
    costs = {
        "bare scan, group-bys": run_apart("benchmarks.analysis", "bare", folder, environment=ONE_THREAD),
        "analyze": run_apart("benchmarks.analysis", "analyze", folder, environment=ONE_THREAD),
    }
    return is_within(costs, MOST_TIMES_BARE, MOST_PEAK_MIB)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the published size (default 1)")
    parser.add_argument(
        "--trace", type=Path, help="a PAI trace directory with instances and usage, instead of generating one"
    )
    parser.add_argument("--step", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        step, folder, *rest = options.step
        if step == "generate":
            generate_trace(Path(folder), int(rest[0]))
        else:
            {"bare": scan_bare, "analyze": analyze_all}[step](Path(folder))
        return
    if options.trace:
        sys.exit(not compare(options.trace))
    with tempfile.TemporaryDirectory(prefix="gputwin-analysis-") as scratch:
        run_apart("benchmarks.analysis", "generate", Path(scratch) / "trace", round(PUBLISHED_JOBS * options.scale))
        sys.exit(not compare(Path(scratch) / "trace"))


if __name__ == "__main__":
    main()
