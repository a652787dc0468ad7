"""All analyses of a trace in one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl

from gputwin.analysis.clock import LocalClock
from gputwin.analysis.cluster import cluster
from gputwin.analysis.delays import delays, runtimes
from gputwin.analysis.dimensions import dimensions_of
from gputwin.analysis.efficiency import efficiency, request_and_use
from gputwin.analysis.frames import Frame, lazy
from gputwin.analysis.placement import placement
from gputwin.analysis.published import published
from gputwin.analysis.tasks import prepare, task_facts
from gputwin.analysis.topic import Topic
from gputwin.analysis.workload import workload
from gputwin.traces.dataset import Trace


@dataclass(frozen=True)
class Analysis:
    """The topics a trace has something to say about, in order."""

    source: str
    topics: tuple[Topic, ...]

    def topic(self, name: str) -> Topic | None:
        """Return a topic, or None where the trace says nothing about it."""
        return next((t for t in self.topics if t.name == name), None)

    def table(self, topic: str, name: str) -> pl.DataFrame | None:
        """Return a table of a topic, or None where the trace cannot fill it."""
        found = self.topic(topic)
        return None if found is None else found.table(name)

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


def analyze(trace: Trace, *, seed: int = 0, progress: Callable[[str], None] = lambda step: None) -> Analysis:
    """Return everything the trace shows. The same trace and seed give the same analysis."""
    topics: list[Topic | None] = []
    if trace.has("tasks") and trace.meta.tables["tasks"]:
        progress("reading tasks")
        scan = trace.scan("tasks")
        facts = task_facts(scan)
        clock = LocalClock.of(trace.meta, facts.first_arrival, facts.last_arrival)
        # Read once: every analysis below groups the same few columns.
        ready = trace.collect(prepare(scan, facts, clock).to_native())
        tasks = lazy(ready.lazy())
        dimensions = dimensions_of(facts, clock)
        steps: tuple[tuple[str, Callable[[], Topic | None]], ...] = (
            ("the workload", lambda: workload(tasks, facts, dimensions)),
            ("waits", lambda: delays(tasks, facts, dimensions, seed)),
            ("runtimes", lambda: runtimes(tasks, facts, dimensions, seed)),
            ("placement rules", lambda: placement(tasks, facts, dimensions, seed)),
            ("efficiency", lambda: efficiency(tasks, facts, _used(trace))),
            ("the cluster", lambda: cluster(tasks, facts, trace.nodes)),
            ("published figures", lambda: published(tasks, trace.meta.source)),
        )
        for name, step in steps:
            progress(f"analysing {name}")
            topics.append(step())
    return Analysis(trace.meta.source, tuple(t for t in topics if t is not None))


def _used(trace: Trace) -> Frame | None:
    """Return request and use of each instance with sensors, in memory; None where the trace has none."""
    if not trace.has("usage"):
        return None
    joined = request_and_use(trace.scan("tasks"), trace.scan("usage"), trace.scan("nodes"))
    return lazy(trace.collect(joined.to_native()).lazy())
