"""Our placements beside the figures that the authors of fragmentation gradient descent published."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gputwin.simulation.machines import cluster_models
from gputwin.simulation.typical import typical_jobs
from gputwin.simulation.workload import workload_of
from gputwin.studies.reproduce.fgd2023 import ALL_LOADS, LOAD_LIMIT, draw_order, read_order, reproduce
from gputwin.traces.ingest import Options, ingest
from tests.oracles.cases import cluster_of, trace_of_jobs
from tests.oracles.reference import Ask, Job, Node


@pytest.fixture(scope="module")
def openb(real_data):
    folder = real_data / "alibaba_v2023_openb"
    return lambda workload: (folder / "openb_node_list_gpu_node.csv", folder / f"openb_pod_list_{workload}.csv.gz")


def test_the_same_order_gives_the_published_figures_at_every_load(openb, real_data):
    order = real_data.parent / "reference" / "fgd2023_order" / "seed43.csv.gz"
    result = reproduce(*openb("default"), [order])
    compared = result.differences()
    assert compared.height == 5 * 2 * len(ALL_LOADS)
    assert result.largest_difference(ALL_LOADS) <= 0.01


def shares(pods: tuple[str, ...], tasks: pl.DataFrame) -> np.ndarray:
    """Return of each pod the share of one of its GPUs, and of all."""
    milli = pl.col("gpu_milli").fill_null(0).cast(pl.Int64)
    asked = tasks.select("job_id", milli.alias("one"), (milli * pl.col("gpu_count").fill_null(0)).alias("all"))
    names = pl.DataFrame({"job_id": [name.split("-tuned-")[0] for name in pods]})
    return names.join(asked, on="job_id", how="left", maintain_order="left").select("one", "all").to_numpy()


@pytest.mark.parametrize("seed", ["own", 42, 43, 44, 45, 46])
def test_orders_end_by_the_authors_rule(openb, real_data, seed):
    """What has arrived counts all GPUs of a pod; the last pod was let in by the share of one of them."""
    nodes, pods = openb("default")
    trace = ingest([pods, nodes], options=Options(format="openb2023"))
    given = real_data.parent / "reference" / "fgd2023_order" / f"seed{seed}.csv.gz"
    order = draw_order(trace, 1) if seed == "own" else read_order(given)
    share = shares(order.pods, trace.tasks)
    limit = LOAD_LIMIT * 1000 * trace.nodes["gpu_count"].sum()
    before = np.cumsum(share[:, 1]) - share[:, 1]
    copies = np.array(["-tuned-" in name for name in order.pods])
    assert (before + share[:, 0])[copies].max() <= limit
    assert limit - 1000 < share[:, 1].sum() < limit + 8000


def test_a_list_of_models_counts_as_it_is_written():
    asks = [Ask(1, models=frozenset({"A", "B"})), Ask(1, models=frozenset({"A"})), Ask(cpu=1)]
    jobs = [Job(float(k), 1.0, ((ask, 1),), 1.0) for k, ask in enumerate(3 * asks[:1] + 2 * asks[1:2] + asks[2:])]
    trace = trace_of_jobs(jobs)
    twice = pl.when(pl.col("gpu_models_allowed") == "A").then(pl.lit("A|B|B")).otherwise(pl.col("gpu_models_allowed"))
    tables = {"tasks": trace.tasks.with_columns(twice.alias("gpu_models_allowed"))}
    cluster = cluster_of([Node(2, "A", 4000), Node(2, "B", 4000)])
    typical = typical_jobs(workload_of(type(trace).from_frames(tables, trace.meta), cluster_models(cluster)))
    assert typical["count"].tolist() == [1, 1, 0]
    assert typical["models"].tolist() == [3, 3, 3]
    assert typical["share"].tolist() == [3 / 6, 2 / 6, 1 / 6]


@pytest.mark.parametrize("workload", ["gpuspec33", "multigpu50"])
def test_own_orders_give_the_published_means(openb, workload):
    """In `gpuspec33` a third of the pods name GPU models, which the fragmentation of other models' nodes must know."""
    result = reproduce(*openb(workload), seeds=8, policies=("best-fit", "fgd"))
    assert result.largest_deviation() < 3
