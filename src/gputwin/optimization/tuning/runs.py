"""A tuning study's configurations and their runs on windows, each run at most once and kept in a file as it ends."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import polars as pl

from gputwin.core.errors import UserError
from gputwin.core.version import VERSION
from gputwin.simulation.batch import Batch
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.scenario import Scenario, fields_apart
from gputwin.simulation.scenario_files import digest_of, files_of
from gputwin.simulation.simulate import cluster_of_scenario, part_of, simulate_scenario, trace_of
from gputwin.traces.dataset import Trace
from gputwin.traces.measures import ARRIVAL

METRICS = ("mean_wait", "p95_wait", "mean_jct", "p95_jct", "unfairness", "idle_gpus")
_ONE_SECOND = 1.0
"""Added to waits before they are compared, so that a wait of nothing can be a ratio's base."""


PRESENT = {"order": "fifo", "backfill": "greedy", "placement": "best-fit"}
"""What a configuration says where the study does not."""
Configuration = TypeVar("Configuration")


def name_of(configuration: Scenario) -> str:
    """Return the rules in one line, and what else of the scenario is not as usual."""
    rules = f"{configuration.order} / {configuration.backfill} / {configuration.placement}"
    usual = Scenario(trace=configuration.trace, cluster=configuration.cluster, seed=configuration.seed)
    others = fields_apart([configuration, usual], ("format", *PRESENT))[0]
    return ", ".join([rules, *(f"{field} {value}" for field, value in others.items())])


@dataclass(frozen=True)
class Study(Generic[Configuration]):
    """What to tune, on what, and how many runs may be spent: configurations are variants of one scenario, or others' own."""

    present: Configuration
    configurations: tuple[Configuration, ...]
    objectives: Mapping[str, float] = field(default_factory=lambda: {"mean_wait": 1.0})
    windows: int = 10
    held_out: int = 6
    budget: int | None = None
    algorithm: str = "ucb"
    name_of: Callable[[Any], str] = name_of
    """What a configuration is called."""

    @property
    def names(self) -> list[str]:
        """Return what the configurations are called."""
        return [self.name_of(c) for c in self.configurations]

    @property
    def pulls(self) -> int:
        """Return the simulations to spend: a fifth of the full sweep where not said."""
        return self.budget or max(len(self.configurations) * self.windows // 5, len(self.configurations))


class Runs(ABC, Generic[Configuration]):
    """Runs of configurations on windows, each at most once; `key` says whose runs in the store are the same."""

    def __init__(self, study: Study[Configuration], key: str, *, store: Path | None = None, seed: int = 0) -> None:
        self.study, self.key, self.seed, self.store = study, key, seed, store
        self.known: dict[tuple[str, int], dict[str, float]] = {}
        if store is not None and store.exists():
            self._load(store)

    @property
    @abstractmethod
    def size(self) -> int:
        """Return the jobs of one run, so that small ones need no worker processes."""

    @abstractmethod
    def measure(self, batch: Batch | None, pairs: Sequence[tuple[Configuration, int]]) -> Iterable[dict[str, float]]:
        """Return the metrics (losses) of each configuration on its window."""

    def _load(self, store: Path) -> None:
        for line in store.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                # The last line of a run that was killed may be half written.
                continue
            if row.get("study") == self.key:
                self.known[row["configuration"], row["window"]] = row["metrics"]

    def simulate(self, batch: Batch | None, wanted: Sequence[tuple[Configuration, int]]) -> None:
        """Run these configurations on these windows, together, but for those known already."""
        name = self.study.name_of
        pairs = {(name(c), w): (c, w) for c, w in wanted if (name(c), w) not in self.known}
        for key, found in zip(pairs, self.measure(batch, list(pairs.values())), strict=True):
            self._keep(key, found)

    def metrics(self, configuration: Configuration, window: int) -> dict[str, float]:
        """Return the metrics (losses) of a configuration on a window."""
        self.simulate(None, [(configuration, window)])
        return self.known[self.study.name_of(configuration), window]

    def _keep(self, key: tuple[str, int], found: dict[str, float]) -> None:
        self.known[key] = found
        if self.store is not None:
            row = {"study": self.key, "configuration": key[0], "window": key[1], "metrics": found}
            with self.store.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    def ratios(self, configuration: Configuration, window: int) -> list[float]:
        """Return each objective relative to the present configuration on the same window: 1 is as good."""
        own, base = self.metrics(configuration, window), self.metrics(self.study.present, window)
        return [(own[m] + _base(m)) / (base[m] + _base(m)) for m in self.study.objectives]

    def loss(self, configuration: Configuration, window: int) -> float:
        """Return the weighted loss relative to the present configuration on the same window: 1 is as good."""
        weights = self.study.objectives.values()
        ratios = self.ratios(configuration, window)
        return sum(w * r for w, r in zip(weights, ratios, strict=True)) / sum(weights)


class Simulations(Runs[Scenario]):
    """Runs of scenarios on equal parts of a trace."""

    def __init__(self, study: Study[Scenario], *, store: Path | None = None, seed: int = 0) -> None:
        self.trace = part_of(study.present, trace_of(study.present))
        self.cluster = cluster_of_scenario(study.present, self.trace)
        self.parts = windows_of(self.trace, study.windows + study.held_out)
        files = {(field, n) for c in study.configurations for field, names in files_of(c).items() for n in names}
        contents = [digest_of(name, field) for field, name in sorted(files)]
        rest = json.dumps([asdict(self.cluster), contents, VERSION])
        key = f"{self.trace.meta.fingerprint}|{hashlib.sha256(rest.encode()).hexdigest()}|{len(self.parts)}|{seed}"
        super().__init__(study, key, store=store, seed=seed)

    @property
    def size(self) -> int:
        """Return the jobs of one run."""
        return self.trace.tasks.height // len(self.parts)

    def measure(self, batch: Batch | None, pairs: Sequence[tuple[Scenario, int]]) -> Iterable[dict[str, float]]:
        """Return the metrics of each scenario on its window."""
        if batch is None:
            return [measure(self.parts[w], self.cluster, c.with_(seed=self.seed)) for c, w in pairs]
        calls = [(batch.share(self.parts[w]), self.cluster, c.with_(seed=self.seed)) for c, w in pairs]
        return batch.map(measure, calls)


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
