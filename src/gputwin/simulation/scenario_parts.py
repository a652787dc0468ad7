"""The parts of a scenario: what each field of it may hold, checked when it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from gputwin.core.errors import InputError, UserError
from gputwin.simulation.cluster import cluster_of
from gputwin.simulation.elasticity.sizes import SHRINK
from gputwin.simulation.interference.table import BUILT_IN
from gputwin.simulation.policy import SHARINGS
from gputwin.simulation.policy_parameters import parse_policy, settle
from gputwin.simulation.rules import Scheduler

Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
AtLeastZero = Annotated[float, Field(ge=0, allow_inf_nan=False)]
SPREAD = "least-loaded"
"""The usual placement of jobs that share GPUs whatever they ask for."""
NO_RULE = "none"
"""Instead of a rule of fairness: tenants have terms only."""


class Part(BaseModel):
    """Data that does not change and has no field that is not declared."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Choice(Part):
    """A policy by name, with values for its parameters; written as "name" or "name:parameter=value,…"."""

    name: str
    parameters: dict[str, float] = Field(default_factory=dict)

    def __str__(self) -> str:
        given = ",".join(f"{k}={exact(v)}" for k, v in self.parameters.items())
        return f"{self.name}:{given}" if given else self.name


def exact(value: float) -> str:
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


def as_cluster(value: Any) -> Any:
    """Return a cluster written out in place; a name stays a name."""
    if not isinstance(value, Mapping):
        return value
    try:
        return cluster_of(dict(value))
    except InputError as error:
        raise ValueError(f"{error.field}: {error.problem}" if error.field else error.problem) from None
    except UserError as error:
        raise ValueError(str(error)) from None


class SliceSpec(Part):
    """The tasks that arrive in [start_time, end_time), s of the trace's clock."""

    start_time: Finite | None = None
    end_time: Finite | None = None


class SpeedSpec(Part):
    """How fast jobs run: a rule, and work a second by GPU model, 1 where a model is not named."""

    policy: Policy = Choice(name="gpu-model")
    by_model: dict[str, Positive] = Field(default_factory=dict)


class CheckpointSpec(Part):
    """When jobs save their work, and what that and a restart take (`interruptions.Checkpoints`)."""

    interval_seconds: AtLeastZero | None = None
    rule: Literal["fixed", "young", "daly", "exact"] = "fixed"
    """Where the interval comes from: given, or from the time to save and the nodes' mean time between failures."""
    save_seconds: AtLeastZero = 0.0
    restart_seconds: AtLeastZero = 0.0
    resize_seconds: AtLeastZero = 0.0
    on_preemption: bool = True
    stagger: bool = False
    """Checkpoints of different jobs come at different times within the interval."""
    grace_seconds: AtLeastZero | None = None
    most_stops: Annotated[int, Field(ge=1)] = 10_000


class MaintenanceSpec(Part):
    """A window in which a node, by its row in the cluster, is not there; times in s of the trace's clock."""

    node: Annotated[int, Field(ge=0)]
    drain_time: Finite | None = None
    down_time: Finite
    up_time: Finite | None = None


class FaultSpec(Part):
    """How nodes fail and are repaired, and planned maintenance (`interruptions.Faults`, `interruptions.Fleet`)."""

    preset: str | None = None
    """Published failure rates by name instead of `mtbf_seconds` (`faults/presets.py`)."""
    mtbf_seconds: Positive | None = None
    shape: Positive = 1.0
    repair_seconds: Positive = 3600.0
    repair: Literal["exponential", "weibull", "lognormal", "fixed"] = "exponential"
    repair_sigma: Positive = 1.0
    repair_shape: Positive = 1.0
    maintenance: tuple[MaintenanceSpec, ...] = ()
    gpu_mtbf_seconds: Positive | None = None
    rack_mtbf_seconds: Positive | None = None
    rack_repair_seconds: Positive = 3600.0
    log: str | None = None
    """A CSV file of failures that are replayed: node, down_time, up_time."""
    maintenance_period_seconds: Positive | None = None
    """Each node is maintained once in this time, one after the other."""
    maintenance_seconds: Positive = 3600.0
    maintenance_notice_seconds: AtLeastZero = 0.0


class ElasticitySpec(Part):
    """Jobs may have other sizes than they ask for: shrunk to let others in, or as a policy says at rounds.

    `scaling_exponent` is how their speed grows with their size. Where a policy (`elasticity/sizes.py`) has none, a job
    called like a measured application has its curve; `curves: drawn` deals out these curves to all others by chance.
    """

    policy: str = SHRINK
    scaling_exponent: Annotated[float | None, Field(gt=0, le=1, validate_default=True)] = None
    curves: Literal["own", "drawn"] = "own"
    least_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Of `shrink`: the least share of its instances that a job keeps."""
    round_seconds: Positive = 360.0
    least_gpus: Annotated[int, Field(ge=1)] = 1
    most_gpus: Annotated[int, Field(ge=1, le=1024)] = 16

    @field_validator("scaling_exponent")
    @classmethod
    def _is_there(cls, value: float | None, found: ValidationInfo) -> float | None:
        if value is None and found.data.get("policy") == SHRINK:
            raise PydanticCustomError("missing", "shrinking needs it")
        return value

    @model_validator(mode="after")
    def _has_one_speed(self) -> ElasticitySpec:
        if self.curves == "drawn" and self.scaling_exponent is not None:
            raise PydanticCustomError(
                "twice", "scaling_exponent and drawn curves both say how fast jobs are; give one of them"
            )
        return self


def as_elasticity(value: Any) -> Any:
    """Return an elastic policy given by its name alone as a part."""
    return {"policy": value} if isinstance(value, str) else value


class TenantSpec(Part):
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


class FairnessSpec(Part):
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


def as_fairness(value: Any) -> Any:
    """Return a rule of fairness given by its name alone as a part."""
    return {"policy": value} if isinstance(value, str) else value


class LocalitySpec(Part):
    """How long a gang waits for one node, and after that for one rack, before it goes anywhere, s (`locality.py`)."""

    node_seconds: AtLeastZero = 0.0
    rack_seconds: AtLeastZero = 0.0


class PlannerSpec(Part):
    """A planner that says at rounds who runs on which GPU model (`planning/`), instead of order and backfill."""

    policy: str
    round_seconds: Positive = 360.0
    least_replan_seconds: AtLeastZero = 0.0
    """A plan is made anew when jobs have come or left, but not sooner than this after the last."""


def as_planner(value: Any) -> Any:
    """Return a planner given by its name alone as a part."""
    return {"policy": value} if isinstance(value, str) else value


def as_sharing(value: Any) -> Any:
    """Return a rule of sharing, as text or as data, as a choice."""
    if isinstance(value, str):
        value = _as_choice(value)
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        try:
            settle(SHARINGS.get(value["name"]), value.get("parameters") or {})
        except UserError as error:
            raise ValueError(str(error)) from None
    return value


def usual_placement(sharing: Any) -> str:
    """Return the placement of a scenario that gives none: where jobs share GPUs whatever they ask for, they are spread."""
    name = getattr(sharing, "name", None) or (sharing.get("name") if isinstance(sharing, Mapping) else sharing)
    known = isinstance(name, str) and name.partition(":")[0] in SHARINGS.names()
    return SPREAD if known and SHARINGS.get(str(name).partition(":")[0]).divides else Scheduler.placement


class InterferenceSpec(Part):
    """How much jobs on one GPU slow each other: the built-in table of pairs, or a file in Gavel's format."""

    table: str = BUILT_IN


def as_interference(value: Any) -> Any:
    """Return a table given by its name alone as a part."""
    return {"table": value} if isinstance(value, str) else value


class PowerSpec(Part):
    """Energy and carbon are reported; `limits` are power limits by GPU model, W, which slow jobs on it, `node_watts` and
    `rack_watts` what a node and a rack may draw at most.

    `carbon` is the intensity of the grid, g/kWh: a number, or a CSV file with columns time_seconds, grams_per_kwh.
    """

    limits: dict[str, Positive] = Field(default_factory=dict)
    carbon: str = "400"
    node_watts: Positive | None = None
    rack_watts: Positive | None = None
    over_cap: Literal["slow", "wait"] = "slow"
    """What a cap of nodes or racks does: busy GPUs share the power that is left, or only so many are used at a time."""
