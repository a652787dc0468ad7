"""Fewer nodes from where a run has its instances, within a budget of moves: by hand, and checked move by move."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gputwin.cli.main import main
from gputwin.optimization.placement.present import empty_nodes, present_of
from gputwin.optimization.placement.snapshot import Request, Snapshot


def standing_on(*nodes: tuple[int, ...]) -> Snapshot:
    """Return nodes of four whole GPUs, each with residents of so many GPUs."""
    count = len(nodes)
    snapshot = Snapshot(
        [f"n{k}" for k in range(count)],
        ["V100"] * count,
        np.full((count, 4), 100, np.int64),
        [np.full(4, 1000, np.int64) for _ in range(count)],
        [[] for _ in range(count)],
    )
    for node, sizes in enumerate(nodes):
        for k, gpus in enumerate(sizes):
            snapshot.put(node, Request((gpus, 0, 0, 0), gpus), f"j{node}.{k}")
    return snapshot


CAPACITY = {"cpu_milli": 100, "memory_mib": 100, "disk_mib": 100, "rdma_percent": 100}


def plan(snapshot: Snapshot, moves: int):
    count = len(snapshot.node_ids)
    nodes = pl.DataFrame(
        {"node_id": snapshot.node_ids, "gpu_model": snapshot.models, "gpu_count": [4] * count}
        | {name: [amount] * count for name, amount in CAPACITY.items()}
    )
    return empty_nodes(present_of(snapshot, nodes), moves, seconds=5.0)


def test_two_half_full_nodes_become_one_with_the_fewest_moves() -> None:
    """One of two GPUs is moved, not two of one."""
    found = plan(standing_on((2,), (1, 1)), 5)
    assert (found.before, found.after, found.least, found.free) == (2, 1, 1, 1)
    assert [(m.job_id, m.source, m.target) for m in found.moves] == [("j0.0", "n0", "n1")]


def test_a_budget_of_no_moves_leaves_all_where_it_is() -> None:
    found = plan(standing_on((2,), (1, 1)), 0)
    assert (found.before, found.after, found.moves) == (2, 2, ())
    assert found.least == 2


def test_the_bound_counts_what_the_budget_allows() -> None:
    """Three moves can empty the node of one and the node of two at most: four nodes stay at least, as with free moves."""
    found = plan(standing_on((1,), (1, 1), (1, 1, 1), (1,) * 3, (1,) * 3, (1, 1)), 3)
    assert found.before == 6
    assert found.least == 4
    assert found.free == 4
    assert found.least <= found.after
    assert len(found.moves) <= 3


def test_exchanges_help_where_no_node_can_be_emptied_directly() -> None:
    """(3) and (2, 1) and (2): threes fit beside ones only, so 3+1 and 2+2 need two moves or fewer."""
    found = plan(standing_on((3,), (2, 1), (2,)), 4)
    assert found.after == found.least == 2
    assert len(found.moves) <= 2


def test_what_it_says_holds_on_the_snapshot() -> None:
    rng = np.random.default_rng(5)
    for _ in range(25):
        nodes = []
        for _ in range(6):
            left, sizes = 4, []
            while left and rng.random() < 0.6:
                sizes.append(int(rng.integers(1, left + 1)))
                left -= sizes[-1]
            nodes.append(tuple(sizes))
        if not any(nodes):
            continue
        snapshot, budget = standing_on(*nodes), int(rng.integers(0, 5))
        found = plan(snapshot, budget)
        assert len(found.moves) <= budget
        assert found.free <= found.least <= found.after <= found.before
        where = {m.job_id: m.target for m in found.moves}
        held: dict[str, int] = {}
        for node, residents in zip(snapshot.node_ids, snapshot.residents, strict=True):
            for one in residents:
                home = where.get(one.job_id, node)
                held[home] = held.get(home, 0) + one.request.gpus
        assert len(held) == found.after
        assert max(held.values()) <= 4


def test_place_of_a_run_moves_within_a_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    simulate = ["simulate", "synthetic:pai2020?jobs=600&seed=2", "--cluster", "homogeneous:600x4", "--placement"]
    assert main([*simulate, "worst-fit", "-o", str(run), "--quiet", "--json"]) == 0
    capsys.readouterr()
    ask = ["place", str(run), "--moves", "10", "--seconds", "5"]
    assert main([*ask, "--json", "-o", str(tmp_path / "moves")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["nodes_after"] < found["nodes_before"]
    assert found["free_moves_bound"] <= found["lower_bound"] <= found["nodes_after"]
    assert len(found["moves"]) <= 10
    assert pl.read_parquet(tmp_path / "moves" / "moves.parquet").height == len(found["moves"])
    assert main(ask) == 0
    said = capsys.readouterr().out
    assert f"{len(found['moves'])} moves" in said.splitlines()[0]
    assert main([*ask, "--at", "1h"]) == 2
    assert "the run lasts from" in capsys.readouterr().err
    assert main([*ask, "--every", "1h"]) == 2
    assert "a run" in capsys.readouterr().err
