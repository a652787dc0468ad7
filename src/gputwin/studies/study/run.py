"""Run a study: every scenario on every replicate, each kept as it ends, nothing twice; then all side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from gputwin.core.processors import processors
from gputwin.simulation.batch import Batch
from gputwin.simulation.scenario import Scenario
from gputwin.simulation.scenario_files import renamed
from gputwin.simulation.simulate import cluster_of_scenario, trace_of
from gputwin.studies.comparison.compare import Comparison, compare
from gputwin.studies.comparison.scenario_run import ScenarioRun
from gputwin.studies.store import RunStore, engine_digest
from gputwin.studies.study.expand import Replicate, Variant, replicates_of, variants_of
from gputwin.studies.study.lazy import LazyResult
from gputwin.studies.study.model import Study
from gputwin.studies.study.tasks import Done, StoreReference, Task, TraceReference, execute
from gputwin.traces.dataset import META_FILE, Trace


@dataclass(frozen=True)
class Progress:
    """How far a study is: runs that ended just now or were there before, by label, and the figures of each."""

    total: int
    labels: tuple[str, ...]
    figures: Mapping[str, Sequence[Mapping[str, float | None]]]
    found: int

    @property
    def done(self) -> int:
        """Return how many runs are finished."""
        return sum(len(rows) for rows in self.figures.values())


@dataclass(frozen=True)
class Planned:
    """All runs of a study: which variant on which replicate is which run of the store."""

    study: Study
    variants: tuple[Variant, ...]
    replicates: tuple[Replicate, ...]
    tasks: Mapping[tuple[str, str], Task]
    first_trace: Trace

    @property
    def keys(self) -> list[str]:
        """Return the keys of all runs, each once."""
        return list(dict.fromkeys(task.key for task in self.tasks.values()))


@dataclass(frozen=True)
class StudyOutcome:
    """A finished study: its plan, the comparison of its runs, and how many were made now."""

    planned: Planned
    compared: Comparison
    made: int


def plan_study(
    study: Study, store: RunStore, file: Path | None = None, progress: Callable[[str], None] = lambda step: None
) -> Planned:
    """Return the runs of a study; traces are opened once and saved in the store, where workers read them."""
    variants = variants_of(study, file)
    common = variants[0].scenario
    progress("opening the trace")
    first = trace_of(common) if study.windows is not None else None
    replicates = replicates_of(study, first, variants, file)
    reference = StoreReference(str(store.folder.resolve()), store.id)
    tasks: dict[tuple[str, str], Task] = {}
    name, trace = common.trace, first
    for k, replicate in enumerate(replicates):
        if trace is None or name != replicate.trace:
            progress(f"opening trace {k + 1} of {len(replicates)}")
            # One at a time: workers read them from disk. The first is kept, since the report is about it.
            name, trace = replicate.trace, trace_of(common.with_(trace=replicate.trace))
        first = first or trace
        where = _saved(trace, replicate, study, store)
        clusters = {}
        for variant in variants:
            scenario = with_absolute_paths(replicate.of(variant.scenario))
            named = scenario.cluster
            if named not in clusters:
                clusters[named] = cluster_of_scenario(scenario, trace)
            key = store.key(scenario, trace, clusters[named])
            task = Task(key, scenario, clusters[named], where, reference, study.name, engine_digest())
            tasks[variant.label, replicate.name] = task
    assert first is not None
    return Planned(study, tuple(variants), tuple(replicates), tasks, first)


def _saved(trace: Trace, replicate: Replicate, study: Study, store: RunStore) -> TraceReference:
    folder = store.folder.resolve() / "traces" / trace.meta.fingerprint[:32]
    if not (folder / META_FILE).is_file():
        trace.save(folder)
    named = replicate.trace
    names = tuple(_absolute(n) for n in ([named] if isinstance(named, str) else named))
    return TraceReference(str(folder), names[0] if len(names) == 1 else names, study.format, trace.meta.fingerprint)


def _absolute(name: str) -> str:
    return str(Path(name).resolve()) if Path(name).exists() else name


def with_absolute_paths(scenario: Scenario) -> Scenario:
    """Return the scenario with the files it names where they are, since a worker may run in another folder."""
    return renamed(scenario, _absolute)


def run_study(
    study: Study,
    store: RunStore,
    *,
    file: Path | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    progress: Callable[[str], None] = lambda step: None,
    watch: Callable[[Progress], None] = lambda state: None,
) -> StudyOutcome:
    """Return the finished study. Runs that the store has are not made again, so a study goes on where it was ended.

    Without an executor, `workers` processes of this machine are used, one a processor where it is not said; the result
    does not depend on it. `watch` is called with every run that ends.
    """
    store.recover()
    planned = plan_study(study, store, file, progress)
    known = store.known(planned.keys)
    store.join(sorted(known), study.name)
    figures: dict[str, list[Mapping[str, float | None]]] = {v.label: [] for v in planned.variants}
    by_key: dict[str, list[str]] = {}
    for (label, _), task in planned.tasks.items():
        by_key.setdefault(task.key, []).append(label)
    state = Progress(len(planned.tasks), tuple(figures), figures, len(known))

    def tell(key: str, metrics: Mapping[str, float | None]) -> None:
        for label in by_key[key]:
            figures[label].append(metrics)
        watch(state)

    for run in store.list(study=study.name):
        if run.key in known:
            tell(run.key, run.metrics)
    # Runs that share a trace stand together, so that a worker opens few.
    open_tasks = list({t.key: t for t in planned.tasks.values() if t.key not in known}.values())

    def done(k: int, end: Done) -> None:
        if end.result is not None:
            store.put(end.key, end.result, study=study.name)
        tell(end.key, end.metrics)

    progress(f"simulating {len(open_tasks):,} runs")
    count = min(processors() if workers is None else workers, max(len(open_tasks), 1))
    with Batch(executor, count) as batch:
        batch.each(execute, [(task,) for task in open_tasks], done)
    order = {v.label: k for k, v in enumerate(planned.variants)}
    pairs = sorted(planned.tasks.items(), key=lambda item: order[item[0][0]])
    store.join(list(dict.fromkeys(task.key for _, task in pairs)), study.name)
    progress("comparing")
    return StudyOutcome(planned, compared_of(planned, store), len(open_tasks))


def compared_of(planned: Planned, store: RunStore) -> Comparison:
    """Return all runs of a study side by side, from the store."""
    runs = [
        ScenarioRun(label, replicate, LazyResult(store.folder_of(task.key)))
        for (label, replicate), task in planned.tasks.items()
    ]
    order = {variant.label: k for k, variant in enumerate(planned.variants)}
    runs.sort(key=lambda run: order[run.label])
    return compare(runs, seed=planned.variants[0].scenario.seed)


def default_folder() -> Path:
    """Return where runs are kept where nothing is said: $GPUTWIN_RUNS, or `runs` here."""
    return Path(os.environ.get("GPUTWIN_RUNS") or "runs")
