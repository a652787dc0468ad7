"""A tuning study: configurations, windows of the trace, objectives; which configuration to adopt, and why.

Windows are equal parts of the trace in time; the last ones are held out: tuning never sees them, and the A/B test of the
chosen against the present configuration uses nothing else. Every simulation is stored as it ends, so a study that was
interrupted goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gputwin.core.errors import UserError
from gputwin.core.rng import stream
from gputwin.optimization.tuning.ab import AbTest, paired_test
from gputwin.optimization.tuning.bandits import TRY_ALL_FIRST, History, chosen, pareto, regret, search
from gputwin.simulation.batch import Batch, workers_for
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.scenario import Scenario, fields_apart
from gputwin.simulation.simulate import cluster_of_scenario, part_of, simulate_scenario, trace_of
from gputwin.traces.dataset import Trace
from gputwin.traces.measures import ARRIVAL

METRICS = ("mean_wait", "p95_wait", "mean_jct", "p95_jct", "unfairness", "idle_gpus")
_ONE_SECOND = 1.0
"""Added to waits before they are compared, so that a wait of nothing can be a ratio's base."""


PRESENT = {"order": "fifo", "backfill": "greedy", "placement": "best-fit"}
"""What a configuration says where the study does not."""
_FIRST_PAIRS = 4
"""Held-out windows that every A/B test looks at."""


def name_of(configuration: Scenario) -> str:
    """Return the rules in one line, and what else of the scenario is not as usual."""
    rules = f"{configuration.order} / {configuration.backfill} / {configuration.placement}"
    usual = Scenario(trace=configuration.trace, cluster=configuration.cluster, seed=configuration.seed)
    others = fields_apart([configuration, usual], ("format", *PRESENT))[0]
    return ", ".join([rules, *(f"{field} {value}" for field, value in others.items())])


@dataclass(frozen=True)
class Study:
    """What to tune, on what, and how many simulations may be spent: configurations are variants of one scenario."""

    present: Scenario
    configurations: tuple[Scenario, ...]
    objectives: Mapping[str, float] = field(default_factory=lambda: {"mean_wait": 1.0})
    windows: int = 10
    held_out: int = 6
    budget: int | None = None
    algorithm: str = "ucb"

    @property
    def names(self) -> list[str]:
        """Return what the configurations are called."""
        return [name_of(c) for c in self.configurations]

    @property
    def pulls(self) -> int:
        """Return the simulations to spend: a fifth of the full sweep where not said."""
        return self.budget or max(len(self.configurations) * self.windows // 5, len(self.configurations))


class Simulations:
    """Runs of configurations on windows, each at most once, kept in a file as they end."""

    def __init__(self, study: Study, *, store: Path | None = None, seed: int = 0) -> None:
        self.study, self.seed, self.store = study, seed, store
        self.trace = part_of(study.present, trace_of(study.present))
        self.cluster = cluster_of_scenario(study.present, self.trace)
        self.parts = windows_of(self.trace, study.windows + study.held_out)
        self.known: dict[tuple[str, int], dict[str, float]] = {}
        self.fresh = 0
        self.key = f"{self.trace.meta.fingerprint}|{self.cluster.name}|{len(self.parts)}|{seed}"
        if store is not None and store.exists():
            self._load(store)

    def _load(self, store: Path) -> None:
        for line in store.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                # The last line of a run that was killed may be half written.
                continue
            if row.get("study") == self.key:
                self.known[row["configuration"], row["window"]] = row["metrics"]

    def simulate(self, batch: Batch, wanted: Sequence[tuple[Scenario, int]]) -> None:
        """Run these configurations on these windows, together, but for those known already."""
        pairs = {(name_of(c), w): (c, w) for c, w in wanted if (name_of(c), w) not in self.known}
        calls = [(batch.share(self.parts[w]), self.cluster, c.with_(seed=self.seed)) for c, w in pairs.values()]
        for key, found in zip(pairs, batch.map(measure, calls), strict=True):
            self._keep(key, found)

    def metrics(self, configuration: Scenario, window: int) -> dict[str, float]:
        """Return the metrics (losses) of a configuration on a window."""
        key = (name_of(configuration), window)
        if key not in self.known:
            self._keep(key, measure(self.parts[window], self.cluster, configuration.with_(seed=self.seed)))
        return self.known[key]

    def _keep(self, key: tuple[str, int], found: dict[str, float]) -> None:
        self.fresh += 1
        self.known[key] = found
        if self.store is not None:
            row = {"study": self.key, "configuration": key[0], "window": key[1], "metrics": found}
            with self.store.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    def loss(self, configuration: Scenario, window: int) -> float:
        """Return the weighted loss relative to the present configuration on the same window: 1 is as good."""
        own, base = self.metrics(configuration, window), self.metrics(self.study.present, window)
        weights = self.study.objectives
        ratios = [w * (own[m] + _base(m)) / (base[m] + _base(m)) for m, w in weights.items()]
        return sum(ratios) / sum(weights.values())


def _base(metric: str) -> float:
    return _ONE_SECOND if metric.endswith(("wait", "jct")) else 0.01


def windows_of(trace: Trace, count: int) -> tuple[Trace, ...]:
    """Return equal parts of the trace by time of arrival."""
    tasks = trace.tasks.with_columns(ARRIVAL).filter(pl.col("arrival_time").is_not_null())
    if tasks.height < 2 * count:
        raise UserError(f"{tasks.height:,} tasks are too few for {count} windows; use fewer windows or a longer trace")
    order = tasks.sort("arrival_time", maintain_order=True)
    edges = np.linspace(0, order.height, count + 1).astype(int)
    parts = []
    for i in range(count):
        rows = order.slice(edges[i], edges[i + 1] - edges[i]).drop("arrival_time")
        parts.append(Trace.from_frames({"tasks": rows}, trace.meta))
    return tuple(parts)


def measure(window: Trace, cluster: Cluster, configuration: Scenario) -> dict[str, float]:
    """Return the losses of one simulation: waits and completion times (s), unfairness, idle GPUs (share)."""
    # The window is a part of the scenario's trace, so neither its fingerprint nor its slice is to be looked at again.
    whole = configuration.with_(slice=None, trace_fingerprint=None)
    result = simulate_scenario(whole, window, cluster)
    summary = result.summary
    fairness = summary.get("jain_fairness")
    return {
        "mean_wait": float(summary["wait_seconds"]["mean"] or 0.0),
        "p95_wait": float(summary["wait_seconds"]["p95"] or 0.0),
        "mean_jct": float(summary["jct_seconds"]["mean"] or 0.0),
        "p95_jct": float(summary["jct_seconds"]["p95"] or 0.0),
        "unfairness": 1.0 - float(1.0 if fairness is None else fairness),
        "idle_gpus": 1.0 - float(summary["allocation"].get("gpu") or 0.0),
    }


@dataclass(frozen=True)
class Tuned:
    """The outcome: who was chosen, what was spent, the front of the objectives, the regret, and the A/B test."""

    study: Study
    chosen: int
    scores: tuple[tuple[float, ...], ...]
    order: tuple[int, ...]
    expected: tuple[float, ...]
    front: tuple[int, ...]
    objectives: tuple[tuple[float, ...], ...]
    regret: tuple[float, ...]
    test: AbTest
    simulations: int
    full_sweep: int

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as plain data."""
        names = self.study.names
        return {
            "algorithm": self.study.algorithm,
            "configurations": len(names),
            "simulations": self.simulations,
            "full_sweep_simulations": self.full_sweep,
            "chosen": names[self.chosen],
            "expected_loss": self.expected[self.chosen],
            "present": name_of(self.study.present),
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
                {"configuration": n, "pulls": len(s), "expected_loss": e}
                for n, s, e in zip(names, self.scores, self.expected, strict=True)
            ],
        }


def tune(
    study: Study,
    *,
    store: Path | None = None,
    seed: int = 0,
    workers: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Tuned:
    """Return the configuration to adopt, found within the study's budget and tested on held-out windows."""
    simulations = Simulations(study, store=store, seed=seed)
    jobs = simulations.trace.tasks.height * len(study.configurations) // len(simulations.parts)
    with Batch(workers=workers_for(jobs) if workers is None else workers) as batch:
        return _tuned(simulations, batch, progress)


def _tuned(simulations: Simulations, batch: Batch, progress: Callable[[int, int], None]) -> Tuned:
    study, seed = simulations.study, simulations.seed
    arms = study.configurations
    order = stream(seed, "windows").permutation(study.windows)
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
    simulations: Simulations, history: History, order: NDArray[np.int64]
) -> tuple[tuple[tuple[float, ...], ...], tuple[int, ...]]:
    """Return each arm's mean objectives relative to the present configuration, and the arms on the Pareto front."""
    study = simulations.study
    rows = []
    for arm, seen in zip(study.configurations, history.scores, strict=True):
        ratios = []
        for k in range(len(seen)):
            own = simulations.metrics(arm, int(order[k]))
            base = simulations.metrics(study.present, int(order[k]))
            ratios.append([(own[m] + _base(m)) / (base[m] + _base(m)) for m in study.objectives])
        rows.append(tuple(np.mean(ratios, axis=0)) if ratios else (float("inf"),) * len(study.objectives))
    on_front = pareto(np.array(rows))
    return tuple(rows), tuple(np.flatnonzero(on_front & np.array([bool(s) for s in history.scores])).tolist())
