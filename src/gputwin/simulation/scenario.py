"""Scenario: the one description of a run, as data: what `simulate` takes, a YAML file holds, a run is saved with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BeforeValidator, Field, ValidationError, model_validator

from gputwin.core.errors import InputError, shorten
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.interference.table import read_table
from gputwin.simulation.interruptions import Checkpoints
from gputwin.simulation.locality import Locality
from gputwin.simulation.policy import SHARINGS
from gputwin.simulation.policy_files import load_policies
from gputwin.simulation.policy_parameters import parse_policy
from gputwin.simulation.power.devices import speeds_under_limits
from gputwin.simulation.rules import Changes, Scheduler, check_rules
from gputwin.simulation.scenario_files import seen_from_here
from gputwin.simulation.scenario_parts import (
    AtLeastZero,
    CheckpointSpec,
    Choice,
    ElasticitySpec,
    FairnessSpec,
    FaultSpec,
    InterferenceSpec,
    LocalitySpec,
    Part,
    PlannerSpec,
    Policy,
    Positive,
    PowerSpec,
    SliceSpec,
    SpeedSpec,
    as_cluster,
    as_elasticity,
    as_fairness,
    as_interference,
    as_planner,
    as_sharing,
    exact,
    usual_placement,
)
from gputwin.simulation.scenario_settings import (
    caps_of,
    checkpoint_interval,
    elastic_plan_of,
    fairness_of,
    faults_of,
    planning_of,
    shrinking_of,
)
from gputwin.simulation.shared import GpuSharing
from gputwin.simulation.validation import first_mistake

FILE_ENDINGS = (".yaml", ".yml")
_ROUNDING = 1e-6
RULES = ("order", "backfill", "placement")
"""Fields that are always written."""


class Scenario(Part):
    """One run: what ran, on what, under which rules, and what may fail during the run."""

    trace: str | tuple[str, ...]
    """A trace as on the command line; raw files as a list."""
    format: str | None = None
    trace_fingerprint: str | None = None
    """Where it is given, a trace with another fingerprint is refused."""
    slice: SliceSpec | None = None
    load_scale: Positive = 1.0
    """Demand as a multiple of the trace's: the same jobs arrive so many times as fast."""
    cluster: Annotated[str | Cluster | None, BeforeValidator(as_cluster)] = None
    """A name, a file, or the node groups themselves; the trace's own nodes where nothing is given."""
    policies: tuple[str, ...] = ()
    """Python files with policies of one's own."""
    order: Policy = Choice(name=Scheduler.order)
    backfill: str = Scheduler.backfill
    placement: Policy = Choice(name=Scheduler.placement)
    """Where jobs share GPUs whatever they ask for (time-slice, mps), `least-loaded` unless another is given."""
    fairness: Annotated[FairnessSpec | None, BeforeValidator(as_fairness)] = None
    planner: Annotated[PlannerSpec | None, BeforeValidator(as_planner)] = None
    preemption: str = ""
    priorities: Annotated[dict[int, Positive], Field(min_length=1)] | None = None
    """Share of jobs of each priority, drawn for a trace that has none."""
    sharing: Annotated[Policy, BeforeValidator(as_sharing)] = Choice(name="fraction")
    """How a GPU is divided: a rule of `sharing/`, as in time-slice:most=4."""
    interference: Annotated[InterferenceSpec | None, BeforeValidator(as_interference)] = None
    """Jobs on one GPU slow each other."""
    speed: SpeedSpec | None = None
    elasticity: Annotated[ElasticitySpec | None, BeforeValidator(as_elasticity)] = None
    locality: LocalitySpec | None = None
    faults: FaultSpec | None = None
    checkpoints: CheckpointSpec = CheckpointSpec()
    power: PowerSpec | None = None
    prediction: str = "oracle"
    seed: Annotated[int, Field(ge=0)] = 0
    resolution_seconds: Positive | None = None
    sla_wait_seconds: AtLeastZero | None = None

    @model_validator(mode="before")
    @classmethod
    def _spread_where_gpus_are_shared(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or data.get("placement") is not None:
            return data
        return {**data, "placement": usual_placement(data.get("sharing"))}

    @property
    def scheduler(self) -> Scheduler:
        """Return the rules of scheduling as the engine takes them."""
        return Scheduler(
            self.order.name,
            self.backfill,
            self.placement.name,
            self.order.parameters,
            self.placement.parameters,
            None if self.fairness is None else fairness_of(self.fairness),
        )

    @property
    def changes(self) -> Changes:
        """Return what may change while jobs run, as the engine takes it."""
        saved = self.checkpoints.model_dump(exclude={"rule"})
        saved["interval_seconds"] = checkpoint_interval(self.checkpoints, self.faults)
        speeds = {} if self.speed is None else dict(self.speed.by_model)
        caps = caps_of(self.power)
        # Under a cap of nodes or racks the limits of GPUs are part of it.
        limits = {} if self.power is None or (caps is not None and not caps.waits) else self.power.limits
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
            faults=None if self.faults is None else faults_of(self.faults),
            elasticity=shrinking_of(self.elasticity),
            elastic_plan=elastic_plan_of(self.elasticity),
            caps=caps,
            locality=None if self.locality is None else Locality(**self.locality.model_dump()),
            planning=None if self.planner is None else planning_of(self.planner),
            sharing=self.gpu_sharing,
        )

    @property
    def gpu_sharing(self) -> GpuSharing | None:
        """Return how GPUs are shared, as the engine takes it; None where jobs hold the shares they ask for."""
        if self.sharing.name in ("fraction", "exclusive") and self.interference is None and not self.sharing.parameters:
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
        """Return the scenario with these fields instead of its own, checked like any other.

        With another sharing, a placement that is the usual one becomes that of the new sharing.
        """
        own = dict(self)
        if "sharing" in fields and str(self.placement) == usual_placement(self.sharing):
            del own["placement"]
        return scenario_of({**own, **fields})

    def check(self) -> Scenario:
        """Return the scenario; a policy, a parameter or a combination of rules that does not exist is a user error."""
        for file in self.policies:
            load_policies(Path(file))
        check_rules(self.scheduler, self.changes)
        if self.priorities is not None and abs(sum(self.priorities.values()) - 1.0) > _ROUNDING:
            total = sum(self.priorities.values())
            raise InputError(f"shares sum to {total:g}", field="priorities", remedy="make them sum to 1")
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


def scenario_of(data: Mapping[str, Any], file: Path | None = None) -> Scenario:
    """Return the scenario that plain data describes; the first thing that is wrong is a user error with its path."""
    try:
        return Scenario.model_validate(data)
    except ValidationError as error:
        raise first_mistake(error, tuple(Scenario.model_fields), file) from None


def read_scenario(path: Path) -> Scenario:
    """Return the scenario in a YAML file; names of files that stand beside it are right in the working directory."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"not a scenario ({shorten(error, 100)})", file=path) from None
    if not isinstance(data, dict):
        raise InputError("not a scenario: it has no fields", file=path, remedy="see docs/scenario.md")
    return seen_from_here(scenario_of(data, path), path.parent)


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
    return {path: exact(value) if isinstance(value, float) else str(value)}
