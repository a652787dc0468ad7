"""What choosing the forest's settings would bring: `python -m benchmarks.nested FILE… [--shuffles=N]`.

The forest takes a range of leaf sizes and shares of features, and an opinion worth one repetition, as they are. Here the
part of that range and the opinion's worth are chosen for each test anew, by grouped cross-validation inside what the
model may learn from (nested: no test job has a say). If choosing brought much, the forest should do it; if the fixed
forest did much better, its range would have been fitted to the test jobs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from benchmarks.durations import rows_per_task

from gputwin.profiling.blending import blend
from gputwin.profiling.distribution import Grid, Mass
from gputwin.profiling.evaluation.splits import Split, grouped_folds, rolling_origin
from gputwin.profiling.jobs import Floats, History, Ints, Submitted
from gputwin.profiling.keys import REPEAT
from gputwin.profiling.model import fit
from gputwin.profiling.models.forest import STRENGTH, Forest, groves
from gputwin.profiling.trees import Trees
from gputwin.traces.ingest import ingest

INNER_FOLDS = 3
STRENGTHS = (0.5, 1.0, 2.0, 4.0)


class Choice(NamedTuple):
    """Some groves of the forest, by number, and how many repetitions their opinion is worth."""

    members: tuple[int, ...]
    strength: float


def choices(jobs: int) -> list[Choice]:
    """Return what there is to choose from: all groves, those of one leaf size or those of one share."""
    grown = groves(jobs)
    parts = [tuple(range(len(grown)))]
    parts += [tuple(k for k, g in enumerate(grown) if g.least == least) for least in sorted({g.least for g in grown})]
    parts += [tuple(k for k, g in enumerate(grown) if g.share == share) for share in sorted({g.share for g in grown})]
    return [Choice(members, strength) for members, strength in product(parts, STRENGTHS)]


def opinions(forest: Forest, jobs: Submitted) -> Iterator[Mass]:
    """Yield what each grove says of the jobs."""
    rows = forest.features.matrix(jobs)
    first = 0
    for text in forest.texts:
        trees = Trees.of([text])
        yield trees.mixture(rows, forest.leaves[first : first + trees.leaves])
        first += trees.leaves


def predictions(past: History, jobs: Submitted) -> tuple[Grid, dict[Choice, Mass]]:
    """Return the distributions each choice predicts after learning from `past`."""
    forest = fit("forest", past)
    assert isinstance(forest, Forest)
    said = list(opinions(forest, jobs))
    codes = forest.features.memory.codes(jobs)
    found = {}
    for choice in choices(past.size):
        mass = np.mean([said[k] for k in choice.members], axis=0).astype(np.float32)
        if REPEAT in codes:
            outcomes = forest.features.memory.settled[REPEAT]
            blend(
                mass, outcomes, forest.grid.bins(outcomes.value), codes[REPEAT], jobs.arrival, strength=choice.strength
            )
        found[choice] = mass
    return forest.grid, found


def cost(predicted: Floats, actual: Floats, price: float) -> float:
    """Return what the forest's predictions are made to keep low, summed over jobs."""
    missed = np.maximum(predicted / actual, actual / predicted) > 2
    return float((np.abs(predicted - actual) + price * missed).sum())


def best(past: History) -> Choice:
    """Return the choice of least cost in cross-validation inside `past`."""
    past = past.take(past.outcomes.finished)
    total: dict[Choice, float] = dict.fromkeys(choices(past.size), 0.0)
    for split in grouped_folds(past, folds=INNER_FOLDS):
        grid, found = predictions(split.past, past.jobs.take(split.test))
        for choice, mass in found.items():
            total[choice] += cost(grid.cheapest(mass), past.outcomes.duration[split.test], grid.price)
    return min(total, key=lambda choice: total[choice])


def score(history: History, splits: Iterable[Split], weights: Ints) -> None:
    table: dict[str, list[Floats]] = {"chosen inside": [], "the forest": []}
    for split in splits:
        test = split.test[history.outcomes.finished[split.test]]
        grid, found = predictions(split.past, history.jobs.take(test))
        actual = history.outcomes.duration[test]
        everything = Choice(tuple(range(len(groves(split.past.size)))), STRENGTH)
        for name, choice in (("chosen inside", best(split.past)), ("the forest", everything)):
            predicted = grid.cheapest(found[choice])
            low, high = grid.quantiles(found[choice], np.array([0.1, 0.9])).T
            near = np.maximum(predicted / actual, actual / predicted) <= 2
            inside = (actual >= low * (1 - 1e-9)) & (actual <= high * (1 + 1e-9))
            table[name].append(np.column_stack([np.abs(predicted - actual), near, inside, weights[test]]))
    for name, parts in table.items():
        rows = np.concatenate(parts)
        error, near, inside = np.average(rows[:, :3], axis=0, weights=rows[:, 3])
        print(f"  {name:14} MAE {error:7,.0f} s   within 2× {near:.3f}   80 % interval {inside:.3f}")


def main(arguments: list[str]) -> None:
    trace = ingest([Path(a) for a in arguments if not a.startswith("--")])
    shuffles = int(next((a.partition("=")[2] for a in arguments if a.startswith("--shuffles=")), 5))
    history = History.of(trace)
    weights = rows_per_task(trace, history)
    print("in time order, by row")
    score(history, rolling_origin(history), weights)
    print(f"10 folds grouped by job, {shuffles} shuffles, by row")
    score(history, (split for s in range(shuffles) for split in grouped_folds(history, seed=s)), weights)


if __name__ == "__main__":
    main(sys.argv[1:])
