"""All analyses of a trace in one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl

from gputwin.analysis.bottlenecks import bottlenecks
from gputwin.analysis.clock import LocalClock
from gputwin.analysis.cluster import cluster
from gputwin.analysis.delays import delays, runtimes
from gputwin.analysis.dimensions import dimensions_of
from gputwin.analysis.efficiency import efficiency, request_and_use
from gputwin.analysis.engines import Engine, engine_for
from gputwin.analysis.machines import machines
from gputwin.analysis.notebook import topics_html
from gputwin.analysis.placement import placement
from gputwin.analysis.published import published
from gputwin.analysis.requests import requests
from gputwin.analysis.serving import serving
from gputwin.analysis.stranding import stranded_gpus
from gputwin.analysis.tasks import TEXTS, prepare, task_facts
from gputwin.analysis.tenancy import tenancy
from gputwin.analysis.tenants import tenants
from gputwin.analysis.topic import Topic
from gputwin.analysis.workload import workload
from gputwin.core.display import Shown
from gputwin.traces.dataset import Trace


@dataclass(frozen=True, repr=False)
class Analysis(Shown):
    """The topics a trace has something to say about, in order."""

    source: str
    topics: tuple[Topic, ...]

    def _title(self) -> str:
        return f"Analysis of {self.source}: {', '.join(t.name for t in self.topics) or 'nothing'}"

    def _lines(self) -> list[str]:
        return [f"{t.name}: {t.remarks[0].text}" for t in self.topics if t.remarks]

    def topic(self, name: str) -> Topic | None:
        """Return a topic, or None where the trace says nothing about it."""
        return next((t for t in self.topics if t.name == name), None)

    def table(self, topic: str, name: str) -> pl.DataFrame | None:
        """Return a table of a topic, or None where the trace cannot fill it."""
        found = self.topic(topic)
        return None if found is None else found.table(name)

    def _repr_html_(self) -> str:
        """Return the analysis as a notebook shows it."""
        return topics_html(self.topics)

    def to_json(self) -> dict[str, Any]:
        """Return every table as rows and every remark as text, as plain data."""
        return {
            "source": self.source,
            "topics": {
                t.name: {
                    "title": t.title,
                    "remarks": [{"text": r.text, "is_warning": r.is_warning} for r in t.remarks],
                    "tables": {name: table.to_dicts() for name, table in t.tables.items()},
                }
                for t in self.topics
            },
        }


def analyze(
    trace: Trace, *, seed: int = 0, engine: str = "polars", progress: Callable[[str], None] = lambda step: None
) -> Analysis:
    """Return everything the trace shows. The same trace and seed give the same analysis, whichever engine reads it.

    `engine` is polars, duckdb, spark or spark:MASTER (`gputwin.analysis.engines`).
    """
    topics: list[Topic | None] = []
    with engine_for(trace, engine) as reader:
        if _rows(trace, "tasks"):
            topics += _of_tasks(trace, reader, seed, progress)
        if _rows(trace, "series"):
            progress("analysing virtual clusters")
            topics.append(tenancy(reader.scan("series"), _metrics(trace)))
        if _rows(trace, "requests") or (_rows(trace, "series") and _is_serving(trace)):
            progress("analysing requests")
            rates = trace.series if _rows(trace, "series") else None
            topics.append(requests(trace.requests, rates))
            progress("analysing serving")
            of = [reader.scan(name) if _rows(trace, name) else None for name in ("requests", "series", "usage")]
            topics.append(serving(of[0], of[1] if _is_serving(trace) else None, of[2]))
    return Analysis(trace.meta.source, tuple(t for t in topics if t is not None))


def _of_tasks(trace: Trace, reader: Engine, seed: int, progress: Callable[[str], None]) -> list[Topic | None]:
    progress("reading tasks")
    scan = reader.scan("tasks")
    facts = task_facts(scan)
    clock = LocalClock.of(trace.meta, facts.first_arrival, facts.last_arrival)
    # Read once: every analysis below groups the same few columns.
    tasks = reader.keep(prepare(scan, facts, clock), TEXTS)
    dimensions = dimensions_of(facts, clock)
    topics: list[Topic | None] = [workload(tasks, facts, dimensions)]
    progress("analysing waits and runtimes")
    topics += [delays(tasks, facts, dimensions, seed), runtimes(tasks, facts, dimensions, seed)]
    of = {name: reader.scan(name) if _rows(trace, name) else None for name in ("usage", "instances")}
    progress("analysing tenants")
    topics.append(tenants(scan, of["usage"]))
    progress("analysing placement rules")
    topics.append(placement(tasks, facts, dimensions, seed))
    progress("analysing efficiency")
    used = None
    if of["usage"] is not None:
        used = reader.keep(request_and_use(scan, of["usage"], reader.scan("nodes")), ())
    topics.append(efficiency(tasks, facts, used))
    progress("analysing the cluster")
    over_time = cluster(tasks, facts, trace.nodes)
    topics += [over_time, machines(of["usage"], of["instances"], facts.window)]
    progress("analysing bottlenecks")
    stranded = pl.DataFrame()
    if of["instances"] is not None and facts.knows("gpu_count", "cpu_milli", "memory_mib") and _rows(trace, "nodes"):
        stranded = stranded_gpus(scan, of["instances"], trace.nodes, facts)
    topics += [bottlenecks(tasks, facts, over_time, stranded), published(tasks, trace.meta.source)]
    return topics


def _rows(trace: Trace, table: str) -> int:
    return trace.meta.tables.get(table, 0)


def _metrics(trace: Trace) -> dict[str, int]:
    counts = trace.collect(trace.scan("series").group_by("metric").len())
    return dict(counts.iter_rows())


def _is_serving(trace: Trace) -> bool:
    """Return whether the series are those of model serving: waits, loads or inference in ms, or requests per second."""
    return any(name.endswith("_ms") or name.startswith(("qps", "rate", "request_rate")) for name in _metrics(trace))
