"""The placement experiment of Weng et al., "Beware of Fragmentation", USENIX ATC'23, section 6.

Pods of the openb cluster arrive one by one and never leave; one that does not fit is dropped. The order of pods and the
nodes' ranks among equals are given per seed. The authors' published figures stand beside this file: mean and standard
deviation of ten seeds at ten loads for every workload (`fgd2023_means.csv`), and five single seeds of the default one
at every load (`fgd2023_seeds.csv`).
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.errors import InputError, UserError
from gputwin.core.rng import stream
from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.simulation.batch import Batch, workers_for
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.engine.state.records import Records
from gputwin.simulation.engine.state.series import FRAGMENTED, USED
from gputwin.simulation.machines import cluster_models
from gputwin.simulation.run import run
from gputwin.simulation.scenario import Scenario
from gputwin.simulation.simulate import name_of
from gputwin.simulation.typical import typical_jobs
from gputwin.simulation.workload import workload_of
from gputwin.traces.dataset import Trace, TraceMeta
from gputwin.traces.ingest import Options, ingest

POLICIES = ("random", "dot-product", "gpu-clustering", "gpu-packing", "best-fit", "fgd")
METRICS = ("allocation", "fragmentation")
COLUMNS = (50, 60, 70, 80, 90, 95, 100, 110, 120, 130)
ALL_LOADS = tuple(range(131))
FULL_LOADS = (100, 130)
LOAD_LIMIT = 1.3
PUBLISHED_SEEDS = 10
_COPY = re.compile(r"-tuned-\d+$")
_SEED = re.compile(r"seed(\d+)")


@dataclass(frozen=True)
class Order:
    """One arrival order: node ids by rank, pod names in order of arrival (copies under names of their own)."""

    label: str
    nodes: tuple[str, ...]
    pods: tuple[str, ...]

    @property
    def seed(self) -> int:
        """Return the number in the label: what is drawn follows it."""
        return int("".join(c for c in self.label if c.isdigit()) or 0)


@dataclass(frozen=True)
class Reproduction:
    """Our figures per policy, metric, seed and load, and the published ones where known."""

    workload: str
    ours: pl.DataFrame
    published: pl.DataFrame

    def differences(self) -> pl.DataFrame:
        """Return ours − theirs for each seed that is published, at each load; deterministic policies only."""
        theirs = self.published.filter(~pl.col("seed").is_in(["mean", "std"]))
        both = self.ours.join(theirs, on=["policy", "metric", "seed", "load"], how="inner")
        return both.filter(pl.col("policy") != "random").with_columns(
            (pl.col("value").round(2) - pl.col("published")).alias("difference")
        )

    def largest_difference(self, loads: Sequence[int] = COLUMNS) -> float | None:
        """Return the largest absolute difference to a published seed at these loads, in points; None: none is known."""
        gaps = self.differences().filter(pl.col("load").is_in(list(loads)))["difference"].abs().max()
        return None if gaps is None else round(float(gaps), 4)  # type: ignore[arg-type]

    def means(self) -> pl.DataFrame:
        """Return our mean over seeds beside the published mean of ten seeds.

        `deviation` is their difference over its standard error, which has a part of ours and a part of theirs.
        """
        ours = self.ours.group_by("policy", "metric", "load", maintain_order=True).agg(
            pl.col("value").mean().alias("ours"),
            (pl.col("value").std() / pl.len().sqrt()).alias("standard_error"),
            pl.len().alias("seeds"),
        )
        theirs = {
            kind: self.published.filter(pl.col("seed") == kind).select("policy", "metric", "load", "published")
            for kind in ("mean", "std")
        }
        key = ["policy", "metric", "load"]
        both = ours.join(theirs["mean"], on=key, how="left").join(
            theirs["std"].rename({"published": "published_std"}), on=key, how="left"
        )
        error = (pl.col("standard_error") ** 2 + pl.col("published_std") ** 2 / PUBLISHED_SEEDS).sqrt()
        return both.with_columns(((pl.col("ours") - pl.col("published")) / error).alias("deviation"))

    def largest_deviation(self) -> float | None:
        """Return the largest deviation of a mean allocation at full load and at the end, in standard errors."""
        ends = self.means().filter((pl.col("metric") == "allocation") & pl.col("load").is_in(FULL_LOADS))
        largest = ends["deviation"].abs().max()
        return None if largest is None else float(largest)  # type: ignore[arg-type]

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        policies: dict[str, Any] = {}
        for row in self.means().to_dicts():
            loads = policies.setdefault(row["policy"], {}).setdefault(row["metric"], {})
            loads[str(row["load"])] = row["ours"]
        return {
            "workload": self.workload,
            "seeds": self.ours["seed"].unique(maintain_order=True).to_list(),
            "largest_difference": self.largest_difference(),
            "largest_deviation_standard_errors": self.largest_deviation(),
            "largest_difference_all_loads": self.largest_difference(ALL_LOADS),
            "policies": policies,
            "published_mean": _nested(self.published.filter(pl.col("seed") == "mean")),
        }


def _nested(frame: pl.DataFrame) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for row in frame.to_dicts():
        result.setdefault(row["policy"], {}).setdefault(row["metric"], {})[str(row["load"])] = row["published"]
    return result


def reproduce(
    nodes: Path,
    pods: Path,
    orders: Sequence[Path] = (),
    *,
    seeds: int = 10,
    policies: Sequence[str] = POLICIES,
    workers: int | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> Reproduction:
    """Return the experiment on this pod list: with the given orders, else with `seeds` orders of our own."""
    trace = ingest([pods, nodes], options=Options(format="openb2023"))
    if not (trace.has("tasks") and trace.has("nodes")):
        raise UserError("fgd2023 needs a node list (--nodes) and a pod list (--pods) of openb2023")
    drawn = [read_order(path) for path in orders] or [draw_order(trace, 1 + k) for k in range(seeds)]
    typical = typical_jobs(workload_of(_timed(trace.tasks, trace.nodes), cluster_models(_cluster(trace.nodes))))
    base = Scenario(trace=name_of(trace), backfill="loss", resolution_seconds=1.0)
    jobs = sum(len(order.pods) for order in drawn) * len(policies)
    with Batch(workers=workers_for(jobs) if workers is None else workers) as batch:
        calls = [
            (arrivals, base.with_(placement=policy, seed=order.seed), order.label, typical)
            for order in drawn
            for arrivals in (batch.share(_arrivals(trace, order)),)
            for policy in policies
        ]
        frames = batch.map(_measure, calls, lambda done, of: progress(f"{done} of {of} policies and orders"))
    workload = re.sub(r"^openb_pod_list_|\.csv(\.gz)?$", "", pods.name)
    return Reproduction(workload, pl.concat(frames), published(workload))


def published(workload: str) -> pl.DataFrame:
    """Return the authors' figures of one workload, one row per policy, metric, seed and load."""
    frames = []
    for name in ("fgd2023_means.csv", "fgd2023_seeds.csv"):
        text = files("gputwin.studies.reproduce").joinpath(name).read_bytes()
        wide = pl.read_csv(text, schema_overrides={"seed": pl.String}).filter(pl.col("workload") == workload)
        index = ["policy", "metric", "seed"]
        frames.append(wide.drop("workload").unpivot(index=index, variable_name="load", value_name="published"))
    return pl.concat(frames).with_columns(pl.col("load").cast(pl.Int64), pl.col("published").cast(pl.Float64))


def read_order(path: Path) -> Order:
    """Return the order in a file of lines `node,RANK-name` and `pod,name`."""
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8") as lines:
            pairs = [line.rstrip("\n").split(",") for line in lines if line.strip()]
        ranked = sorted(value.split("-", 1) for kind, value in pairs if kind == "node")
        names = tuple(value for kind, value in pairs if kind == "pod")
        nodes = tuple(name for _, name in ranked)
    except OSError as error:
        raise InputError(error.strerror or str(error), file=path, remedy="check the path") from None
    except (ValueError, EOFError) as error:
        raise InputError(
            f"not an order file ({error})", file=path, remedy="lines are node,RANK-name or pod,name"
        ) from None
    seed = _SEED.search(path.name)
    return Order(seed[1] if seed else path.name, nodes, names)


def draw_order(trace: Trace, seed: int) -> Order:
    """Return an order of our own: nodes and pods shuffled, then copies drawn until the load limit is reached.

    As with the authors, what has arrived counts the share of each of a pod's GPUs, and the test that ends the drawing
    adds the share of one.
    """
    rng = stream(seed, "fgd2023")
    nodes = trace.nodes["node_id"].to_list()
    names = trace.tasks["job_id"].to_list()
    share = trace.tasks["gpu_milli"].fill_null(0).to_numpy().astype(np.int64)
    asked = share * trace.tasks["gpu_count"].fill_null(0).to_numpy().astype(np.int64)
    limit = LOAD_LIMIT * float(trace.nodes["gpu_count"].sum()) * WHOLE_GPU_MILLI
    first = rng.permutation(len(names))
    arrived = int(asked.sum())
    copies: list[str] = []
    while True:
        pick = int(rng.integers(len(names)))
        if arrived + share[pick] > limit:
            break
        arrived += int(asked[pick])
        copies.append(f"{names[pick]}-tuned-{len(copies)}")
    ranked = [nodes[i] for i in rng.permutation(len(nodes))]
    return Order(f"own {seed}", tuple(ranked), (*(names[i] for i in first), *copies))


def _arrivals(trace: Trace, order: Order) -> Trace:
    """Return the trace in which the order's pods arrive one a second and stay, on nodes ranked by the order."""
    known = set(trace.nodes["node_id"])
    if set(order.nodes) != known:
        raise UserError(f"order {order.label} names other nodes than the node list")
    ranks = pl.DataFrame({"node_id": list(order.nodes)})
    nodes = ranks.join(trace.nodes, on="node_id", how="left", maintain_order="left")
    arriving = pl.DataFrame({"copy": list(order.pods), "job_id": [_COPY.sub("", p) for p in order.pods]})
    tasks = arriving.join(trace.tasks, on="job_id", how="left", maintain_order="left")
    if tasks["instances"].null_count():
        raise UserError(f"order {order.label} names pods that are not in the pod list")
    return _timed(tasks.with_columns(pl.col("copy").alias("job_id")).drop("copy"), nodes)


def _timed(tasks: pl.DataFrame, nodes: pl.DataFrame) -> Trace:
    """Return the trace in which tasks arrive one a second, in order, and stay to the end."""
    unknown = pl.lit(None, pl.Float64)
    tasks = tasks.with_columns(
        pl.int_range(pl.len()).cast(pl.Float64).alias("submit_time"),
        unknown.alias("start_time"),
        unknown.alias("end_time"),
        pl.lit(2.0 * tasks.height).alias("duration_seconds"),
        pl.lit(False).alias("is_running"),
        pl.lit(False).alias("was_running"),
    )
    return Trace(
        TraceMeta("openb2023", tables={"tasks": tasks.height, "nodes": nodes.height}), {"tasks": tasks, "nodes": nodes}
    )


def _cluster(nodes: pl.DataFrame) -> Cluster:
    return Cluster.from_nodes("openb2023", nodes)


def _measure(arrivals: Trace, scenario: Scenario, label: str, typical: Records) -> pl.DataFrame:
    """Return allocation and fragmentation in % of all GPUs, averaged over the pods that arrive at each load."""
    cluster = _cluster(arrivals.nodes)
    workload = workload_of(arrivals, cluster_models(cluster))
    # One bin of the series for each arrival.
    workload = replace(workload, window=(0.0, float(workload.size)))
    outcome = run(
        workload,
        cluster,
        scenario.scheduler,
        seed=scenario.seed,
        bin_seconds=scenario.resolution_seconds,
        attribute=False,
        typical=typical,
    )
    capacity = cluster.gpu_count * WHOLE_GPU_MILLI
    values = outcome.world.series.values[: workload.size]
    load = np.round(np.cumsum(workload.jobs["gpu_milli"]) / capacity * 100).astype(np.int64)
    frame = pl.DataFrame(
        {
            "load": load,
            "allocation": values[:, USED + 4 :].sum(axis=1) / capacity * 100,
            "fragmentation": values[:, FRAGMENTED] / capacity * 100,
        }
    )
    return (
        frame.group_by("load", maintain_order=True)
        .agg(pl.col(METRICS).mean())
        .unpivot(on=list(METRICS), index="load", variable_name="metric", value_name="value")
        .select(pl.lit(scenario.placement.name).alias("policy"), "metric", pl.lit(label).alias("seed"), "load", "value")
    )
