"""What a run's result depends on, as a key: the scenario, the trace and files it names, and the code that runs it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import gputwin.simulation
from gputwin.core.version import VERSION
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.scenario import Scenario
from gputwin.simulation.scenario_files import RULES, digest_of, files_of
from gputwin.simulation.simulate import cluster_of_scenario
from gputwin.traces.dataset import Trace

KEY_LENGTH = 32
_BY_CONTENT = {"trace", "format", "trace_fingerprint", "cluster", "policies", "prediction"}
"""Fields that name something: what stands there counts, not its name."""


def run_key(scenario: Scenario, trace: Trace, cluster: Cluster | None = None) -> str:
    """Return the key of the scenario's run on its trace: 32 hexadecimal digits, the same wherever the inputs are.

    `cluster` is the scenario's where it is open already.
    """
    target = cluster_of_scenario(scenario, trace) if cluster is None else cluster
    files = files_of(scenario)
    named_by_content: dict[str, Any] = dict.fromkeys(_BY_CONTENT, True)
    for field in files:
        part, _, inside = field.partition(".")
        named_by_content[part] = {inside} if inside else True
    parts = {
        "scenario": scenario.model_dump(mode="json", exclude=named_by_content),
        "trace": trace.meta.fingerprint,
        "cluster": asdict(target),
        "files": {field: [digest_of(name, field) for name in names] for field, names in files.items()},
        "prediction": scenario.prediction if scenario.prediction in RULES else None,
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
