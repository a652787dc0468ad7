"""Reading and looking: from raw files to a trace, and what it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from gputwin.api.inputs import PathText, cluster_of, public, trace_of

if TYPE_CHECKING:
    from gputwin.analysis import Analysis
    from gputwin.simulation.cluster import Cluster
    from gputwin.simulation.load import LoadCheck
    from gputwin.traces.dataset import Trace
    from gputwin.traces.describe import Description
    from gputwin.traces.synthetic.generator import Synthetic


@public
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


@public
def open_trace(trace: Trace | PathText | Sequence[PathText], *, format: str | None = None) -> Trace:
    """Return a trace: a saved directory, `synthetic:NAME?jobs=N&seed=S`, or raw files of a known format.

    >>> import gputwin
    >>> gputwin.open_trace("synthetic:pai2020?jobs=100").meta.tables["tasks"] >= 100
    True
    """
    from gputwin.traces.locate import open_trace as opened

    if format is None:
        return trace_of(trace)
    names = [trace] if isinstance(trace, str | PathLike) else list(trace)  # type: ignore[arg-type]
    return opened([str(name) for name in names], format)


@public
def open_cluster(cluster: Cluster | PathText) -> Cluster:
    """Return a cluster: a YAML spec, a node file, or a built-in such as `homogeneous:10x8`.

    >>> import gputwin
    >>> gputwin.open_cluster("homogeneous:10x8").gpu_count
    80
    """
    from gputwin.simulation.cluster import Cluster
    from gputwin.simulation.cluster import open_cluster as opened

    return cluster if isinstance(cluster, Cluster) else opened(str(cluster))


@public
def generate(name: str, *, jobs: int = 10_000, seed: int = 0) -> Synthetic:
    """Return a synthetic trace and cluster like a published one; `.to_trace()` is the trace.

    >>> import gputwin
    >>> gputwin.generate("philly", jobs=50).to_trace().tasks["job_id"].n_unique()
    50
    """
    from gputwin.traces.synthetic import generate as made

    return made(name, jobs=jobs, seed=seed)


@public
def describe(trace: Trace | PathText | Sequence[PathText]) -> Description:
    """Return what is in a trace: counts, span, and how waits and runtimes spread.

    >>> import gputwin
    >>> gputwin.describe("synthetic:pai2020?jobs=100").jobs
    100
    """
    from gputwin.traces.describe import describe as described

    return described(trace_of(trace))


@public
def analyze(trace: Trace | PathText | Sequence[PathText], *, seed: int = 0) -> Analysis:
    """Return everything the trace shows, by topic: tables and sentences.

    >>> import gputwin
    >>> analysis = gputwin.analyze("synthetic:pai2020?jobs=200")
    >>> analysis.table("delays", "wait")["count"][0] > 0
    True
    """
    from gputwin.analysis import analyze as analyzed

    return analyzed(trace_of(trace), seed=seed)


@public
def check(trace: Trace | PathText | Sequence[PathText], cluster: Cluster | PathText | None = None) -> LoadCheck:
    """Return whether the cluster can hold the trace: load against capacity, and tasks that never fit.

    >>> import gputwin
    >>> gputwin.check("synthetic:pai2020?jobs=200", "homogeneous:2x8").loads[0].capacity
    16000
    """
    from gputwin.simulation.load import check_load

    opened = trace_of(trace)
    return check_load(opened, cluster_of(cluster, opened))
