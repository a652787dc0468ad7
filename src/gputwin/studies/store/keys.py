"""What a run's result depends on, as a key: the scenario, the trace and files it names, and the code that runs it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import gputwin.simulation
from gputwin.core.errors import InputError
from gputwin.core.version import VERSION
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.scenario import Scenario
from gputwin.simulation.simulate import cluster_of_scenario
from gputwin.traces.dataset import Trace
from gputwin.traces.sources import sha256

KEY_LENGTH = 32
_BY_CONTENT = {"trace", "format", "trace_fingerprint", "cluster", "policies", "prediction"}
"""Fields that name something: what stands there counts, not its name."""
_RULES = ("oracle", "requested")


def run_key(scenario: Scenario, trace: Trace, cluster: Cluster | None = None) -> str:
    """Return the key of the scenario's run on its trace: 32 hexadecimal digits, the same wherever the inputs are.

    `cluster` is the scenario's where it is open already.
    """
    target = cluster_of_scenario(scenario, trace) if cluster is None else cluster
    believed = scenario.prediction
    carbon = None if scenario.power is None else scenario.power.carbon
    named_by_content: dict[str, Any] = dict.fromkeys(_BY_CONTENT, True)
    if scenario.power is not None:
        named_by_content["power"] = {"carbon"}
    parts = {
        "scenario": scenario.model_dump(mode="json", exclude=named_by_content),
        "trace": trace.meta.fingerprint,
        "cluster": asdict(target),
        "policies": [_digest(Path(file), "policies") for file in scenario.policies],
        "prediction": believed if believed in _RULES else _digest(Path(believed), "prediction"),
        "carbon": carbon if carbon is None or _is_number(carbon) else _digest(Path(carbon), "power.carbon"),
        "engine": engine_digest(),
    }
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]


@cache
def engine_digest() -> str:
    """Return the digest of what simulates: gputwin's version and the sources of its simulation."""
    digest = hashlib.sha256(VERSION.encode())
    root = Path(gputwin.simulation.__file__).parent
    for source in sorted(root.rglob("*.py")):
        digest.update(source.relative_to(root).as_posix().encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()


def _digest(path: Path, field: str) -> str:
    """Return the digest of a file, or of all files of a folder with their names."""
    try:
        if not path.is_dir():
            return sha256(path)
        files = sorted(p for p in path.rglob("*") if p.is_file())
        lines = "".join(f"{p.relative_to(path).as_posix()}:{sha256(p)}\n" for p in files)
    except OSError as error:
        problem = f"'{path}' cannot be read ({error.strerror})"
        raise InputError(problem, field=field, remedy="name a file or a folder that is there") from None
    return hashlib.sha256(lines.encode()).hexdigest()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
