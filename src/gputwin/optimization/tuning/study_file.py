"""A tuning study as its user writes it: a YAML file, with every mistake told by its field."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from gputwin.core.errors import InputError
from gputwin.optimization.tuning.bandits import ALGORITHMS
from gputwin.optimization.tuning.runs import METRICS, PRESENT, Study
from gputwin.simulation.scenario import Scenario, scenario_of
from gputwin.simulation.scenario_files import seen_from_here

_FIELDS = {"trace", "cluster", "windows", "held_out", "present", "configurations", "objectives", "budget", "algorithm"}
_TUNABLE = tuple(
    f for f in Scenario.model_fields if f not in ("trace", "format", "trace_fingerprint", "slice", "cluster", "seed")
)
"""A configuration may say anything of a scenario but what jobs run on what."""


def read_file(path: Path) -> dict[str, Any]:
    """Return what a study file says; it has a trace."""
    import yaml

    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(error.strerror or str(error), file=path, remedy="check the path") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"not YAML ({str(error).splitlines()[0]})", file=path, remedy="see docs/optimization.md"
        ) from None
    if not isinstance(data, dict) or not isinstance(data.get("trace"), str):
        raise InputError("no study", file=path, field="trace", remedy="it needs a trace; see docs/optimization.md")
    return data


def whole_numbers(path: Path, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the windows and budgets that a study file gives."""
    numbers = {k: data[k] for k in ("windows", "held_out", "budget") if data.get(k) is not None}
    for key, value in numbers.items():
        if not isinstance(value, int) or value < 1:
            raise InputError(f"'{value}' is no whole number above 0", file=path, field=key, remedy="give one")
    return numbers


def read_study(path: Path) -> Study[Scenario]:
    """Return the study in a YAML file; lists under `configurations` are combined."""
    data = read_file(path)
    for key in data:
        if key not in _FIELDS:
            raise InputError("unknown field", file=path, field=str(key), remedy=f"known: {', '.join(sorted(_FIELDS))}")
    grid = data.get("configurations") or {}
    if not isinstance(grid, dict) or not grid or any(k not in _TUNABLE for k in grid):
        remedy = f"give lists of {', '.join(_TUNABLE)}"
        raise InputError("no configurations", file=path, field="configurations", remedy=remedy)
    present = data.get("present") or {}
    if not isinstance(present, dict) or any(k not in _TUNABLE for k in present):
        raise InputError("unknown rule", file=path, field="present", remedy=f"known: {', '.join(_TUNABLE)}")
    usual = scenario_of({"trace": data["trace"], "cluster": data.get("cluster"), **PRESENT}, path)
    lists = {k: v if isinstance(v, list) else [v] for k, v in grid.items()}
    arms = tuple(
        seen_from_here(scenario_of({**dict(usual), **dict(zip(lists, values, strict=True))}, path), path.parent)
        for values in product(*lists.values())
    )
    objectives = data.get("objectives") or {"mean_wait": 1.0}
    if not isinstance(objectives, dict) or any(k not in METRICS for k in objectives):
        remedy = f"known: {', '.join(METRICS)}"
        raise InputError("unknown objective", file=path, field="objectives", remedy=remedy)
    numbers = whole_numbers(path, data)
    algorithm = data.get("algorithm", "ucb")
    if algorithm not in ALGORITHMS:
        remedy = f"known: {', '.join(ALGORITHMS)}"
        raise InputError(f"unknown algorithm '{algorithm}'", file=path, field="algorithm", remedy=remedy)
    return Study(
        seen_from_here(scenario_of({**dict(usual), **present}, path), path.parent),
        arms,
        {k: float(v) for k, v in objectives.items()},
        algorithm=algorithm,
        **numbers,
    )
