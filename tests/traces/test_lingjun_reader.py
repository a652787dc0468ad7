"""Lingjun: hosts and their switches."""

from __future__ import annotations

import polars as pl

from gputwin.traces.ingest import ingest


def test_the_real_topology(real_data):
    nodes = ingest([real_data / "alibaba_lingjun_2023" / "topo.csv.gz"]).nodes
    assert nodes.height == nodes["node_id"].n_unique() == 847
    assert nodes["network_domain"].value_counts().sort("network_domain").rows() == [
        ("P10", 362),
        ("P12", 306),
        ("P8", 179),
    ]
    assert nodes["rack"].n_unique() == 119


def test_a_rack_is_below_one_aggregation_switch_and_small(real_data):
    racks = (
        ingest([real_data / "alibaba_lingjun_2023" / "topo.csv.gz"])
        .nodes.group_by("rack")
        .agg(pl.len().alias("hosts"), pl.col("network_domain").n_unique().alias("domains"))
    )
    assert racks["hosts"].max() == 8
    assert racks["domains"].max() == 1
