"""When spot nodes can be had: series that repeat, prices against a bid, files of availability, and mistakes in them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gputwin.autoscaling.nodes.supply import SpotSupply, Zone, from_prices, read_zones
from gputwin.core.errors import InputError, UserError

HEAD = "kind,nodes,collection,zone_instance,gap_seconds,tick,value\n"


def test_a_share_holds_until_the_next_change_and_the_series_repeats():
    zone = Zone("z", np.array([0.0, 10.0, 30.0]), np.array([1.0, 0.0, 0.5]), 40.0)
    assert [zone.share_at(t) for t in (0, 9.9, 10, 29.9, 30, 40, 55)] == [1, 1, 0, 0, 0.5, 1, 0]
    assert [zone.next_change(t) for t in (0, 10, 30, 40, 45)] == [10, 30, 40, 50, 50]
    assert zone.mean_share == pytest.approx((10 * 1 + 20 * 0 + 10 * 0.5) / 40)


def test_nodes_can_be_had_while_the_price_is_at_most_the_bid():
    zone = from_prices(np.array([0.0, 5.0, 8.0]), np.array([0.3, 0.6, 0.4]), 0.4, 10.0)
    assert [zone.share_at(t) for t in (0, 5, 8)] == [1, 0, 1]


def test_every_zone_of_the_published_traces_has_the_published_mean(reference):
    folder = reference / "oracles/spot"
    published = pl.read_csv(folder / "skypilot_summary.csv")
    for kind in ("availability", "preemption"):
        zones = {zone.name: zone for zone in read_zones(folder / "skypilot_spot_traces.csv.gz", kind=kind)}
        rows = published.filter(pl.col("kind") == kind)
        assert len(zones) == rows.height
        for row in rows.iter_rows(named=True):
            zone = zones[f"{row['collection']}/{row['zone_instance']}"]
            nodes = int(row["nodes"].split("-")[0])
            assert zone.mean_share * nodes == pytest.approx(row["mean_available"], abs=6e-4)
            assert zone.span_seconds == row["ticks"] * row["gap_seconds"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "column missing"),
        (HEAD + "availability,1-node,c,z,60,0,many\n", "no number"),
        (HEAD + "preemption,1-node,c,z,60,0,1\n", "no zone of kind 'availability'"),
    ],
)
def test_a_file_that_is_none_is_one_line(tmp_path, text, message):
    path = tmp_path / "spot.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_zones(path)


def test_a_negative_hazard_is_refused():
    with pytest.raises(UserError, match="give 0 or more"):
        SpotSupply(hazard_per_hour=-1.0)
