"""What public functions take, and errors that speak of Python."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from gputwin.core.errors import UserError

if TYPE_CHECKING:
    from gputwin.simulation.cluster import Cluster
    from gputwin.simulation.result import SimulationResult
    from gputwin.traces.dataset import Trace

P = ParamSpec("P")
R = TypeVar("R")
PathText = str | PathLike[str]
_FLAG = re.compile(r"--([a-z][a-z-]*)(?: (?=')|\b)")
_SWITCHES = frozenset({"lenient", "strict", "guess", "neural", "what-if"})
_TABLE = re.compile(r" --table (\w+)")
_FORCE = re.compile(r", or (?:give|pass) --force\b")
_COMMAND = re.compile(r"\bgputwin ([a-z]+)(?: -o [A-Z]+)?(?![\w/])")


def in_python(text: str) -> str:
    """Return a message with options and commands of the command line as arguments and functions of Python."""

    def argument(match: re.Match[str]) -> str:
        name = match[1]
        return f"{name.replace('-', '_')}={'True' if name in _SWITCHES else ''}"

    # What is in the way is removed by hand: no function overwrites what it did not write.
    text = _TABLE.sub(r", table='\1'", _FORCE.sub("", text))
    return _COMMAND.sub(lambda m: f"gputwin.{m[1]}(…)", _FLAG.sub(argument, text))


def public(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with errors that speak of Python."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except UserError as error:
            error.args = (in_python(str(error)),)
            raise

    return wrapper


def trace_of(trace: Trace | PathText | Sequence[PathText]) -> Trace:
    """Return the trace that a path, a spec or an object names."""
    from gputwin.traces.dataset import Trace
    from gputwin.traces.locate import open_trace as opened

    if isinstance(trace, Trace):
        return trace
    return opened(names_of(trace))


def names_of(trace: PathText | Sequence[PathText]) -> str | list[str]:
    """Return the path or spec as text; of several raw files all paths."""
    return str(trace) if isinstance(trace, str | PathLike) else [str(name) for name in trace]


def cluster_of(cluster: Cluster | PathText | None, trace: Trace) -> Cluster:
    """Return the cluster that a path, a spec or an object names; the trace's own nodes for None."""
    from gputwin.simulation.cluster import Cluster, cluster_for

    return cluster if isinstance(cluster, Cluster) else cluster_for(trace, None if cluster is None else str(cluster))


def run_of(run: SimulationResult | PathText) -> SimulationResult:
    """Return the run that a path or an object names."""
    from gputwin.simulation.result import SimulationResult

    return run if isinstance(run, SimulationResult) else SimulationResult.open(Path(run))
