"""The public functions: each takes a path, a `Path`, a spec such as `synthetic:pai2020?jobs=1000`, or an opened object.

Errors are written for Python: they name arguments where the command line names options.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from gputwin.core.errors import UserError

if TYPE_CHECKING:
    from gputwin.analysis import Analysis
    from gputwin.forecasting.study import ForecastStudy
    from gputwin.optimization.capacity.plan import Plan
    from gputwin.profiling.predict import Predictions
    from gputwin.profiling.profile import Profile
    from gputwin.simulation.cluster import Cluster
    from gputwin.simulation.explain import Explanation
    from gputwin.simulation.load import LoadCheck
    from gputwin.simulation.result import SimulationResult
    from gputwin.simulation.scenario import Scenario
    from gputwin.simulation.tenants import TenantView
    from gputwin.studies.comparison import Comparison
    from gputwin.studies.validation.threeway import ThreeWay
    from gputwin.traces.dataset import Trace
    from gputwin.traces.describe import Description
    from gputwin.traces.synthetic.generator import Synthetic

P = ParamSpec("P")
R = TypeVar("R")
PathText = str | PathLike[str]
_FLAG = re.compile(r"--([a-z][a-z-]*)(?: (?=')|\b)")
_SWITCHES = frozenset({"lenient", "strict", "guess", "neural", "what-if"})
_COMMAND = re.compile(r"\bgputwin ([a-z]+)(?: -o [A-Z]+)?(?![\w/])")


def in_python(text: str) -> str:
    """Return a message with options and commands of the command line as arguments and functions of Python."""

    def argument(match: re.Match[str]) -> str:
        name = match[1]
        return f"{name.replace('-', '_')}={'True' if name in _SWITCHES else ''}"

    return _COMMAND.sub(lambda m: f"gputwin.{m[1]}(…)", _FLAG.sub(argument, text))


def _public(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with errors that speak of Python."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except UserError as error:
            error.args = (in_python(str(error)),)
            raise

    return wrapper


def _trace(trace: Trace | PathText | Sequence[PathText]) -> Trace:
    from gputwin.traces.dataset import Trace
    from gputwin.traces.locate import open_trace as opened

    if isinstance(trace, Trace):
        return trace
    names = [trace] if isinstance(trace, str | PathLike) else list(trace)
    return opened([str(name) for name in names])


def _cluster(cluster: Cluster | PathText | None, trace: Trace) -> Cluster:
    from gputwin.simulation.cluster import Cluster, cluster_for

    return cluster if isinstance(cluster, Cluster) else cluster_for(trace, None if cluster is None else str(cluster))


def _run(run: SimulationResult | PathText) -> SimulationResult:
    from gputwin.simulation.result import SimulationResult

    return run if isinstance(run, SimulationResult) else SimulationResult.open(Path(run))


@_public
def ingest(
    paths: PathText | Sequence[PathText],
    into: PathText | None = None,
    *,
    format: str | None = None,
    map: str | Mapping[str, str] | None = None,
    guess: bool = False,
    zone: str | None = None,
    table: str | None = None,
    usage: PathText | Sequence[PathText] = (),
    strict: bool = False,
    lenient: bool = False,
) -> Trace:
    """Return the trace of raw files, saved in the directory `into` where one is given.

    `map` says what the columns of a table of your own mean; `guess` proposes that and uses it unless it is unclear.

    >>> import gputwin, pathlib, tempfile
    >>> log = pathlib.Path(tempfile.mkdtemp()) / "jobs.csv"
    >>> _ = log.write_text("id,team,at,took,gpus\\n1,vision,2024-03-01T10:00:00Z,2.5h,8\\n")
    >>> trace = gputwin.ingest(log, map="job_id=id,tenant=team,submit=at,duration=took,gpus=gpus")
    >>> trace.tasks.select("tenant", "duration_seconds", "gpu_count").row(0)
    ('vision', 9000.0, 8)
    """
    from gputwin.traces.ingest import Options
    from gputwin.traces.ingest import ingest as read
    from gputwin.traces.readers.mapped import parse_map

    text = ",".join(f"{field}={column}" for field, column in map.items()) if isinstance(map, Mapping) else map
    mapping = None if text is None else parse_map(text, table or "tasks", zone)
    measured = [usage] if isinstance(usage, str | PathLike) else usage
    options = Options(format, strict, lenient, mapping, guess, zone, table, tuple(Path(p) for p in measured))
    given = [paths] if isinstance(paths, str | PathLike) else paths
    return read([Path(p) for p in given], None if into is None else Path(into), options)


@_public
def open_trace(trace: Trace | PathText | Sequence[PathText], *, format: str | None = None) -> Trace:
    """Return a trace: a saved directory, `synthetic:NAME?jobs=N&seed=S`, or raw files of a known format.

    >>> import gputwin
    >>> gputwin.open_trace("synthetic:pai2020?jobs=100").meta.tables["tasks"] >= 100
    True
    """
    from gputwin.traces.locate import open_trace as opened

    if format is None:
        return _trace(trace)
    names = [trace] if isinstance(trace, str | PathLike) else list(trace)  # type: ignore[arg-type]
    return opened([str(name) for name in names], format)


@_public
def open_cluster(cluster: Cluster | PathText) -> Cluster:
    """Return a cluster: a YAML spec, a node file, or a built-in such as `homogeneous:10x8`.

    >>> import gputwin
    >>> gputwin.open_cluster("homogeneous:10x8").gpu_count
    80
    """
    from gputwin.simulation.cluster import Cluster
    from gputwin.simulation.cluster import open_cluster as opened

    return cluster if isinstance(cluster, Cluster) else opened(str(cluster))


@_public
def generate(name: str, *, jobs: int = 10_000, seed: int = 0) -> Synthetic:
    """Return a synthetic trace and cluster like a published one; `.to_trace()` is the trace.

    >>> import gputwin
    >>> gputwin.generate("philly", jobs=50).to_trace().tasks["job_id"].n_unique()
    50
    """
    from gputwin.traces.synthetic import generate as made

    return made(name, jobs=jobs, seed=seed)


@_public
def describe(trace: Trace | PathText | Sequence[PathText]) -> Description:
    """Return what is in a trace: counts, span, and how waits and runtimes spread.

    >>> import gputwin
    >>> gputwin.describe("synthetic:pai2020?jobs=100").jobs
    100
    """
    from gputwin.traces.describe import describe as described

    return described(_trace(trace))


@_public
def analyze(trace: Trace | PathText | Sequence[PathText], *, seed: int = 0) -> Analysis:
    """Return everything the trace shows, by topic: tables and sentences.

    >>> import gputwin
    >>> analysis = gputwin.analyze("synthetic:pai2020?jobs=200")
    >>> analysis.table("delays", "wait")["count"][0] > 0
    True
    """
    from gputwin.analysis import analyze as analyzed

    return analyzed(_trace(trace), seed=seed)


@_public
def check(trace: Trace | PathText | Sequence[PathText], cluster: Cluster | PathText | None = None) -> LoadCheck:
    """Return whether the cluster can hold the trace: load against capacity, and tasks that never fit.

    >>> import gputwin
    >>> gputwin.check("synthetic:pai2020?jobs=200", "homogeneous:2x8").loads[0].capacity
    16000
    """
    from gputwin.simulation.load import check_load

    opened = _trace(trace)
    return check_load(opened, _cluster(cluster, opened))


@_public
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
    from gputwin.simulation.scenario import FILE_ENDINGS, Scenario, read_scenario
    from gputwin.simulation.simulate import simulate as simulated

    if isinstance(trace, str | PathLike) and str(trace).endswith(FILE_ENDINGS):
        trace = read_scenario(Path(trace))
    if isinstance(trace, Scenario):
        return simulated(trace)
    opened = _trace(trace)
    return simulated(opened, _cluster(cluster, opened), **rules)


@_public
def explain(run: SimulationResult | PathText, job_id: str) -> Explanation:
    """Return why a job of a run waited, who held what it needed, and when it could have started otherwise.

    >>> import gputwin
    >>> run = gputwin.simulate("synthetic:pai2020?jobs=200", "homogeneous:4x8", backfill="greedy")
    >>> gputwin.explain(run, run.jobs["job_id"][0]).job_id == run.jobs["job_id"][0]
    True
    """
    from gputwin.simulation.explain import explain as explained

    return explained(_run(run), job_id)


@_public
def tenants(run: SimulationResult | PathText) -> TenantView:
    """Return who waits, and who holds what others wait for, per tenant of a run.

    >>> import gputwin
    >>> run = gputwin.simulate("synthetic:pai2020?jobs=200", "homogeneous:4x8", backfill="greedy")
    >>> sorted(gputwin.tenants(run).blocking.columns)
    ['gpu_hours', 'holding', 'waiting']
    """
    from gputwin.simulation.tenants import by_tenant

    return by_tenant(_run(run))


@_public
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
    return compared(label_runs([_run(run) for run in runs]), seed=seed)


@_public
def plan(
    trace: Trace | PathText | Sequence[PathText],
    cluster: Cluster | PathText | None = None,
    target: str = "p95_wait=600",
    **settings: Any,
) -> Plan:
    """Return the least number of such nodes that safely meets a wait target, in seconds.

    `settings`: `growth`, `confidence`, `by_model`, `what_if`, `seed`, `workers`, `scheduler`.

    >>> import gputwin
    >>> found = gputwin.plan("synthetic:pai2020?jobs=200", "homogeneous:4x8", "p95_wait=1h", workers=1)
    >>> found.answer.nodes > 0
    True
    """
    from gputwin.optimization.capacity.plan import plan as planned

    opened = _trace(trace)
    return planned(opened, _cluster(cluster, opened), target, **settings)


@_public
def queueing(
    trace: Trace | PathText | Sequence[PathText], cluster: Cluster | PathText | None = None, **settings: Any
) -> ThreeWay:
    """Return what queueing theory says beside simulation and trace, and which of its assumptions breaks.

    >>> import gputwin
    >>> gputwin.queueing("synthetic:pai2020?jobs=200", "homogeneous:4x8").gpus
    32
    """
    from gputwin.simulation.run import Scheduler
    from gputwin.studies.validation.threeway import compare as compared

    opened = _trace(trace)
    scheduler = settings.pop("scheduler", Scheduler())
    return compared(opened, _cluster(cluster, opened), scheduler, **settings)


@_public
def profile(trace: Trace | PathText | Sequence[PathText], **settings: Any) -> Profile:
    """Return job classes and a model of how long jobs run, tested in time order. `settings`: `models`, `seed`.

    >>> import gputwin
    >>> found = gputwin.profile("synthetic:pai2020?jobs=300", models=["group-median"])
    >>> found.chosen
    'group-median'
    """
    from gputwin.profiling.profile import profile as profiled

    return profiled(_trace(trace), **settings)


@_public
def predict(model: Profile | PathText, trace: Trace | PathText | Sequence[PathText]) -> Predictions:
    """Return how long the jobs of a trace will run, by a profile or a saved model; `simulate(predict=….frame)` takes it.

    >>> import gputwin
    >>> model = gputwin.profile("synthetic:pai2020?jobs=300", models=["group-median"])
    >>> gputwin.predict(model, "synthetic:pai2020?jobs=50&seed=1").frame["predicted_seconds"].min() > 0
    True
    """
    from gputwin.profiling.predict import predict_trace
    from gputwin.profiling.profile import Profile
    from gputwin.profiling.store import load

    saved = model.saved() if isinstance(model, Profile) else load(Path(model))
    return predict_trace(saved, _trace(trace))


@_public
def forecast(trace: Trace | PathText | Sequence[PathText], target: str = "arrivals", **settings: Any) -> ForecastStudy:
    """Return the demand of the next hours, backtested against the last value. `target`: `arrivals` or `in-force`.

    `settings`: `horizon_seconds`, `bin_seconds`, `resources`, `by`, `models`, `seed` and the others of
    `gputwin.forecasting.study.forecast`.

    >>> import gputwin
    >>> study = gputwin.forecast("synthetic:philly?jobs=2000", bin_seconds=3600, models=["mean", "naive"])
    >>> study.forecast.frame.height > 0
    True
    """
    from gputwin.forecasting.study import forecast as forecasted

    return forecasted(_trace(trace), target, **settings)


@_public
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

    opened = _trace(trace)
    target = None
    if cluster is not None or not opened.nodes.is_empty():
        target = _cluster(cluster, opened)
    return write_report(
        Path(path),
        opened,
        check=check_load(opened, target) if target is not None and not opened.tasks.is_empty() else None,
        cluster=target if cluster is not None else None,
        fidelity=fidelity_of(opened),
        title=title,
        compared=compared(label_runs([_run(run) for run in runs])) if runs else None,
    )
