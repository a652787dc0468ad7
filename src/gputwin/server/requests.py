"""What clients may ask for, as types: the same for the REST API and the pages' forms.

A scenario of a client is a `Scenario` without what names files or code of this machine: those are refused, since a
client has no business with them.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gputwin.core.errors import InputError, UserError, shorten
from gputwin.server.settings import Limits
from gputwin.server.workspace import ID_PATTERN
from gputwin.simulation.cluster import Cluster, open_cluster
from gputwin.simulation.interference.table import BUILT_IN
from gputwin.simulation.scenario import Scenario, scenario_of

Id = Annotated[str, Field(pattern=ID_PATTERN, max_length=64)]
_CLUSTER_NAME = re.compile(r"[a-z0-9]+(:[0-9x]+)?")
_RULES = ("oracle", "requested")
NOT_TAKEN = ("trace", "format", "trace_fingerprint", "policies", "cluster")
"""Fields of a scenario that the server fills in, or that name code."""


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Generated(_Request):
    """A synthetic trace like a published one."""

    name: Literal["pai2020", "openb2023", "dlrm2025", "philly"] = "pai2020"
    jobs: Annotated[int, Field(ge=1, le=2_000_000)] = 10_000
    seed: Annotated[int, Field(ge=0, le=2**31)] = 0


class RunRequest(_Request):
    """A run: a trace by its id, a cluster by name or written out (the trace's own nodes where none), and rules."""

    trace: Id
    cluster: str | dict[str, Any] | None = None
    rules: Annotated[
        dict[str, Any], Field(default_factory=dict, description="Fields of a scenario, see /api/scenarios/schema.")
    ]
    weights: Annotated[str, Field(max_length=2000, description="Weights of tenants: llm=2,vision=1.")] = ""
    quotas: Annotated[str, Field(max_length=2000, description="GPUs tenants may hold at most: llm=16.")] = ""
    guarantees: Annotated[str, Field(max_length=2000, description="GPUs that tenants get back when needed.")] = ""
    groups: Annotated[str, Field(max_length=2000, description="Groups of tenants: llm=research/nlp.")] = ""


class ForecastRequest(_Request):
    """Demand to forecast."""

    target: Literal["arrivals", "in-force", "requests"] = "arrivals"
    horizon_seconds: Annotated[float, Field(gt=0, le=30 * 86400)] = 3600.0
    bin_seconds: Annotated[float, Field(ge=1, le=7 * 86400)] = 300.0


class PlanRequest(_Request):
    """A target to plan for."""

    cluster: str | None = None
    measure: Literal["mean_wait", "p50_wait", "p95_wait", "p99_wait"] = "p95_wait"
    seconds: Annotated[float, Field(gt=0, le=30 * 86400)] = 600.0
    growth: Annotated[float, Field(ge=0.1, le=10)] = 1.0
    confidence: Annotated[float, Field(ge=0.5, le=0.99)] = 0.9
    order: str = "fifo"
    backfill: str = "greedy"
    placement: str = "first-fit"


def cluster_name(name: str | None, limits: Limits) -> str | None:
    """Return the name of a built-in cluster; anything else, such as a path, is a user error."""
    if name is None or name == "":
        return None
    if not _CLUSTER_NAME.fullmatch(name):
        raise InputError(
            f"'{shorten(name)}' is no built-in cluster",
            field="cluster",
            remedy="give pai2020, openb2023 or homogeneous:NODESxGPUS",
        )
    _check_size(open_cluster(name), limits)
    return name


def _check_size(cluster: Cluster, limits: Limits) -> None:
    if cluster.node_count > limits.nodes:
        raise InputError(f"{cluster.node_count:,} nodes are too many here; at most {limits.nodes:,}", field="cluster")


def scenario_for(request: RunRequest, path: str, fingerprint: str, limits: Limits) -> Scenario:
    """Return the scenario a client asks for, checked; `path` is the folder of its trace."""
    taken = [name for name in NOT_TAKEN if name in request.rules]
    if taken:
        raise InputError("it cannot be set here", field=f"rules.{taken[0]}", remedy="remove it")
    if not _is_finite(request.rules):
        raise InputError("give finite numbers", field="rules")
    fields = dict(request.rules)
    _refuse_files(fields)
    if terms := _terms(request):
        fairness = fields.get("fairness") or ("quota" if request.quotas or request.guarantees else "none")
        given: dict[str, Any] = {"policy": fairness} if isinstance(fairness, str) else dict(fairness)
        if request.guarantees and given["policy"] == "quota":
            given["policy"] = "quota:reclaim=1,guaranteed=0"
        fields["fairness"] = {**given, "tenants": {**given.get("tenants", {}), **terms}}
    if fields.get("prediction", "oracle") not in _RULES:
        raise InputError("a file cannot be named here", field="rules.prediction", remedy="give oracle or requested")
    power = fields.get("power")
    if isinstance(power, dict) and not _is_number(power.get("carbon", "400")):
        raise InputError("a file cannot be named here", field="rules.power.carbon", remedy="give g/kWh as a number")
    cluster: Any = request.cluster
    if isinstance(cluster, str):
        cluster = cluster_name(cluster, limits)
    scenario = scenario_of(
        {"backfill": "greedy", **fields, "trace": path, "trace_fingerprint": fingerprint, "cluster": cluster}
    )
    if isinstance(scenario.cluster, Cluster):
        _check_size(scenario.cluster, limits)
    return scenario.check()


def _refuse_files(fields: dict[str, Any]) -> None:
    """Raise where a field names a file of this machine."""
    for part, name in (("fairness", "queues"), ("faults", "log")):
        found = fields.get(part)
        if isinstance(found, dict) and found.get(name) is not None:
            raise InputError("a file cannot be named here", field=f"rules.{part}.{name}", remedy="remove it")
    table = fields.get("interference")
    table = table.get("table") if isinstance(table, dict) else table
    if table not in (None, BUILT_IN):
        raise InputError("a file cannot be named here", field="rules.interference", remedy=f"give {BUILT_IN}")


def _terms(request: RunRequest) -> dict[str, dict[str, str]]:
    """Return the terms of tenants that are given as "name=value,name=value"."""
    terms: dict[str, dict[str, str]] = {}
    for field, term in (("weights", "weight"), ("quotas", "gpus"), ("guarantees", "guaranteed"), ("groups", "group")):
        for part in filter(None, (p.strip() for p in getattr(request, field).split(","))):
            name, equals, value = (text.strip() for text in part.rpartition("="))
            if not (name and equals and value):
                raise InputError(f"'{shorten(part)}' is not name=value", field=field, remedy="write llm=2,vision=1")
            terms.setdefault(name, {})[term] = value
    return terms


def _is_number(text: object) -> bool:
    try:
        return math.isfinite(float(str(text)))
    except ValueError:
        return False


def _is_finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_finite(v) for v in value.values())
    if isinstance(value, list):
        return all(_is_finite(v) for v in value)
    return not isinstance(value, float) or math.isfinite(value)


def forecast_settings(request: ForecastRequest) -> dict[str, Any]:
    """Return what the forecast takes; a horizon below one bin, or of too many, is a user error."""
    bins = request.horizon_seconds / request.bin_seconds
    if not 1 <= bins <= 1000:
        raise UserError("the horizon must be between 1 and 1,000 bins; change horizon_seconds or bin_seconds")
    return request.model_dump()
