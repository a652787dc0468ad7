"""Where instances go under each placement, nodes and devices worked out by hand.

GPU models serve to force the first jobs onto a node: they make the state that the last job finds.
"""

from __future__ import annotations

import numpy as np
import pytest

from gputwin.simulation.machines import cluster_models
from gputwin.simulation.rules import Changes, Scheduler
from gputwin.simulation.run import run
from tests.oracles.cases import Case, cluster_of, workload_of_jobs
from tests.oracles.reference import Ask, Job, Node
from tests.simulation.by_hand import gpus, job, nodes, places

HOUR = 3600


def on(model: str, count: int, milli: int = 1000) -> Job:
    """Return a job that runs from 0 for an hour on a node of this model."""
    return job(0, HOUR, gpus(count, milli, models=frozenset({model})))


def where(cluster: tuple[Node, ...], placement: str, *jobs: Job) -> list[list[tuple[int, tuple[int, ...]]]]:
    outcomes = Case(cluster, jobs).by_engine("fifo", "strict", placement)
    assert {outcome.fate for outcome in outcomes} == {"finished"}
    return places(outcomes)


def test_first_fit_takes_the_first_node_and_its_fullest_device():
    # Node 0 has one GPU: 200 → 800 left; 500 → 300 left; 500 does not fit there: node 1, device 0, 500 left;
    # 200 → node 0 (100 left); 500 → node 1's device 0, fuller than device 1; 1000 → node 1's device 1.
    shares = [200, 500, 500, 200, 500, 1000]
    taken = where((Node(1), Node(2)), "first-fit", *(job(i, HOUR, gpus(1, m)) for i, m in enumerate(shares)))
    assert taken == [[(0, (0,))], [(0, (0,))], [(1, (0,))], [(0, (0,))], [(1, (0,))], [(1, (1,))]]


def test_first_fit_minds_gpu_memory():
    # Device 0 has 500 milli but only 16 - 12 = 4 MiB left: half a GPU with 8 MiB goes to device 1.
    asks = [gpus(1, 500, gpu_memory=12), gpus(1, 500, gpu_memory=8), gpus(1, 500, gpu_memory=4)]
    taken = where((Node(2, gpu_memory=16),), "first-fit", *(job(i, HOUR, ask) for i, ask in enumerate(asks)))
    assert taken == [[(0, (0,))], [(0, (1,))], [(0, (0,))]]


def test_best_fit_takes_the_node_left_with_least():
    # Of 16 cores and 4 GPUs at most. Node 0 would be left with 15/16 and 3/4: 100·(1 - 0.469 - 0.375) = 15;
    # node 1 with 7/16 and 1/4: 100·(1 - 0.219 - 0.125) = 65.
    assert where((Node(4, cpu=16000), Node(2, cpu=8000)), "best-fit", job(0, 1, gpus(1, cpu=1000))) == [[(1, (0,))]]


def test_best_fit_takes_the_fullest_device():
    # Device 0 has 800 left, device 1 (after the 500, which also went to device 0: 300 left) all.
    shares = [200, 500, 500, 300]
    taken = where((Node(2),), "best-fit", *(job(i, HOUR, gpus(1, m)) for i, m in enumerate(shares)))
    assert taken == [[(0, (0,))], [(0, (0,))], [(0, (1,))], [(0, (0,))]]


def test_worst_fit_takes_the_node_with_most_free_and_its_emptiest_device():
    # Free milli-GPU: 2000 and 3000, then 2000 and 2500 (still node 1, another device), then 2000 and 2000: node 0.
    taken = where((Node(2), Node(3)), "worst-fit", *(job(i, HOUR, gpus(1, 500)) for i in range(3)))
    assert taken == [[(1, (0,))], [(1, (1,))], [(0, (0,))]]


def test_worst_fit_lets_cpu_decide_between_equal_gpus():
    assert where((Node(2, cpu=4000), Node(2, cpu=8000)), "worst-fit", job(0, 1, gpus(1))) == [[(1, (0,))]]


def test_load_balance_looks_at_shares_not_amounts():
    # Node 0 has 2 of 4 GPUs free, node 1 its only one. With 200 milli more, 1800/4000 = 45 % and 800/1000 = 80 % stay
    # free: node 1. Worst fit counts GPUs: node 0.
    cluster = (Node(4, "A"), Node(1, "B"))
    assert where(cluster, "load-balance", on("A", 2), job(1, 1, gpus(1, 200)))[1] == [(1, (0,))]
    assert where(cluster, "worst-fit", on("A", 2), job(1, 1, gpus(1, 200)))[1] == [(0, (2,))]


def test_load_balance_averages_cpu_and_gpu():
    # Node 0: CPU (8-4)/8 = 0.5, GPU (4-1)/4 = 0.75: 0.625; node 1: CPU (16-4)/16 = 0.75, GPU (2-1)/2 = 0.5: 0.625. A tie:
    # the first. With one core less asked: 0.6875 against 0.65625, the first again; with one more: 0.5625 and 0.59375.
    cluster = (Node(4, cpu=8000), Node(2, cpu=16000))
    for cores, node in ((3, 0), (4, 0), (5, 1)):
        assert where(cluster, "load-balance", job(0, 1, gpus(1, cpu=1000 * cores))) == [[(node, (0,))]]


def test_dot_product_takes_the_node_least_like_the_request():
    # Largest node: 16 cores, 4 GPUs; asked 4 cores (1/4) and one GPU (1/4).
    # Node 0: CPU 1·1/4, GPU 1/2·1/4: 100·(1 - 0.375/2) = 81. Node 1: CPU 1/4·1/4, GPU 1·1/4: 100·(1 - 0.3125/2) = 84.
    cluster = (Node(2, cpu=16000), Node(4, cpu=4000))
    assert where(cluster, "dot-product", job(0, 1, gpus(1, cpu=4000))) == [[(1, (0,))]]
    # Asked one core (1/16) and one GPU: node 0 100·(1 - (1/16 + 1/8)/2) = 90, node 1 100·(1 - (1/64 + 1/4)/2) = 86.
    assert where(cluster, "dot-product", job(0, 1, gpus(1, cpu=1000))) == [[(0, (0,))]]


def test_gpu_packing_fills_gpus_in_use_then_nodes_in_use_then_idle_nodes():
    # Node 0 is idle, node 1 has one GPU taken whole, node 2 half of one.
    # Half a GPU: idle max(33-2, 2) = 31; node 1 needs a free GPU: 50-1 = 49; node 2's half: 100 - 50 % / 10 = 95.
    # A whole one: nodes 1 and 2 both 49, the first; then node 2; then the idle node.
    cluster = (Node(2, "A"), Node(2, "B"), Node(2, "C"))
    more = [job(i, HOUR, gpus(1, m)) for i, m in enumerate([500, 1000, 1000, 1000], 1)]
    taken = where(cluster, "gpu-packing", on("B", 1), on("C", 1, 500), *more)
    assert taken[2:] == [[(2, (0,))], [(1, (1,))], [(2, (1,))], [(0, (0,))]]


def test_gpu_packing_prefers_the_fullest_gpus_in_use():
    # 800 free on node 0's device: 100 - 80 // 10 = 92; 500 free on node 1's: 95.
    cluster = (Node(1, "A"), Node(1, "B"))
    assert where(cluster, "gpu-packing", on("A", 1, 200), on("B", 1, 500), job(1, 1, gpus(1, 500)))[2] == [(1, (0,))]


def test_gpu_clustering_seeks_company_of_the_same_kind():
    # Node 0 holds an instance of two GPUs, node 1 one of one GPU, node 2 is idle; 8 GPUs each.
    # Two more GPUs: node 0 25·2/8 = 6, alike and alone: +75; node 1: 3, others only: +0; node 2: 0 + 25.
    # One GPU: node 1 (3 + 75). Half a GPU is a kind of its own: node 2 (0 + 25), the others have strangers only.
    cluster = (Node(8, "A"), Node(8, "B"), Node(8, "C"))
    more = [job(1, HOUR, gpus(2)), job(2, HOUR, gpus(1)), job(3, HOUR, gpus(1, 500))]
    assert where(cluster, "gpu-clustering", on("A", 2), on("B", 1), *more)[2:] == [
        [(0, (2, 3))],
        [(1, (1,))],
        [(2, (0,))],
    ]


def test_gpu_clustering_does_not_take_applications_or_other_nodes_for_kinds():
    # Nodes of 3 and 2 GPUs, nobody asks for more than one: 25·0/3000 = 0 + 25 against 25·1000/3000 = 8 + 25.
    # Then node 1 has company: 25·2000//3000 = 16 + 75.
    limited = gpus(1, limit=2, application="x")
    taken = where((Node(3), Node(2)), "gpu-clustering", job(0, HOUR, limited), job(1, HOUR, limited))
    assert taken == [[(1, (0,))], [(1, (1,))]]


# Seven of ten instances need a whole GPU and 4 cores, three half a GPU and no core to speak of.
TYPICAL = [job(HOUR, 1, gpus(1, cpu=4000)) for _ in range(7)] + [job(HOUR, 1, gpus(1, 500)) for _ in range(2)]


def test_fgd_spends_gpus_that_the_typical_job_cannot_use():
    # Node 1's GPU lacks cores for the typical job: 0.7·1000 of it is fragmented, of its half 0.7·500: a fall of 350,
    # 100/(1 + e^-0.35) = 58 points. Node 0 is all usable; after taking half 0.7·500 would not be: 41 points.
    cluster = (Node(1, cpu=8000), Node(1, cpu=2000), Node(1, cpu=8000))
    taken = Case(cluster, (job(0, 1, gpus(1, 500)), *TYPICAL)).by_engine("fifo", "strict", "fgd")
    assert nodes(taken[0]) == [1]


def test_fgd_chooses_the_device_that_leaves_least_fragmented():
    # After half of device 0 another half may leave [0, 1000] (nothing fragmented) or [500, 500] (all, for 7 of 10).
    outcomes = Case((Node(2, cpu=8000),), (job(0, 2, gpus(1, 500)), job(1, 1, gpus(1, 500)), *TYPICAL[:-1])).by_engine(
        "fifo", "strict", "fgd"
    )
    assert places(outcomes)[:2] == [[(0, (0,))], [(0, (0,))]]


def test_fgd_minds_gpu_memory():
    # Both devices have half their share left, device 0 only 2 MiB.
    asks = [gpus(1, 500, gpu_memory=14), gpus(1, 500, gpu_memory=3), gpus(1, 500, gpu_memory=8)]
    taken = where((Node(2, gpu_memory=16),), "fgd", *(job(i, HOUR, ask) for i, ask in enumerate(asks)))
    assert taken == [[(0, (0,))], [(0, (1,))], [(0, (1,))]]


def test_consolidate_takes_the_tightest_node_that_holds_the_gang():
    # Rooms 2, 3, 4 for one-GPU instances. A gang of three: node 1. One of five: four on node 2, the last where it is
    # tightest, node 0.
    cluster = (Node(2), Node(3), Node(4))
    assert [n for n, _ in where(cluster, "consolidate", job(0, 1, gpus(1), 3))[0]] == [1, 1, 1]
    assert [n for n, _ in where(cluster, "consolidate", job(0, 1, gpus(1), 5))[0]] == [2, 2, 2, 2, 0]


def test_consolidate_places_single_instances_by_best_fit():
    assert where((Node(4), Node(2)), "consolidate", job(0, 1, gpus(1))) == [[(1, (0,))]]


RACKS = (
    Node(2, rack="r0", domain="d0"),
    Node(3, rack="r1", domain="d0"),
    Node(2, rack="r0", domain="d0"),
    Node(3, rack="r1", domain="d0"),
    Node(6, rack="r2", domain="d1"),
)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (3, [1, 1, 1]),  # the tightest node that holds it
        (6, [4] * 6),  # one node holds it, though rack r1 would be as tight
        (
            7,
            [1, 1, 1, 3, 3, 3, 0],
        ),  # no rack does (4, 6, 6), domain d0 does (10): its roomiest node first, the rest tight
    ],
)
def test_topology_keeps_a_gang_close(size, expected):
    assert [n for n, _ in where(RACKS, "topology", job(0, 1, gpus(1), size))[0]] == expected


def test_topology_takes_the_tightest_rack_when_no_node_holds_the_gang():
    # Rooms: rack r0 4, r1 6. A gang of four fits r0: two on each of its nodes.
    assert [n for n, _ in where(RACKS[:4], "topology", job(0, 1, gpus(1), 4))[0]] == [0, 0, 2, 2]


def test_topology_looks_everywhere_when_no_domain_holds_the_gang():
    # 16 GPUs in all, d0 has 10: the roomiest node first, then the next.
    assert [n for n, _ in where(RACKS, "topology", job(0, 1, gpus(1), 12))[0]] == [4] * 6 + [1] * 3 + [3] * 3


def test_random_is_fair_to_nodes_and_devices_and_the_same_for_a_seed():
    cluster = cluster_of((Node(2), Node(2), Node(2)))
    jobs = [job(i, 1, Ask(1, 10)) for i in range(600)]
    workload = workload_of_jobs(jobs, cluster_models(cluster))

    def slots(seed: int) -> np.ndarray:
        return run(workload, cluster, Scheduler(placement="random"), seed=seed).world.slots

    first = slots(1)
    _, counts = np.unique(first[["node", "devices"]], return_counts=True)
    # Six equal chances in 600 draws: 100 each, standard deviation √(600·1/6·5/6) = 9.1.
    assert counts.size == 6
    assert abs(counts - 100).max() < 5 * 9.1
    assert first.tobytes() == slots(1).tobytes()
    assert first.tobytes() != slots(2).tobytes()


def test_least_loaded_takes_idle_gpus_first_wherever_they_are():
    """Once the three GPUs of the large node have a job each, the small node's is next, though less is free there in all."""
    shares = [job(i, HOUR, gpus(1, 250)) for i in range(4)]
    cluster = Node(3), Node(1)
    assert where(cluster, "least-loaded", *shares) == [[(0, (0,))], [(0, (1,))], [(0, (2,))], [(1, (0,))]]
    assert where(cluster, "worst-fit", *shares)[3] != [(1, (0,))]


def test_least_loaded_goes_by_the_fullest_gpu_it_would_take():
    """On node 0 one of two GPUs is half full: the instance on two GPUs goes to node 1, whose both have 0.7 free."""
    cluster = Node(2, "A"), Node(2, "B")
    taken = where(cluster, "least-loaded", on("A", 1, 500), on("B", 2, 300), job(1, HOUR, gpus(2, 200)))
    assert taken[2] == [(1, (0, 1))]


def test_power_takes_the_model_that_draws_least():
    # A T4 draws 60 - 10 W more than idle, a V100 177 - 30 W.
    assert where((Node(1, model="V100"), Node(1, model="T4")), "power", job(0, 1, gpus(1))) == [[(1, (0,))]]


def test_power_fills_a_gpu_that_is_in_use_before_it_wakes_another():
    # Half a V100 that sleeps costs 26 W for the context and 60.5 W; where the context is loaded, 60.5 W. Node 1 is the
    # fuller one for the first job; the third finds no half left there and wakes node 0.
    shares = [500, 500, 500]
    taken = where((Node(2, model="V100"), Node(1, model="V100")), "power", *(job(0, 1, gpus(1, m)) for m in shares))
    assert taken == [[(1, (0,))], [(1, (0,))], [(0, (0,))]]


def test_power_counts_watts_for_the_work_done():
    # With a V100 that is four times as fast, the same work takes 147 / 4 W there, 50 W on the T4.
    cluster = cluster_of((Node(1, model="T4"), Node(1, model="V100")))
    workload = workload_of_jobs((job(0, 8, gpus(1)),), cluster_models(cluster))
    for speed, node in ((4.0, 1), (2.0, 0)):
        changes = Changes(speed="gpu-model", speeds={"V100": speed})
        done = run(workload, cluster, Scheduler("fifo", "strict", "power"), changes=changes)
        assert list(done.world.slots["node"][:1]) == [node]
