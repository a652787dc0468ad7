"""Placement over time: a case worked by hand, moves that are worth it, and no look into the future."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gputwin.core.errors import UserError
from gputwin.core.units import HOUR, WHOLE_GPU_MILLI
from gputwin.optimization.placement.consolidate import consolidate
from gputwin.optimization.placement.online import best_fit, fgd, typical_of
from gputwin.optimization.placement.outlook import Lives, forecast, newcomers
from gputwin.optimization.placement.problem import InstanceGroup, NodeType, Problem
from gputwin.optimization.placement.repack import exchange, repack
from gputwin.optimization.placement.rolling import CLAIRVOYANT, FORECAST, FRAGMENTATION, MOVES, ONLINE, roll
from gputwin.optimization.placement.standing import Rule, Standing
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.traces.dataset import Trace
from tests.forecasting.made import task, trace_of

FOUR_GPUS = Cluster("four", (NodeGroup("node", 50, 4),))


def gpus(name: str, begin: float, end: float, count: int) -> dict:
    """Return a task of so many whole GPUs; times in hours."""
    return task(name, begin * HOUR, end * HOUR, cpu=0, application=name[0], gpu_count=count, gpu_milli=1000)


def hourly_guest() -> Trace:
    """Return two nodes of four GPUs that hold one small task each from hour 5.9 on, and a guest of three GPUs every hour.

    The last guest comes at 6.5 h; in the hour from 7 h on nobody comes.
    """
    rows = [gpus("a", 0, 5.9, 3), gpus("b", 0, 5.9, 3), gpus("c", 0, 20, 1), gpus("d", 0, 20, 1)]
    return trace_of([*rows, *(gpus(f"e{k}", k + 0.5, k + 0.75, 3) for k in range(7))])


def test_two_hours_worked_by_hand() -> None:
    rolled = roll(hourly_guest(), FOUR_GPUS, begin=6 * HOUR, end=8 * HOUR, step=HOUR, most_moves=5)
    assert rolled.table["bound"].to_list() == [1] * 10
    got = {row["policy"]: row for row in rolled.summary().to_dicts()}
    # Online both nodes stay in use. One move empties one of them; the guest then opens it again for a quarter of an hour.
    # With the forecast, room is kept for the guest each hour, and nothing moves. Who knows moves once nobody comes.
    assert {p: (r["mean_nodes"], r["peak_nodes"], r["moves"]) for p, r in got.items()} == {
        ONLINE: (2.0, 2, 0),
        FRAGMENTATION: (2.0, 2, 0),
        MOVES: (1.125, 2, 1),
        FORECAST: (2.0, 2, 0),
        CLAIRVOYANT: (1.5, 2, 1),
    }
    # Two GPUs for two hours and three for a quarter, of four per node.
    held = (2 * 2 + 3 * 0.25) / 4
    assert got[ONLINE]["allocated"] == pytest.approx(held / 4)
    assert got[MOVES]["gained"] == pytest.approx(held / 2.25 - held / 4)
    assert got[MOVES]["node_hours_saved_per_move"] == pytest.approx(4 - 2.25)
    # The forecast covers the first hour and, as nobody comes, the second.
    assert rolled.coverage == 1.0
    none = roll(hourly_guest(), FOUR_GPUS, begin=6 * HOUR, end=8 * HOUR, step=HOUR, most_moves=0)
    assert none.summary()["moves"].to_list() == [0] * 5


def drifting(seed: int, extra: list[dict]) -> Trace:
    rng = np.random.default_rng(seed)
    rows = []
    for k in range(160):
        begin = float(rng.uniform(0, 9))
        rows.append(gpus(f"{'abc'[k % 3]}{k}", begin, begin + float(rng.uniform(0.3, 5)), int(rng.integers(1, 4))))
    return trace_of([*rows, *extra])


def test_no_policy_knows_what_happens_after_its_period_and_only_one_knows_what_happens_in_it() -> None:
    seen = drifting(1, [])
    now = 6 * HOUR
    # The same past, another future: nobody leaves after the sixth hour, others come, and of another kind.
    tasks = seen.tasks.filter(pl.col("submit_time") <= now).with_columns(
        pl.when(pl.col("end_time") > now).then(20 * HOUR).otherwise("end_time").alias("end_time")
    )
    fresh = trace_of([gpus(f"A{k}", 6.2, 30, 4) for k in range(40)]).tasks
    other = Trace.from_frames({"tasks": pl.concat([tasks, fresh], how="diagonal_relaxed")}, seen.meta)
    arguments = {"begin": 4 * HOUR, "end": 7 * HOUR, "step": HOUR, "most_moves": 8}
    one, two = (roll(t, FOUR_GPUS, **arguments).table for t in (seen, other))
    before = pl.col("time") < now
    assert one.filter(before).equals(two.filter(before))
    assert one.filter(before)["moves"].sum() > 0
    decided = ["policy", "nodes", "moves"]
    at = (pl.col("time") == now) & (pl.col("policy") != CLAIRVOYANT)
    assert one.filter(at).select(decided).equals(two.filter(at).select(decided))
    foresight = (pl.col("time") == now) & (pl.col("policy") == CLAIRVOYANT)
    assert not one.filter(foresight).select(decided).equals(two.filter(foresight).select(decided))


def test_a_forecast_is_the_past_period_at_the_quantile() -> None:
    # Hour k adds k instances of size 1, half of which leave at once; what leaves before others come is not added.
    numbers = [(k, j) for k in range(1, 6) for j in range(2 * k)]
    begin = np.array([k * HOUR + 60.0 + j for k, j in numbers])
    end = np.array([np.inf if j % 2 else k * HOUR + 60.5 + j for k, j in numbers])
    lives = Lives(np.arange(len(begin)), begin, end, np.ones(len(begin)))
    assert [len(newcomers(lives, k * HOUR, (k + 1) * HOUR)) for k in range(7)] == [0, 1, 2, 3, 4, 5, 0]
    assert len(forecast(lives, 6 * HOUR, HOUR, 0.8, HOUR)) == 4
    assert len(forecast(lives, 6 * HOUR, HOUR, 0.95, HOUR)) == 5
    assert forecast(lives, 3 * HOUR, HOUR, 0.8, HOUR).size == 0


def made_standing(rule: str = "best fit", **more: int) -> Standing:
    """Return an empty placement on nodes of six CPUs and two GPUs, groups of 1 to 4 CPUs and of shares of GPUs."""
    groups = [InstanceGroup(f"cpu{n}", ((0, n),), 99) for n in (1, 2, 3, 4)]
    groups += [InstanceGroup(f"gpu{m}", ((m, 1),), 99, gpus=1, gpu_milli=m) for m in (300, 600, 1000)]
    groups += [InstanceGroup("lonely", ((0, 1),), 99, max_per_node=1), InstanceGroup("pair", ((2000, 1),), 9, gpus=2)]
    problem = Problem(("gpu_milli", "cpu_milli"), tuple(groups), (NodeType("n", (2000, 6), gpus=2, **more),))
    rules: dict[str, Rule] = {
        "best fit": best_fit(np.array([0.5, 0.5]), problem.capacities),
        "FGD": fgd(typical_of(problem, problem.counts), problem),
    }
    return Standing(problem, rules[rule], np.ones(1))


def test_an_exchange_empties_a_node_that_no_single_move_can() -> None:
    standing = made_standing()
    # Nodes of six CPUs hold {4}, {3, 1} and {3, 1}: packed as {4, 1, 1} and {3, 3} with three moves.
    for instance, (group, new) in enumerate([(3, True), (2, True), (0, False), (2, True), (0, False)]):
        row = standing._fresh(group) if new else standing.count - 1
        assert row is not None
        standing.put(instance, group, row)
    assert standing.nodes == 3
    assert consolidate(standing, 99) == 0
    assert repack(standing, [0, 1, 2], 2) == 0
    worth = [np.array([1, 2, 3, 4, 0, 0, 0, 1, 1]) / 6]
    assert exchange(standing, worth, 99) == 3
    assert standing.nodes == 2
    assert sorted(sorted(standing.homes[i].group for i in ids) for ids in standing.on if ids) == [[0, 0, 3], [2, 2]]
    audit(standing)


def test_fgd_keeps_whole_devices_where_best_fit_does_not_look() -> None:
    standing = made_standing("FGD")
    # A share of 600 is there; the next share of 300 goes beside it rather than to the other, empty device.
    assert standing.arrive(0, 5)
    assert standing.arrive(1, 4)
    assert standing.homes[0].devices == standing.homes[1].devices
    assert standing.arrive(2, 6)
    assert standing.nodes == 1


def audit(standing: Standing) -> None:
    """Recompute what is free from the homes, and check every rule."""
    problem = standing.problem
    free = np.tile(problem.capacities[0], (standing.count, 1))
    devices = np.full((standing.count, problem.types[0].gpus), WHOLE_GPU_MILLI)
    limited: dict[tuple[int, int], int] = {}
    for home in standing.homes.values():
        group = problem.groups[home.group]
        free[home.row] -= problem.sizes[home.group]
        assert len(set(home.devices)) == group.gpus
        for device in home.devices:
            devices[home.row, device] -= group.gpu_milli
        limited[home.row, home.group] = limited.get((home.row, home.group), 0) + 1
        assert group.max_per_node is None or limited[home.row, home.group] <= group.max_per_node
    assert free.min() >= 0
    assert devices.min() >= 0
    assert (free == standing.free[: standing.count]).all()
    assert (devices == standing.devices[: standing.count]).all()
    assert standing.nodes == len({home.row for home in standing.homes.values()})


@pytest.mark.parametrize("rule", ["best fit", "FGD"])
def test_whatever_comes_goes_and_moves_every_rule_holds(rule: str) -> None:
    rng = np.random.default_rng(5)
    standing = made_standing(rule, supply=30)
    worth = [np.array([0.17, 0.33, 0.5, 0.67, 0.2, 0.4, 0.5, 0.17, 1.0])]
    moves = missing = 0
    for instance in range(240):
        missing += not standing.arrive(instance, int(rng.integers(0, 9)))
        if rng.random() < 0.45:
            standing.take(int(rng.choice(sorted(standing.homes))))
        if instance % 40 == 39:
            there, before = set(standing.homes), standing.nodes
            leaving = set(rng.choice(sorted(there), 5, replace=False).tolist())
            homes = {i: standing.homes[i] for i in leaving}
            made = consolidate(standing, 20, [4, 6, 8], leaving, worth)
            assert made <= 20
            assert set(standing.homes) == there
            assert {i: standing.homes[i] for i in leaving} == homes
            assert standing.nodes <= before
            moves += made
        audit(standing)
    assert moves > 0


def test_what_cannot_be_rolled_is_told() -> None:
    trace = hourly_guest()
    for wrong, said in (
        ({"step": -1.0}, "too many"),
        ({"most_moves": -1}, "no budget"),
        ({"quantile": 1.5}, "between 0 and 1"),
        ({"begin": -9e9, "end": -8e9, "step": 1e9}, "alive"),
    ):
        with pytest.raises(UserError, match=said):
            roll(trace, FOUR_GPUS, **{"begin": 6 * HOUR, "end": 8 * HOUR, "step": HOUR, **wrong})
