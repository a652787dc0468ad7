"""How many simulations it takes to find the best of thirty configurations: bandits, random search, successive halving.

    python -m benchmarks.tuning   # 300 simulations once, then ten seeds of every algorithm on their results

The full sweep simulates every configuration on every window. Each algorithm has a fifth of that. Fails if UCB, the
default, picks the full sweep's best, or one within 2 % of it, in fewer than eight of ten seeds.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

LEAST_GOOD = 8
SEEDS = 10
WITHIN = 1.02


def main() -> int:
    from gputwin.optimization.tuning.bandits import ALGORITHMS, chosen, regret, search
    from gputwin.optimization.tuning.runs import PRESENT, Simulations, Study, name_of
    from gputwin.simulation.scenario import Scenario

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", default="synthetic:pai2020?jobs=24000&seed=1")
    parser.add_argument("--cluster", default="homogeneous:80x8")
    parser.add_argument("--windows", type=int, default=10)
    arguments = parser.parse_args()
    present = Scenario(trace=arguments.trace, cluster=arguments.cluster).with_(**PRESENT)
    arms = tuple(
        present.with_(order=order, backfill=backfill, placement=placement)
        for order in ("fifo", "sjf", "srtf", "gpu-time", "las")
        for backfill in ("strict", "greedy")
        for placement in ("first-fit", "best-fit", "fgd")
    )
    study = Study(present, arms, windows=arguments.windows, held_out=1)
    simulations = Simulations(study)
    table = np.array([[simulations.loss(arm, w) for w in range(study.windows)] for arm in arms])
    means = table.mean(axis=1)
    budget = table.size // 5
    print(f"full sweep: {table.size} simulations; best {name_of(arms[int(np.argmin(means))])}, loss {means.min():.4f}")
    print("algorithm  simulations  same as the sweep  within 2 %  mean regret")
    good = {}
    for algorithm in ALGORITHMS:
        same = near = 0
        total = 0.0
        for seed in range(SEEDS):
            order = np.random.default_rng(seed).permutation(study.windows)
            history, pulled = search(
                lambda a, k, order=order: float(table[a, order[k]]),
                len(arms),
                study.windows,
                budget,
                algorithm=algorithm,
                seed=seed,
            )
            pick = means[chosen(history)]
            same += pick <= means.min() + 1e-12
            near += pick <= means.min() * WITHIN
            total += regret(pulled, means)[-1]
        good[algorithm] = near
        print(f"{algorithm:9s}  {budget:11d}  {same:17d}  {near:10d}  {total / SEEDS:11.3f}")
    return 0 if good["ucb"] >= LEAST_GOOD else 1


if __name__ == "__main__":
    sys.exit(main())
