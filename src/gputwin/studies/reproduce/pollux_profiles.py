"""Step times measured for six applications by the authors of Pollux, as files hold them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from gputwin.core.errors import InputError
from gputwin.simulation.elasticity.throughput import Steps

APPLICATIONS = ("bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3")


def read_placements(folder: Path, application: str) -> pl.DataFrame:
    """Return steps by placement (GPUs per node as digits) with nodes and gpus as columns."""
    table = _read(folder, f"{application}_placements.csv")
    digits = pl.col("placement").cast(pl.String)
    gpus = sum((digits.str.count_matches(str(d)) * d for d in range(1, 10)), pl.lit(0))
    return table.with_columns(digits.str.len_chars().alias("nodes"), gpus.alias("gpus"))


def read_scalability(folder: Path, application: str) -> pl.DataFrame:
    """Return steps by numbers of nodes and gpus."""
    return _read(folder, f"{application}_scalability.csv").rename({"num_nodes": "nodes", "num_replicas": "gpus"})


def read_steps(folder: Path, application: str) -> Steps:
    """Return all measured steps of an application, one per nodes, GPUs and batch; placements alike are averaged."""
    keys, values = ["nodes", "gpus", "local_bsz"], ["step_time", "sync_time"]
    frames = [reader(folder, application) for reader in (read_placements, read_scalability)]
    table = pl.concat([f.select(*(pl.col(c).cast(pl.Float64) for c in (*keys, *values))) for f in frames])
    return Steps(*(table[name].to_numpy().astype(np.float64) for name in (*keys, *values)))


def _read(folder: Path, name: str) -> pl.DataFrame:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return pl.read_csv(path)
    raise InputError("no such file", file=folder / name, remedy="give the folder with Pollux's profiles")
