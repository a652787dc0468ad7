"""Mean completion times beside those published with Pollux, workload by workload."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from gputwin.core.errors import UserError
from gputwin.studies.reproduce.pollux2021 import POLICIES, mean_completion, reproduce, spread
from gputwin.studies.reproduce.pollux_jobs import Application


@pytest.mark.parametrize(("policy", "load"), [("tiresias", "1.0"), ("tiresias", "2.0"), ("optimus", "1.0")])
def test_mean_completion_is_the_published_one(real_data, reference, policy, load):
    """Of six workloads each, to the last digit printed."""
    folder = reference / "oracles/schedulers/pollux"
    result = reproduce(real_data / "pollux_profiles", folder, policies=[policy], loads=[load])
    assert result.times.height == 6
    assert result.largest_difference(policy) < 1e-9


def test_gpus_come_from_the_node_with_most_free():
    found = spread({"a": [0, 0, 0]}, {"b": 2, "c": 6})
    assert found == {"a": [0, 0, 0], "b": [1, 1], "c": [2, 2, 2, 2, 3, 3]}


def test_wrong_names_are_told():
    with pytest.raises(UserError, match="unknown policy 'gandiva'; known: "):
        reproduce(Path(), Path(), policies=["gandiva"])
    with pytest.raises(UserError, match="unknown load '3'; known: "):
        reproduce(Path(), Path(), loads=["3"])


def test_adapting_batches_and_sizes_beats_fixed_ones(real_data, reference):
    """The first twelve jobs of a workload: Pollux ends them earlier on average, as published for whole workloads."""
    folder = reference / "oracles/schedulers/pollux"
    names = ("cifar10", "deepspeech2", "ncf")
    applications = {n: Application(n, real_data / "pollux_profiles", folder / "validation") for n in names}
    jobs = pl.read_csv(folder / "workloads/workload-6.csv").filter(pl.col("application").is_in(names)).head(12)
    mean = {name: mean_completion(jobs, applications, POLICIES[name]()) for name in ("pollux", "tiresias")}
    assert 0.3 * mean["tiresias"] < mean["pollux"] < mean["tiresias"]
