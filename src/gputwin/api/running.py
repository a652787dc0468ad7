"""What if: runs, why jobs waited in them, who waits for whom, and runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gputwin.api.inputs import PathText, cluster_of, names_of, public, run_of, trace_of
from gputwin.core.errors import UserError

if TYPE_CHECKING:
    from gputwin.simulation.cluster import Cluster
    from gputwin.simulation.explanation import Explanation
    from gputwin.simulation.result import SimulationResult
    from gputwin.simulation.scenario import Scenario
    from gputwin.simulation.waits_by_tenant import TenantView
    from gputwin.studies.comparison import Comparison
    from gputwin.traces.dataset import Trace


@public
def simulate(
    trace: Trace | PathText | Sequence[PathText] | Scenario,
    cluster: Cluster | PathText | None = None,
    **rules: Any,
) -> SimulationResult:
    """Return what would have happened to the trace's jobs on this cluster; a scenario (file) says all by itself.

    `rules`: `order`, `backfill`, `placement`, `share`, `predict`, `seed`, `sla_wait_seconds` and the others of
    `gputwin.simulation.simulate.simulate`.

    >>> import gputwin
    >>> run = gputwin.simulate("synthetic:pai2020?jobs=200", "homogeneous:4x8", backfill="greedy")
    >>> run.summary["jobs"]
    200
    """
    from gputwin.simulation.cluster import Cluster
    from gputwin.simulation.scenario import FILE_ENDINGS, Scenario, read_scenario
    from gputwin.simulation.simulate import simulate as simulated
    from gputwin.traces.dataset import Trace

    if isinstance(trace, str | PathLike) and str(trace).endswith(FILE_ENDINGS):
        trace = read_scenario(Path(trace))
    if isinstance(trace, Scenario):
        return simulated(trace)
    # By their names the scenario of the run finds its inputs again.
    named = trace if isinstance(trace, Trace) else names_of(trace)
    return simulated(named, cluster if cluster is None or isinstance(cluster, Cluster) else str(cluster), **rules)


@public
def explain(run: SimulationResult | PathText, job_id: str) -> Explanation:
    """Return why a job of a run waited, who held what it needed, and when it could have started otherwise.

    >>> import gputwin
    >>> run = gputwin.simulate("synthetic:pai2020?jobs=200", "homogeneous:4x8", backfill="greedy")
    >>> gputwin.explain(run, run.jobs["job_id"][0]).job_id == run.jobs["job_id"][0]
    True
    """
    from gputwin.simulation.explain import explain as explained

    return explained(run_of(run), job_id)


@public
def tenants(run: SimulationResult | PathText) -> TenantView:
    """Return who waits, and who holds what others wait for, per tenant of a run.

    >>> import gputwin
    >>> run = gputwin.simulate("synthetic:pai2020?jobs=200", "homogeneous:4x8", backfill="greedy")
    >>> sorted(gputwin.tenants(run).blocking.columns)
    ['gpu_hours', 'holding', 'waiting']
    """
    from gputwin.simulation.waits_by_tenant import by_tenant

    return by_tenant(run_of(run))


@public
def compare(*runs: SimulationResult | PathText, seed: int = 0) -> Comparison:
    """Return runs of the same jobs side by side, with intervals of their differences; the first is the baseline.

    >>> import gputwin
    >>> jobs = gputwin.open_trace("synthetic:pai2020?jobs=200")
    >>> fifo, greedy = (gputwin.simulate(jobs, "homogeneous:4x8", backfill=b) for b in ("strict", "greedy"))
    >>> gputwin.compare(fifo, greedy).labels
    ('strict', 'greedy')
    """
    from gputwin.studies.comparison import compare as compared
    from gputwin.studies.comparison import label_runs

    if len(runs) < 2:
        raise UserError("a comparison needs at least two runs; give another")
    return compared(label_runs([run_of(run) for run in runs]), seed=seed)


@public
def report(
    trace: Trace | PathText | Sequence[PathText],
    path: PathText,
    *,
    cluster: Cluster | PathText | None = None,
    runs: Sequence[SimulationResult | PathText] = (),
    title: str | None = None,
) -> Path:
    """Write a report of a trace, and of runs of it side by side, as one HTML file; return its path.

    >>> import gputwin, pathlib, tempfile
    >>> page = pathlib.Path(tempfile.mkdtemp()) / "report.html"
    >>> gputwin.report("synthetic:pai2020?jobs=100", page).name
    'report.html'
    """
    from gputwin.report import fidelity_of, write_report
    from gputwin.simulation.load import check_load
    from gputwin.studies.comparison import compare as compared
    from gputwin.studies.comparison import label_runs

    opened = trace_of(trace)
    target = None
    if cluster is not None or not opened.nodes.is_empty():
        target = cluster_of(cluster, opened)
    return write_report(
        Path(path),
        opened,
        check=check_load(opened, target) if target is not None and not opened.tasks.is_empty() else None,
        cluster=target if cluster is not None else None,
        fidelity=fidelity_of(opened),
        title=title,
        compared=compared(label_runs([run_of(run) for run in runs])) if runs else None,
    )
