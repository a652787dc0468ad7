"""One trace as every verb sees it: each result is made once, by the function behind the verb, and only if asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

import gputwin
from gputwin.analysis import Analysis
from gputwin.core.errors import UserError
from gputwin.forecasting.demand import demand
from gputwin.forecasting.series import DemandSeries
from gputwin.report.page import Cards, Section
from gputwin.report.report_input import ReportInput
from gputwin.report.write import sections_of
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.load import LoadCheck
from gputwin.simulation.result import SimulationResult
from gputwin.studies.validation.threeway import compare
from gputwin.traces.dataset import Trace
from gputwin.traces.describe import Description
from gputwin.traces.lifetimes import Window, observed
from gputwin.traces.measures import ARRIVAL
from tests.consistency.reference import Life, lives

T = TypeVar("T")
DLRM, OPENB, PAI = "alibaba_v2025_dlrm", "alibaba_v2023_openb", "alibaba_v2020_pai"
SPOT, PHILLY = "alibaba_v2026_spot", "philly"
MOST_TASKS = 4_000
"""Longer traces are cut to their first tasks, but for the two whose figures are written down."""
REAL: dict[str, tuple[str, ...]] = {
    "dlrm": (DLRM,),
    "thetagpu": ("thetagpu",),
    "openb": (f"{OPENB}/openb_pod_list_default.csv.gz", f"{OPENB}/openb_node_list_all_node.csv"),
    "openb-models": (f"{OPENB}/openb_pod_list_gpuspec33.csv.gz", f"{OPENB}/openb_node_list_gpu_node.csv"),
    "openb-timeless": (f"{OPENB}/openb_pod_list_multigpu20.csv.gz",),
    "pai-joined": (f"{PAI}/pai_joined_1000_sample.csv.gz",),
    "pai-instances": (f"{PAI}/pai_instance_table_tail_sample.csv.gz", f"{PAI}/pai_machine_spec.csv.gz"),
    "spot": (f"{SPOT}/derived_longest_jobs_top200.csv", f"{SPOT}/node_info_df.csv.gz"),
    "philly": (f"{PHILLY}/philly_jobs_by_vc.csv.gz",),
    "philly-attempts": (f"{PHILLY}/philly_attempts_run_times.csv.gz",),
    "philly-runtimes": (f"{PHILLY}/philly_runtime.csv.gz",),
}
WHOLE = ("dlrm", "thetagpu")
GENERATED = ("pai2020", "openb2023", "dlrm2025", "philly")
_GENERATED_JOBS = 2_000


def open_real(name: str, folder: Path) -> Trace:
    """Return a real trace, cut to its first tasks where it is long."""
    trace = gputwin.ingest([folder / part for part in REAL[name]])
    if name in WHOLE or trace.tasks.height <= MOST_TASKS:
        return trace
    arrivals = trace.tasks.select(ARRIVAL).to_series().drop_nulls().sort()
    if arrivals.len() <= MOST_TASKS:
        return Trace.from_frames({"tasks": trace.tasks.head(MOST_TASKS), "nodes": trace.nodes}, trace.meta)
    return trace.between(-math.inf, float(arrivals[MOST_TASKS]))


def open_generated(name: str) -> Trace:
    """Return a small trace of a generator."""
    return gputwin.open_trace(f"synthetic:{name}?jobs={_GENERATED_JOBS}&seed=7")


@dataclass(frozen=True)
class Seen:
    """A trace and what the verbs make of it, on a cluster with room for everything at once."""

    trace: Trace

    @cached_property
    def window(self) -> Window:
        """Return the trace's window."""
        return observed(self.trace.tasks)

    @cached_property
    def lives(self) -> list[Life]:
        """Return the tasks' lives, worked out one by one."""
        return lives(self.trace.tasks, self.window)

    @cached_property
    def cluster(self) -> Cluster:
        """Return a cluster on which nobody ever waits."""
        tasks = self.trace.tasks
        devices = max(int(tasks["gpu_count"].max() or 0), 8)  # type: ignore[call-overload]
        gang = int(tasks["instances"].max() or 1)  # type: ignore[call-overload]
        at_once = int(tasks["instances"].sum())
        return Cluster("room for all", (NodeGroup("node", max(min(at_once, 9_000), gang), devices),))

    @cached_property
    def description(self) -> Description:
        """Return what `describe` says."""
        return gputwin.describe(self.trace)

    @cached_property
    def check(self) -> LoadCheck:
        """Return what `check` says."""
        return gputwin.check(self.trace, self.cluster)

    @cached_property
    def analysis(self) -> Analysis:
        """Return what `analyze` says."""
        return gputwin.analyze(self.trace)

    @cached_property
    def simulation(self) -> SimulationResult | None:
        """Return what `simulate` says; None where there is nothing to simulate."""
        return _or_none(lambda: gputwin.simulate(self.trace, self.cluster, backfill="greedy"))

    @cached_property
    def queueing(self) -> dict[str, Any] | None:
        """Return what `queueing` says; None where no jobs that ask for GPUs arrive."""
        return _or_none(lambda: compare(self.trace, self.cluster, workers=1).to_json())

    @cached_property
    def demand(self) -> DemandSeries | None:
        """Return the series that `forecast --target in-force` is of; None where no task has a time."""
        wide = max(self.window.seconds / 4_000, 1.0)
        return _or_none(lambda: demand(self.trace, "in-force", bin_seconds=wide, resources=("gpu", "cpu")))

    @cached_property
    def report(self) -> tuple[Section, ...]:
        """Return the sections of `report`."""
        return sections_of(ReportInput.of(self.trace, check=self.check, cluster=self.cluster, analysis=self.analysis))

    def card(self, label: str) -> str | None:
        """Return what a card of the report's overview shows."""
        (cards,) = [part for part in self.report[0].parts if isinstance(part, Cards)]
        return next((card.value for card in cards.cards if card.label == label), None)

    def note(self, label: str) -> str | None:
        """Return what stands below a card of the report's overview."""
        (cards,) = [part for part in self.report[0].parts if isinstance(part, Cards)]
        return next((card.note for card in cards.cards if card.label == label), None)

    def table(self, topic: str, name: str) -> pl.DataFrame | None:
        """Return a table of the analysis."""
        return self.analysis.table(topic, name)


def _or_none(make: Callable[[], T]) -> T | None:
    try:
        return make()
    except UserError:
        return None
