"""Where a gang fits, and the fewest moves that let it in: by hand and against trying everything."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from gputwin.optimization.placement.defragment import fit_gang
from gputwin.optimization.placement.snapshot import Request, Snapshot


def cluster(gpus: list[int], residents: list[list[tuple[str, int]]]) -> Snapshot:
    """Return nodes of these GPUs, each with residents (job, whole GPUs)."""
    snapshot = Snapshot(
        [f"n{i}" for i in range(len(gpus))],
        [""] * len(gpus),
        np.full((len(gpus), 4), 1000, np.int64),
        [np.full(g, 1000, np.int64) for g in gpus],
        [[] for _ in gpus],
    )
    for node, held in enumerate(residents):
        for job, count in held:
            snapshot.put(node, Request(gpus=count), job)
    return snapshot


def test_a_gang_that_fits_needs_no_move() -> None:
    found = fit_gang(cluster([4, 4], [[("a", 1)], [("b", 2)]]), Request(gpus=2), 2)
    assert found.fits_now == 2
    assert found.nodes == ("n0", "n1")
    assert found.moves == ()
    assert found.is_optimal


def test_one_move_makes_room_and_it_is_the_smallest() -> None:
    found = fit_gang(cluster([4, 4], [[("a", 1), ("big", 2)], [("b", 1), ("c", 1)]]), Request(gpus=4), 1)
    assert found.fits_now == 0
    assert found.nodes is None
    found = fit_gang(cluster([4, 4, 4], [[("a", 1)], [("b", 2)], [("c", 3)]]), Request(gpus=4), 1)
    assert found.nodes == ("n0",)
    assert [(m.job_id, m.source, m.target) for m in found.moves] == [("a", "n0", "n2")]
    assert found.is_optimal


def test_what_cannot_be_says_why() -> None:
    found = fit_gang(cluster([2, 2], [[("a", 1)], [("b", 1)]]), Request(gpus=2), 2)
    assert found.nodes is None
    assert "4 GPUs are asked for and 2 are free" in found.reason


def test_what_never_can_is_told_apart_from_what_has_to_wait() -> None:
    nodes = cluster([2, 2], [[], []])
    nodes.models = ["T4", "V100"]
    for request, instances, why in (
        (Request(gpus=3), 1, "no node has more than 2, so it never can"),
        (Request(gpus=3, models=frozenset({"T4"})), 1, "no node has more than 2 of T4, so it never can"),
        (Request(gpus=2), 3, "6 GPUs are asked for and the nodes have 4 in all, so it never can"),
    ):
        found = fit_gang(nodes, request, instances)
        assert found.nodes is None
        assert why in found.reason


def test_models_limits_and_shares_are_kept() -> None:
    snapshot = cluster([2, 2], [[], []])
    snapshot.models = ["T4", "V100"]
    assert fit_gang(snapshot, Request(gpus=1, models=frozenset({"V100"})), 2).nodes == ("n1", "n1")
    assert fit_gang(snapshot, Request(gpus=1, max_per_node=1, application=7), 2).nodes == ("n0", "n1")
    snapshot.put(0, Request(gpus=1, gpu_milli=600), "share")
    assert snapshot.room(0, Request(gpus=1, gpu_milli=500), 9) == 2
    assert snapshot.room(0, Request(gpus=2, gpu_milli=400), 9) == 1


def fewest_moves(gpus: list[int], residents: list[list[tuple[str, int]]], size: int, count: int) -> int | None:
    """Return the fewest moves by trying every set of movers and every place for them."""
    flat = [(node, job, g) for node, held in enumerate(residents) for job, g in held]
    for moved in range(len(flat) + 1):
        for movers in combinations(range(len(flat)), moved):
            for targets in product(range(len(gpus)), repeat=moved):
                free = list(gpus)
                for i, (node, _, g) in enumerate(flat):
                    free[targets[movers.index(i)] if i in movers else node] -= g
                if min(free) >= 0 and sum(f // size for f in free) >= count:
                    return moved
    return None


def test_the_fewest_moves_as_trying_everything_finds() -> None:
    rng = np.random.default_rng(11)
    proven = 0
    for _ in range(60):
        gpus = [4] * 3
        residents: list[list[tuple[str, int]]] = []
        for node in range(3):
            held, left = [], 4
            while left > 0 and rng.random() < 0.7:
                g = int(rng.integers(1, min(left, 2) + 1))
                held.append((f"j{node}{left}", g))
                left -= g
            residents.append(held)
        size, count = int(rng.integers(2, 5)), int(rng.integers(1, 3))
        found = fit_gang(cluster(gpus, residents), Request(gpus=size), count)
        least = fewest_moves(gpus, residents, size, count)
        if found.nodes is not None:
            assert least is not None
            assert found.least_moves is not None
            assert found.least_moves <= least <= len(found.moves)
            proven += found.is_optimal
            check(cluster(gpus, residents), found.moves, found.nodes, size)
        if least is not None and least <= 2:
            assert found.nodes is not None
    assert proven > 10


def check(snapshot: Snapshot, moves: tuple, nodes: tuple[str, ...], size: int) -> None:
    """Carry the moves out, one after another once all movers have left, and start the gang."""
    carried = []
    for move in moves:
        source = snapshot.node_ids.index(move.source)
        resident = next(r for r in snapshot.residents[source] if r.job_id == move.job_id)
        snapshot.take(source, resident)
        carried.append((snapshot.node_ids.index(move.target), resident))
    for target, resident in carried:
        assert snapshot.room(target, resident.request, 1) == 1
        snapshot.put(target, resident.request, resident.job_id)
    for node in nodes:
        at = snapshot.node_ids.index(node)
        assert snapshot.room(at, Request(gpus=size), 1) == 1
        snapshot.put(at, Request(gpus=size), "gang")


def test_a_node_with_many_small_residents_can_be_cleared() -> None:
    """Six shares lie on two GPUs of a node of two; no four of them make room, all six do, and they fit elsewhere."""
    snapshot = cluster([2, 2, 2], [[], [("a", 1)], [("b", 1)]])
    for k in range(6):
        snapshot.put(0, Request(gpus=1, gpu_milli=300), f"s{k}")
    found = fit_gang(snapshot, Request(gpus=2), 1)
    assert found.nodes == ("n1",)
    assert [m.job_id for m in found.moves] == ["a"]
    snapshot.models = ["V100", "T4", "T4"]
    found = fit_gang(snapshot, Request(gpus=2, models=frozenset({"V100"})), 1)
    assert found.nodes == ("n0",)
    assert sorted(m.job_id for m in found.moves) == [f"s{k}" for k in range(6)]
    assert found.is_optimal


def test_no_more_are_moved_than_the_place_needs() -> None:
    """Five shares on the first GPU, one on the second: for one whole GPU the one goes."""
    snapshot = cluster([2, 1], [[], []])
    for k in range(5):
        snapshot.put(0, Request(gpus=1, gpu_milli=200), f"s{k}")
    snapshot.put(0, Request(gpus=1, gpu_milli=600), "other")
    snapshot.models = ["V100", "T4"]
    found = fit_gang(snapshot, Request(gpus=1, models=frozenset({"V100"})), 1)
    assert [m.job_id for m in found.moves] == ["other"]
    assert found.is_optimal
