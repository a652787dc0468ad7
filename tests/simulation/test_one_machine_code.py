"""Every scenario hands the engine arrays of the same types: other types would compile all of it once more."""

from __future__ import annotations

from typing import Any

import numba
import polars as pl
import pytest

import gputwin
from gputwin.simulation import run as runs
from gputwin.simulation.engine.world import World
from gputwin.traces.dataset import Trace, TraceMeta

SCENARIOS: dict[str, dict[str, Any]] = {
    "easy": {"backfill": "easy"},
    "conservative": {"backfill": "conservative"},
    "slurm": {"order": {"name": "slurm-multifactor", "parameters": {"half_life": 0, "period": 10}}},
    "fair share": {"fairness": {"policy": {"name": "fair-share", "parameters": {"half_life": 3600}}}},
    "drf": {"fairness": {"policy": "drf", "tenants": {"a": {"weight": 2, "gpus": 1}}}},
    "hdrf": {"fairness": {"policy": "hdrf", "tenants": {"a": {"group": "x"}}, "groups": {"x": 2}}},
    "lottery": {"fairness": "lottery"},
    "themis": {"fairness": "themis"},
    "reclaim": {"fairness": "quota:reclaim=1"},
    "time slices": {"sharing": "time-slice:most=4"},
    "interference": {"interference": "built-in"},
    "srtf": {"order": "srtf"},
    "preemption": {"order": "priority:aging=0", "preemption": "kube-scheduler"},
    "speed": {"speed": {"policy": "gpu-model"}},
    "elastic": {"elasticity": {"policy": "afs", "curves": "drawn"}},
    "locality": {"locality": {"node_seconds": 60}},
    "power cap": {"power": {"node_watts": 3000}},
    "planner": {"planner": {"policy": "max-min-speed", "round_seconds": 360}},
}


class _SeenError(Exception):
    """The engine was about to run."""


@pytest.fixture
def types_of(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that returns the types of what the engine would be given, by field."""
    tasks = pl.DataFrame(
        {
            "job_id": ["0", "1", "2"],
            "submit_time": [0.0, 1.0, 2.0],
            "duration_seconds": [5.0] * 3,
            "gpu_count": [1] * 3,
            "gpu_milli": [1000] * 3,
            "user": ["a", "b", "a"],
        }
    )
    seen: list[Any] = []

    def note(self: Any, world: World, *others: Any) -> None:
        seen.append(numba.typeof(world))
        raise _SeenError

    monkeypatch.setattr(runs.Stepper, "__init__", note)

    def of(scenario: dict[str, Any]) -> dict[str, str]:
        with pytest.raises(_SeenError):
            gputwin.simulate(Trace.from_frames({"tasks": tasks}, TraceMeta("by hand")), "homogeneous:2x2", **scenario)
        return _flat(seen.pop(), "world")

    return of


def _flat(kind: Any, path: str) -> dict[str, str]:
    if hasattr(kind, "fields"):
        parts = zip(kind.fields, kind.types, strict=True)
        return {p: t for name, part in parts for p, t in _flat(part, f"{path}.{name}").items()}
    return {path: str(kind)}


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_engine_is_not_compiled_anew(types_of: Any, name: str) -> None:
    plain, found = types_of({}), types_of(SCENARIOS[name])
    assert {path: kind for path, kind in found.items() if plain[path] != kind} == {}
