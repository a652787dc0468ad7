"""gputwin: a digital twin of a GPU cluster. The names below are the public interface; all load on first use."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gputwin.core.version import VERSION

__version__ = VERSION
_API = "gputwin.api."
_PUBLIC = {
    "Cluster": "gputwin.simulation.cluster",
    "GputwinError": "gputwin.core.errors",
    "InputError": "gputwin.core.errors",
    "NodeGroup": "gputwin.simulation.cluster",
    "Scenario": "gputwin.simulation.scenario",
    "SimulationResult": "gputwin.simulation.result",
    "Trace": "gputwin.traces.dataset",
    "UserError": "gputwin.core.errors",
    **dict.fromkeys(
        ("analyze", "check", "describe", "generate", "ingest", "open_cluster", "open_trace"), _API + "reading"
    ),
    **dict.fromkeys(("compare", "explain", "report", "simulate", "tenants"), _API + "running"),
    **dict.fromkeys(("forecast", "plan", "predict", "profile", "queueing"), _API + "predicting"),
}
__all__ = [
    "Cluster",
    "GputwinError",
    "InputError",
    "NodeGroup",
    "Scenario",
    "SimulationResult",
    "Trace",
    "UserError",
    "analyze",
    "check",
    "compare",
    "describe",
    "explain",
    "forecast",
    "generate",
    "ingest",
    "open_cluster",
    "open_trace",
    "plan",
    "predict",
    "profile",
    "queueing",
    "report",
    "simulate",
    "tenants",
]

if TYPE_CHECKING:
    from gputwin.api.predicting import forecast, plan, predict, profile, queueing
    from gputwin.api.reading import analyze, check, describe, generate, ingest, open_cluster, open_trace
    from gputwin.api.running import compare, explain, report, simulate, tenants
    from gputwin.core.errors import GputwinError, InputError, UserError
    from gputwin.simulation.cluster import Cluster, NodeGroup
    from gputwin.simulation.result import SimulationResult
    from gputwin.simulation.scenario import Scenario
    from gputwin.traces.dataset import Trace


def __getattr__(name: str) -> Any:
    """Return a public name, importing its module when it is first used."""
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'gputwin' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


class _Package(ModuleType):
    """This package: `queueing` and `report` are its functions, also once the packages of these names are imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _PUBLIC and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
