"""gputwin: a digital twin of a GPU cluster. The names below are the public interface; all load on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PUBLIC = {
    "Analysis": "gputwin.analysis",
    "Cluster": "gputwin.simulation.cluster",
    "Forecast": "gputwin.forecasting.frame",
    "GputwinError": "gputwin.core.errors",
    "InputError": "gputwin.core.errors",
    "NodeGroup": "gputwin.simulation.cluster",
    "Scenario": "gputwin.simulation.scenario",
    "SimulationResult": "gputwin.simulation.result",
    "Trace": "gputwin.traces.dataset",
    "UserError": "gputwin.core.errors",
    "analyze": "gputwin.analysis",
    "check_load": "gputwin.simulation.load",
    "describe": "gputwin.traces.describe",
    "explain": "gputwin.simulation.explain",
    "forecast": "gputwin.forecasting.study",
    "generate": "gputwin.traces.synthetic",
    "ingest": "gputwin.traces.ingest",
    "open_cluster": "gputwin.simulation.cluster",
    "open_trace": "gputwin.traces.locate",
    "plan": "gputwin.optimization.capacity.plan",
    "profile": "gputwin.profiling.profile",
    "simulate": "gputwin.simulation.simulate",
    "write_report": "gputwin.report",
}
__all__ = [
    "Analysis",
    "Cluster",
    "Forecast",
    "GputwinError",
    "InputError",
    "NodeGroup",
    "Scenario",
    "SimulationResult",
    "Trace",
    "UserError",
    "analyze",
    "check_load",
    "describe",
    "explain",
    "forecast",
    "generate",
    "ingest",
    "open_cluster",
    "open_trace",
    "plan",
    "profile",
    "simulate",
    "write_report",
]

if TYPE_CHECKING:
    from gputwin.analysis import Analysis, analyze
    from gputwin.core.errors import GputwinError, InputError, UserError
    from gputwin.forecasting.frame import Forecast
    from gputwin.forecasting.study import forecast
    from gputwin.optimization.capacity.plan import plan
    from gputwin.profiling.profile import profile
    from gputwin.report import write_report
    from gputwin.simulation.cluster import Cluster, NodeGroup, open_cluster
    from gputwin.simulation.explain import explain
    from gputwin.simulation.load import check_load
    from gputwin.simulation.result import SimulationResult
    from gputwin.simulation.simulate import simulate
    from gputwin.traces.dataset import Trace
    from gputwin.traces.describe import describe
    from gputwin.traces.ingest import ingest
    from gputwin.traces.locate import open_trace
    from gputwin.traces.synthetic import generate


def __getattr__(name: str) -> Any:
    """Return a public name, importing its module when it is first used."""
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'gputwin' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
