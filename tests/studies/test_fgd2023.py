"""Our placements beside the figures that the authors of fragmentation gradient descent published."""

from __future__ import annotations

import pytest

from gputwin.studies.reproduce.fgd2023 import ALL_LOADS, reproduce


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


@pytest.mark.parametrize("workload", ["gpuspec33", "multigpu50"])
def test_own_orders_give_the_published_means(openb, workload):
    """In `gpuspec33` a third of the pods name GPU models, which the fragmentation of other models' nodes must know."""
    result = reproduce(*openb(workload), seeds=8, policies=("best-fit", "fgd"))
    assert result.largest_deviation() < 3
