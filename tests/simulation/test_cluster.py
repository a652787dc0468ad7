from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gputwin.core.errors import UserError
from gputwin.simulation.built_in_clusters import BUILT_IN
from gputwin.simulation.cluster import MOST_NODES, Cluster, NodeGroup, open_cluster
from gputwin.traces.ingest import ingest
from gputwin.traces.schema import NODES, conform

SHAPE = ["gpu_model", "gpu_count", "cpu_milli", "memory_mib"]
SPEC = {
    "name": "lab",
    "groups": [
        {
            "name": "big",
            "count": 3,
            "gpus": 8,
            "gpu_model": "A100",
            "gpu_memory_mib": 81_920,
            "cpu_milli": 128_000,
            "memory_mib": 1_048_576,
            "disk_mib": 2_000_000,
            "rdma_percent": 400,
            "network_domain": "pod-1",
            "nodes_per_rack": 2,
            "price_per_hour": 12.5,
        },
        {"name": "cpu", "count": 2, "cpu_milli": 64_000, "memory_mib": 262_144, "rack": "r7", "spot": True},
    ],
}


def spec(folder: Path, data: Any) -> str:
    path = folder / "lab.yaml"
    path.write_text(yaml.safe_dump(data))
    return str(path)


def mistake(name: str) -> str:
    with pytest.raises(UserError) as caught:
        open_cluster(name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(("name", "nodes", "gpus"), [("pai2020", 1_897, 6_742), ("openb2023", 1_213, 6_212)])
def test_built_in_clusters_have_the_published_size(name: str, nodes: int, gpus: int) -> None:
    cluster = open_cluster(name)
    assert (cluster.name, cluster.node_count, cluster.gpu_count) == (name, nodes, gpus)
    assert sum(cluster.gpus_by_model().values()) == gpus


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("pai2020", "alibaba_v2020_pai/pai_machine_spec.csv.gz"),
        ("openb2023", "alibaba_v2023_openb/openb_node_list_gpu_node.csv"),
    ],
)
def test_built_in_clusters_have_the_machines_of_the_real_list(name: str, file: str, real_data: Path) -> None:
    def shapes(nodes: pl.DataFrame) -> list[tuple[object, ...]]:
        return nodes.group_by(SHAPE).len().sort(SHAPE).rows()

    assert shapes(open_cluster(name).nodes()) == shapes(ingest([real_data / file]).nodes)


@pytest.mark.parametrize("name", [*BUILT_IN, "homogeneous:3x8"])
def test_nodes_are_a_canonical_table_with_an_id_each(name: str) -> None:
    cluster = open_cluster(name)
    nodes = cluster.nodes()
    assert nodes.schema == NODES.schema
    assert nodes.height == nodes["node_id"].n_unique() == cluster.node_count
    assert nodes["gpu_count"].sum() == cluster.gpu_count


def test_homogeneous_nodes_are_short_of_gpus_only() -> None:
    nodes = open_cluster("homogeneous:3x8").nodes()
    assert nodes["gpu_count"].to_list() == [8, 8, 8]
    assert nodes.select("cpu_milli", "memory_mib").null_count().row(0) == (3, 3)


def test_a_yaml_spec_gives_each_node_what_it_says(tmp_path: Path) -> None:
    cluster = open_cluster(spec(tmp_path, SPEC))
    nodes = cluster.nodes()
    assert (cluster.name, cluster.node_count, cluster.gpu_count) == ("lab", 5, 24)
    assert nodes["node_id"].to_list() == ["big-0", "big-1", "big-2", "cpu-0", "cpu-1"]
    assert nodes["rack"].to_list() == ["big-rack-0", "big-rack-0", "big-rack-1", "r7", "r7"]
    assert nodes["is_spot"].to_list() == [False, False, False, True, True]
    assert nodes.row(0, named=True) | {"rack": None} == {
        "node_id": "big-0",
        "gpu_model": "A100",
        "gpu_count": 8,
        "gpu_memory_mib": 81_920,
        "cpu_milli": 128_000,
        "memory_mib": 1_048_576,
        "disk_mib": 2_000_000,
        "rdma_percent": 400,
        "rack": None,
        "network_domain": "pod-1",
        "tenant": None,
        "is_spot": False,
    }


def test_a_spec_written_out_and_read_back_is_the_same(tmp_path: Path) -> None:
    cluster = open_cluster(spec(tmp_path, SPEC))
    plain = cluster.to_json()
    assert plain.pop("node_ids") is None
    again = {**plain, "groups": list(plain["groups"])}
    assert open_cluster(spec(tmp_path, again)) == cluster


def test_names_may_be_left_out(tmp_path: Path) -> None:
    cluster = open_cluster(spec(tmp_path, {"groups": [{"count": 1}, {"count": 2}]}))
    assert (cluster.name, [g.name for g in cluster.groups]) == ("lab", ["group-0", "group-1"])


@given(st.lists(st.tuples(st.sampled_from(["T4", "A10", None]), st.integers(0, 8)), min_size=1, max_size=12))
def test_a_cluster_of_a_node_table_has_its_nodes_in_order(machines: list[tuple[str | None, int]]) -> None:
    nodes = pl.DataFrame(
        {
            "node_id": [f"m{i}" for i in range(len(machines))],
            "gpu_model": [model for model, _ in machines],
            "gpu_count": [gpus for _, gpus in machines],
            "cpu_milli": [1000 * (gpus + 1) for _, gpus in machines],
        },
        schema_overrides={"gpu_model": pl.String},
    )
    again = Cluster.from_nodes("of nodes", conform(NODES, nodes.lazy()).collect()).nodes()
    assert again.select(nodes.columns).rows() == nodes.rows()


def test_a_node_file_or_a_saved_trace_is_a_cluster(tmp_path: Path) -> None:
    file = tmp_path / "nodes.csv"
    file.write_text("sn,cpu_milli,memory_mib,gpu,model\nnode-0,64000,262144,2,P100\nnode-1,32000,131072,0,\n")
    cluster = open_cluster(str(file))
    assert (cluster.node_count, cluster.gpu_count, cluster.node_ids) == (2, 2, ("node-0", "node-1"))
    ingest([file], tmp_path / "trace")
    assert open_cluster(str(tmp_path / "trace")).nodes().equals(cluster.nodes())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"count": 0}, "count must be between 1 and"),
        ({"count": MOST_NODES + 1}, "count must be between 1 and"),
        ({"gpus": -1}, "gpus must be between 0 and"),
        ({"price_per_hour": float("nan")}, "price_per_hour must be between 0 and"),
        ({"nodes_per_rack": 0}, "nodes_per_rack must be at least 1"),
    ],
)
def test_an_impossible_group_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        NodeGroup(**{"name": "g", "count": 1, **change})


def test_an_impossible_cluster_is_refused() -> None:
    group = NodeGroup("g", 2)
    with pytest.raises(UserError, match="no node groups"):
        Cluster("c", ())
    with pytest.raises(UserError, match="names must differ"):
        Cluster("c", (group, group))
    with pytest.raises(UserError, match="1 node ids for 2 nodes"):
        Cluster("c", (group,), ("only",))
    with pytest.raises(UserError, match="at most"):
        Cluster("c", (NodeGroup("a", MOST_NODES), NodeGroup("b", 1)))
    with pytest.raises(UserError, match="no node table; give the cluster"):
        Cluster.from_nodes("t", NODES.empty())


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"groups": [{"count": 1, "gpu": 8}]}, "field 'groups.0.gpu': unknown field; known: count, "),
        ({"nodes": 4}, "field 'nodes': unknown field; known: groups, name"),
        ({"groups": [{"gpus": 8}]}, "field 'groups.0.count': "),
        ({"groups": [{"count": "many"}]}, "field 'groups.0.count': "),
        ({"groups": [{"count": -1}]}, "count must be between 1 and"),
        ({"groups": 5}, "field 'groups': "),
        ({"groups": ["a100"]}, "field 'groups.0': "),
        ({"groups": []}, "no node groups"),
        ({}, "field 'groups': "),
        (["groups"], "not a cluster spec"),
    ],
)
def test_a_wrong_spec_is_one_line_that_names_file_and_field(data: Any, says: str, tmp_path: Path) -> None:
    path = spec(tmp_path, data)
    line = mistake(path)
    assert line.startswith(path)
    assert says in line


def test_what_is_no_cluster_is_one_line(tmp_path: Path) -> None:
    assert "homogeneous:NODESxGPUS" in mistake("nowhere")
    assert "No such file" in mistake(str(tmp_path / "no.yaml"))
    (tmp_path / "bad.yaml").write_text("groups: [")
    assert "not YAML" in mistake(str(tmp_path / "bad.yaml"))
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    assert "known format" in mistake(str(tmp_path / "x.csv"))
