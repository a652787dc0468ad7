"""Scenario: the one description of a run, as data: what `simulate` takes, a YAML file holds, a run is saved with."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError

from gputwin.core.errors import InputError, UserError, shorten
from gputwin.simulation.checkpointing import CheckpointCosts, interval
from gputwin.simulation.cluster import Cluster, cluster_of
from gputwin.simulation.interference.table import BUILT_IN, read_table
from gputwin.simulation.interruptions import Checkpoints, Elasticity, Faults, Maintenance
from gputwin.simulation.planning.drive import Planning
from gputwin.simulation.policy import SHARINGS, load_policies, parse_policy, settle
from gputwin.simulation.power.devices import speeds_under_limits
from gputwin.simulation.rules import Changes, Scheduler, check_rules
from gputwin.simulation.shared import GpuSharing
from gputwin.simulation.tenants import Fairness, Terms
from gputwin.simulation.validation import first_mistake

Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
AtLeastZero = Annotated[float, Field(ge=0, allow_inf_nan=False)]
FILE_ENDINGS = (".yaml", ".yml")
NO_RULE = "none"
"""Instead of a rule of fairness: tenants have terms only."""
RULES = ("order", "backfill", "placement")
"""Fields that are always written."""


class _Part(BaseModel):
    """Data that does not change and has no field that is not declared."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Choice(_Part):
    """A policy by name, with values for its parameters; written as "name" or "name:parameter=value,…"."""

    name: str
    parameters: dict[str, float] = Field(default_factory=dict)

    def __str__(self) -> str:
        given = ",".join(f"{k}={_exact(v)}" for k, v in self.parameters.items())
        return f"{self.name}:{given}" if given else self.name


def _exact(value: float) -> str:
    """Return the number as text that reads back as the same number."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def _as_choice(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        name, parameters = parse_policy(value)
    except UserError as error:
        raise ValueError(str(error)) from None
    return {"name": name, "parameters": parameters}


Policy = Annotated[Choice, BeforeValidator(_as_choice), PlainSerializer(str, return_type=str)]


def _as_cluster(value: Any) -> Any:
    """Return a cluster written out in place; a name stays a name."""
    if not isinstance(value, Mapping):
        return value
    try:
        return cluster_of(dict(value))
    except InputError as error:
        raise ValueError(f"{error.field}: {error.problem}" if error.field else error.problem) from None
    except UserError as error:
        raise ValueError(str(error)) from None


class SliceSpec(_Part):
    """The tasks that arrive in [start_time, end_time), s of the trace's clock."""

    start_time: Finite | None = None
    end_time: Finite | None = None


class SpeedSpec(_Part):
    """How fast jobs run: a rule, and work a second by GPU model, 1 where a model is not named."""

    policy: Policy = Choice(name="gpu-model")
    by_model: dict[str, Positive] = Field(default_factory=dict)


class CheckpointSpec(_Part):
    """When jobs save their work, and what that and a restart take (`interruptions.Checkpoints`)."""

    interval_seconds: AtLeastZero | None = None
    rule: Literal["fixed", "young", "daly", "exact"] = "fixed"
    """Where the interval comes from: given, or from the time to save and the nodes' mean time between failures."""
    save_seconds: AtLeastZero = 0.0
    restart_seconds: AtLeastZero = 0.0
    resize_seconds: AtLeastZero = 0.0
    on_preemption: bool = True
    grace_seconds: AtLeastZero | None = None
    most_stops: Annotated[int, Field(ge=1)] = 10_000


class MaintenanceSpec(_Part):
    """A window in which a node, by its row in the cluster, is not there; times in s of the trace's clock."""

    node: Annotated[int, Field(ge=0)]
    drain_time: Finite | None = None
    down_time: Finite
    up_time: Finite | None = None


class FaultSpec(_Part):
    """How nodes fail and are repaired, and planned maintenance (`interruptions.Faults`)."""

    mtbf_seconds: Positive | None = None
    shape: Positive = 1.0
    repair_seconds: Positive = 3600.0
    repair: Literal["exponential", "weibull", "lognormal", "fixed"] = "exponential"
    repair_sigma: Positive = 1.0
    repair_shape: Positive = 1.0
    maintenance: tuple[MaintenanceSpec, ...] = ()


class ElasticitySpec(_Part):
    """Running jobs may be shrunk to let others in; `scaling_exponent` is how their speed grows with their size."""

    least_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    scaling_exponent: Annotated[float, Field(gt=0, le=1)]


class TenantSpec(_Part):
    """The terms of one tenant: its weight against others, how many GPUs it may hold (no limit where not given), and how
    many are guaranteed (with `quota:reclaim=1`: its part by weight where not given).
    """

    weight: Positive = 1.0
    gpus: AtLeastZero | None = None
    weights: dict[Literal["cpu", "memory", "gpu", "gpu_memory"], Positive] = Field(default_factory=dict)
    """By resource, where they differ from `weight`: tickets of a lottery, weights of DRF."""
    group: str = ""
    """Its place in the tree of tenants, as in research/nlp; for hdrf and slurm-multifactor."""
    guaranteed: AtLeastZero | None = None


class FairnessSpec(_Part):
    """Fairness between tenants: the rule, and the terms of those tenants that have their own, by name.

    The rule `none` is none at all: the terms are for an order that weighs tenants.
    """

    policy: Policy
    tenants: dict[str, TenantSpec] = Field(default_factory=dict)
    groups: dict[str, Positive] = Field(default_factory=dict)
    """Weights of groups among their siblings, by path; 1 where not given."""
    queues: str | None = None
    """A YAML file of Kueue's ClusterQueues, Cohorts and LocalQueues, for kueue-classical and kueue-fair."""
    default_queue: str | None = None
    """The ClusterQueue of tenants that have no queue of their own; without it, such a tenant is an error."""


def _as_fairness(value: Any) -> Any:
    return {"policy": value} if isinstance(value, str) else value


class PlannerSpec(_Part):
    """A planner that says at rounds who runs on which GPU model (`planning/`), instead of order and backfill."""

    policy: str
    round_seconds: Positive = 360.0
    least_replan_seconds: AtLeastZero = 0.0
    """A plan is made anew when jobs have come or left, but not sooner than this after the last."""


def _as_planner(value: Any) -> Any:
    return {"policy": value} if isinstance(value, str) else value


def _as_sharing(value: Any) -> Any:
    if isinstance(value, str):
        value = _as_choice(value)
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        try:
            settle(SHARINGS.get(value["name"]), value.get("parameters") or {})
        except UserError as error:
            raise ValueError(str(error)) from None
    return value


class InterferenceSpec(_Part):
    """How much jobs on one GPU slow each other: the built-in table of pairs, or a file in Gavel's format."""

    table: str = BUILT_IN


def _as_interference(value: Any) -> Any:
    return {"table": value} if isinstance(value, str) else value


class PowerSpec(_Part):
    """Energy and carbon are told; `limits` are power limits by GPU model, W, which slow jobs on it.

    `carbon` is the intensity of the grid, g/kWh: a number, or a CSV file with columns time_seconds, grams_per_kwh.
    """

    limits: dict[str, Positive] = Field(default_factory=dict)
    carbon: str = "400"


class Scenario(_Part):
    """One run: what ran, on what, under which rules, and what may go wrong meanwhile."""

    trace: str | tuple[str, ...]
    """A trace as on the command line; raw files as a list."""
    format: str | None = None
    trace_fingerprint: str | None = None
    """Where it is given, a trace with another fingerprint is refused."""
    slice: SliceSpec | None = None
    load_scale: Positive = 1.0
    """Demand as a multiple of the trace's: the same jobs arrive so many times as fast."""
    cluster: Annotated[str | Cluster | None, BeforeValidator(_as_cluster)] = None
    """A name, a file, or the node groups themselves; the trace's own nodes where nothing is given."""
    policies: tuple[str, ...] = ()
    """Python files with policies of one's own."""
    order: Policy = Choice(name=Scheduler.order)
    backfill: str = Scheduler.backfill
    placement: Policy = Choice(name=Scheduler.placement)
    fairness: Annotated[FairnessSpec | None, BeforeValidator(_as_fairness)] = None
    planner: Annotated[PlannerSpec | None, BeforeValidator(_as_planner)] = None
    preemption: str = ""
    sharing: Annotated[Policy, BeforeValidator(_as_sharing)] = Choice(name="fraction")
    """How a GPU is divided: a rule of `sharing/`, as in time-slice:most=4."""
    interference: Annotated[InterferenceSpec | None, BeforeValidator(_as_interference)] = None
    """Jobs on one GPU slow each other."""
    speed: SpeedSpec | None = None
    elasticity: ElasticitySpec | None = None
    faults: FaultSpec | None = None
    checkpoints: CheckpointSpec = CheckpointSpec()
    power: PowerSpec | None = None
    prediction: str = "oracle"
    seed: Annotated[int, Field(ge=0)] = 0
    resolution_seconds: Positive | None = None
    sla_wait_seconds: AtLeastZero | None = None

    @property
    def scheduler(self) -> Scheduler:
        """Return the rules of scheduling as the engine takes them."""
        return Scheduler(
            self.order.name,
            self.backfill,
            self.placement.name,
            self.order.parameters,
            self.placement.parameters,
            None if self.fairness is None else _fairness(self.fairness),
        )

    @property
    def changes(self) -> Changes:
        """Return what may change while jobs run, as the engine takes it."""
        saved = self.checkpoints.model_dump(exclude={"rule"})
        saved["interval_seconds"] = _interval(self.checkpoints, self.faults)
        elastic = self.elasticity
        speeds = {} if self.speed is None else dict(self.speed.by_model)
        limits = {} if self.power is None else self.power.limits
        for model, speed in speeds_under_limits(limits).items():
            speeds[model] = speeds.get(model, 1.0) * speed
        preemption, preemption_parameters = parse_policy(self.preemption)
        return Changes(
            preemption=preemption,
            preemption_parameters=preemption_parameters,
            speed=("gpu-model" if speeds else "") if self.speed is None else self.speed.policy.name,
            speeds=speeds,
            speed_parameters={} if self.speed is None else self.speed.policy.parameters,
            checkpoints=Checkpoints(**saved),
            faults=None if self.faults is None else _faults(self.faults),
            elasticity=None if elastic is None else Elasticity(elastic.least_share, elastic.scaling_exponent),
            planning=None if self.planner is None else _planning(self.planner),
            sharing=self.gpu_sharing,
        )

    @property
    def gpu_sharing(self) -> GpuSharing | None:
        """Return how GPUs are shared, as the engine takes it; None where jobs hold the shares they ask for."""
        if self.sharing.name in ("fraction", "exclusive") and self.interference is None:
            return None
        asked = self.interference
        if asked is None and SHARINGS.get(self.sharing.name).needs_pairs:
            asked = InterferenceSpec()
        pairs = None if asked is None else read_table(asked.table)
        return GpuSharing(self.sharing.name, self.sharing.parameters, pairs)

    @property
    def share(self) -> str:
        """Return whether requests for shares of a GPU are rounded up: 'exclusive', or 'fraction'."""
        return "exclusive" if self.sharing.name == "exclusive" else "fraction"

    def with_(self, **fields: Any) -> Scenario:
        """Return the scenario with these fields instead of its own, checked like any other."""
        return scenario_of({**dict(self), **fields})

    def check(self) -> Scenario:
        """Return the scenario; a policy, a parameter or a combination of rules that does not exist is a user error."""
        for file in self.policies:
            load_policies(Path(file))
        check_rules(self.scheduler, self.changes)
        return self

    def to_data(self) -> dict[str, Any]:
        """Return the scenario as plain data; fields at their defaults are left out, but not the rules of scheduling.

        So a saved run keeps its meaning, and its reader sees the rules.
        """
        changed = self.model_dump(mode="json", exclude_defaults=True)
        rules = self.model_dump(mode="json", include=set(RULES))
        return {k: {**changed, **rules}[k] for k in type(self).model_fields if k in changed or k in rules}

    def to_yaml(self) -> str:
        """Return the scenario as a YAML document; see `to_data`."""
        return yaml.safe_dump(self.to_data(), sort_keys=False, allow_unicode=True)


def _or_infinity(value: float | None) -> float:
    return math.inf if value is None else value


def _terms(spec: TenantSpec) -> Terms:
    weights: dict[str, float] = dict(spec.weights.items())
    return Terms(spec.weight, spec.gpus, weights, spec.group, spec.guaranteed)


def _fairness(spec: FairnessSpec) -> Fairness:
    terms = {name: _terms(tenant) for name, tenant in spec.tenants.items()}
    rule = "" if spec.policy.name == NO_RULE else spec.policy.name
    return Fairness(rule, spec.policy.parameters, terms, dict(spec.groups), spec.queues, spec.default_queue)


def _interval(spec: CheckpointSpec, faults: FaultSpec | None) -> float:
    """Return the work between two checkpoints, s: as given, or by the rule."""
    if spec.rule == "fixed":
        return _or_infinity(spec.interval_seconds)
    if spec.interval_seconds is not None:
        raise UserError(f"checkpoints have an interval and the rule '{spec.rule}'; give one of them")
    if faults is None or faults.mtbf_seconds is None or not spec.save_seconds:
        raise UserError(f"the checkpoint rule '{spec.rule}' needs a time to save and a mean time between failures")
    return interval(spec.rule, CheckpointCosts(spec.save_seconds, spec.restart_seconds, faults.mtbf_seconds))


def _planning(spec: PlannerSpec) -> Planning:
    return Planning(spec.policy, spec.round_seconds, spec.least_replan_seconds)


def _faults(spec: FaultSpec) -> Faults:
    windows = tuple(
        Maintenance(w.node, _or_infinity(w.drain_time), w.down_time, _or_infinity(w.up_time)) for w in spec.maintenance
    )
    return Faults(
        _or_infinity(spec.mtbf_seconds),
        spec.shape,
        spec.repair_seconds,
        spec.repair,
        spec.repair_sigma,
        windows,
        spec.repair_shape,
    )


def scenario_of(data: Mapping[str, Any], file: Path | None = None) -> Scenario:
    """Return the scenario that plain data describes; the first thing that is wrong is a user error with its path."""
    try:
        return Scenario.model_validate(data)
    except ValidationError as error:
        raise first_mistake(error, tuple(Scenario.model_fields), file) from None


def read_scenario(path: Path) -> Scenario:
    """Return the scenario in a YAML file."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"not a scenario ({shorten(error, 100)})", file=path) from None
    if not isinstance(data, dict):
        raise InputError("not a scenario: it has no fields", file=path, remedy="see docs/scenario.md")
    return scenario_of(data, path)


def scenario_schema() -> str:
    """Return the JSON schema of a scenario, for editors and forms."""
    return json.dumps(Scenario.model_json_schema(), indent=1)


def fields_apart(scenarios: Sequence[Scenario], leave_out: Sequence[str] = ()) -> list[dict[str, str]]:
    """Return for each scenario its values of the fields in which any two of them differ, by the path of the field.

    A value that is not given is "none". Fields in `leave_out` do not count.
    """
    found = [leaves(s.model_dump(mode="json", exclude=set(leave_out))) for s in scenarios]
    paths = dict.fromkeys(path for leaves in found for path in leaves)
    differing = [path for path in paths if len({leaves.get(path, "none") for leaves in found}) > 1]
    return [{path: leaves.get(path, "none") for path in differing} for leaves in found]


def leaves(value: Any, path: str = "") -> dict[str, str]:
    """Return the plain values in nested data by their dotted path; what is None or empty is not there."""
    if isinstance(value, Mapping | list | tuple):
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
        return {k: v for key, part in pairs for k, v in leaves(part, f"{path}.{key}" if path else str(key)).items()}
    if value is None or value == "":
        return {}
    return {path: _exact(value) if isinstance(value, float) else str(value)}
