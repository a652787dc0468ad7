"""A tuning study's outcome: which configuration to adopt, and why.

Windows are equal parts of the trace in time; the last ones are held out: tuning never sees them, and the A/B test of the
chosen against the present configuration uses nothing else. Every run is stored as it ends (`runs`), so a study that was
interrupted goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputwin.core.rng import stream
from gputwin.optimization.tuning.ab import AbTest, paired_test
from gputwin.optimization.tuning.bandits import IN_TIME_ORDER, TRY_ALL_FIRST, History, chosen, pareto, regret, search
from gputwin.optimization.tuning.runs import Runs, Simulations, Study
from gputwin.simulation.batch import Batch, workers_for
from gputwin.simulation.scenario import Scenario

_FIRST_PAIRS = 4
"""Held-out windows that every A/B test looks at."""


@dataclass(frozen=True)
class Tuned:
    """The outcome: who was chosen, what was spent, the front of the objectives, the regret, and the A/B test."""

    study: Study[Any]
    chosen: int
    scores: tuple[tuple[float, ...], ...]
    order: tuple[int, ...]
    expected: tuple[float, ...]
    """What each arm is chosen by: its loss, drawn towards the mean of all where few windows are known."""
    front: tuple[int, ...]
    objectives: tuple[tuple[float, ...], ...]
    regret: tuple[float, ...]
    test: AbTest
    simulations: int
    full_sweep: int

    def mean_loss(self, arm: int) -> float | None:
        """Return the mean of what an arm's windows showed, the present configuration being 1; None where none was run."""
        seen = self.scores[arm]
        return sum(seen) / len(seen) if seen else None

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as plain data."""
        names = self.study.names
        return {
            "algorithm": self.study.algorithm,
            "configurations": len(names),
            "simulations": self.simulations,
            "full_sweep_simulations": self.full_sweep,
            "chosen": names[self.chosen],
            "mean_loss": self.mean_loss(self.chosen),
            "expected_loss": self.expected[self.chosen],
            "present": self.study.name_of(self.study.present),
            "pareto_front": [names[i] for i in self.front],
            "regret": self.regret[-1] if self.regret else 0.0,
            "ab_test": {
                "verdict": self.test.verdict,
                "pairs": self.test.pairs,
                "difference": self.test.difference,
                "low": self.test.low,
                "high": self.test.high,
            },
            "arms": [
                {
                    "configuration": name,
                    "pulls": len(self.scores[i]),
                    "mean_loss": self.mean_loss(i),
                    "expected_loss": self.expected[i],
                }
                for i, name in enumerate(names)
            ],
        }


def tune(
    study: Study[Scenario],
    *,
    store: Path | None = None,
    seed: int = 0,
    workers: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Tuned:
    """Return the configuration to adopt, found within the study's budget and tested on held-out windows."""
    return tune_runs(Simulations(study, store=store, seed=seed), workers=workers, progress=progress)


def tune_runs(
    runs: Runs[Any], *, workers: int | None = None, progress: Callable[[int, int], None] = lambda done, total: None
) -> Tuned:
    """Return the configuration to adopt of any runs on windows."""
    jobs = runs.size * len(runs.study.configurations)
    with Batch(workers=workers_for(jobs) if workers is None else workers) as batch:
        return _tuned(runs, batch, progress)


def _tuned(simulations: Runs[Any], batch: Batch, progress: Callable[[int, int], None]) -> Tuned:
    study, seed = simulations.study, simulations.seed
    arms = study.configurations
    is_timed = study.algorithm in IN_TIME_ORDER
    order = np.arange(study.windows) if is_timed else stream(seed, "windows").permutation(study.windows)
    if study.algorithm in TRY_ALL_FIRST and study.pulls >= len(arms):
        simulations.simulate(batch, [(arm, int(order[0])) for arm in (study.present, *arms)])
    history, pulled = search(
        lambda arm, k: simulations.loss(arms[arm], int(order[k])),
        len(arms),
        study.windows,
        study.pulls,
        algorithm=study.algorithm,
        seed=seed,
        progress=progress,
    )
    best = chosen(history)
    mean, _ = history.posterior()
    spent = len({k for k in simulations.known if k[1] < study.windows})
    first = study.windows

    held_out = range(first, first + min(_FIRST_PAIRS, study.held_out))
    simulations.simulate(batch, [(arm, k) for k in held_out for arm in (study.present, arms[best])])

    def pair(k: int) -> tuple[float, float]:
        return simulations.loss(study.present, first + k), simulations.loss(arms[best], first + k)

    test = paired_test(pair, study.held_out)
    # The present configuration's loss is 1 on every window and none is below 0, so nothing is more than 1 better.
    test = replace(test, low=max(test.low, -1.0))
    points, front = _front(simulations, history, order)
    return Tuned(
        study,
        best,
        tuple(tuple(s) for s in history.scores),
        tuple(pulled),
        tuple(mean.tolist()),
        front,
        points,
        tuple(regret(pulled, mean).tolist()),
        test,
        spent,
        len(arms) * study.windows,
    )


def _front(
    simulations: Runs[Any], history: History, order: NDArray[np.int64]
) -> tuple[tuple[tuple[float, ...], ...], tuple[int, ...]]:
    """Return each arm's mean objectives relative to the present configuration, and the arms on the Pareto front."""
    study = simulations.study
    rows = []
    for arm, seen in zip(study.configurations, history.seen, strict=True):
        ratios = [simulations.ratios(arm, int(order[k])) for k in seen]
        rows.append(tuple(np.mean(ratios, axis=0)) if ratios else (float("inf"),) * len(study.objectives))
    on_front = pareto(np.array(rows))
    return tuple(rows), tuple(np.flatnonzero(on_front & np.array([bool(s) for s in history.scores])).tolist())
