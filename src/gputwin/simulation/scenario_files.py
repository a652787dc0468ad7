"""The files that a scenario names, and their names as seen from another folder.

A name in a saved scenario is relative to the folder of its file; in memory it is relative to the working directory.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gputwin.core.errors import InputError
from gputwin.simulation.built_in_clusters import BUILT_IN as CLUSTERS
from gputwin.simulation.interference.table import BUILT_IN as TABLE
from gputwin.traces.sources import sha256

if TYPE_CHECKING:
    from gputwin.simulation.scenario import Scenario

RULES = ("oracle", "requested")
"""Predictions that are no files."""
_IN_PARTS = (("interference", "table"), ("fairness", "queues"), ("faults", "log"), ("power", "carbon"))
_NO_FILES = {"cluster": tuple(CLUSTERS), "prediction": RULES, "interference.table": (TABLE,)}


def files_of(scenario: Scenario) -> dict[str, tuple[str, ...]]:
    """Return the names of the files that the rules of a scenario come from, by the dotted path of the field."""
    found: dict[str, tuple[str, ...]] = {"policies": scenario.policies} if scenario.policies else {}
    if scenario.prediction not in RULES:
        found["prediction"] = (scenario.prediction,)
    return found | {path: (name,) for path, name in _files_in_parts(scenario)}


def digest_of(name: str, field: str) -> str:
    """Return the digest of a file, or of all files of a folder with their names; `field` names it in an error."""
    path = Path(name)
    try:
        if not path.is_dir():
            return sha256(path)
        files = sorted(p for p in path.rglob("*") if p.is_file())
        lines = "".join(f"{p.relative_to(path).as_posix()}:{sha256(p)}\n" for p in files)
    except OSError as error:
        problem = f"'{path}' cannot be read ({error.strerror})"
        raise InputError(problem, field=field, remedy="name a file or a folder that is there") from None
    return hashlib.sha256(lines.encode()).hexdigest()


def seen_from_here(scenario: Scenario, folder: Path) -> Scenario:
    """Return the scenario of a file in `folder` with names that are right in the working directory.

    What is not in that folder keeps its name: a built-in, or a file named as seen from here.
    """

    return renamed(scenario, lambda name: name_from_here(name, folder))


def name_from_here(name: str, folder: Path) -> str:
    """Return the name of a file as seen from the working directory, given the one that a file in `folder` uses."""
    return os.path.normpath(folder / name) if (folder / name).exists() else name


def seen_from(scenario: Scenario, folder: Path) -> Scenario:
    """Return the scenario with names that are right in a file in `folder`; absolute names stay."""

    def named(name: str) -> str:
        there = Path(name)
        return os.path.relpath(there, folder) if not there.is_absolute() and there.exists() else name

    return renamed(scenario, named)


def renamed(scenario: Scenario, rename: Callable[[str], str]) -> Scenario:
    """Return the scenario with `rename` of the names of its files; what is no file in its field keeps its name."""

    def of(field: str, name: str) -> str:
        return name if name in _NO_FILES.get(field, ()) else rename(name)

    trace = scenario.trace
    fields: dict[str, Any] = {
        "trace": rename(trace) if isinstance(trace, str) else tuple(map(rename, trace)),
        "policies": tuple(map(rename, scenario.policies)),
        "prediction": of("prediction", scenario.prediction),
    }
    if isinstance(scenario.cluster, str):
        fields["cluster"] = of("cluster", scenario.cluster)
    for path, name in _files_in_parts(scenario):
        part, field = path.split(".")
        fields[part] = getattr(scenario, part).model_copy(update={field: of(path, name)})
    return scenario.model_copy(update=fields)


def _files_in_parts(scenario: Scenario) -> Iterator[tuple[str, str]]:
    for part, field in _IN_PARTS:
        name = getattr(getattr(scenario, part), field, None)
        if name is not None and name not in _NO_FILES.get(f"{part}.{field}", ()) and not _is_number(name):
            yield f"{part}.{field}", name


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
