"""Study: a YAML file that names a trace, a cluster, what to vary, and what to ask of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from gputwin.core.errors import InputError, UserError
from gputwin.core.units import parse_duration
from gputwin.simulation.scenario import Scenario
from gputwin.simulation.validation import first_mistake
from gputwin.studies.comparison.compare import METRICS

OF_THE_STUDY = ("trace", "format", "cluster")
"""Fields of a scenario that stand at the top of a study."""
MOST_RUNS = 100_000
_TARGETS = {name.replace(" ", "_"): name for name in METRICS}
Count = Annotated[int, Field(ge=1, le=10_000)]
Topic = Literal[
    "workload", "delays", "runtimes", "tenants", "placement", "efficiency", "cluster", "machines", "bottlenecks",
    "tenancy", "requests", "serving",
]  # fmt: skip


def _as_duration(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return parse_duration(value)
    except UserError as error:
        raise ValueError(str(error)) from None


def _as_list(value: Any) -> Any:
    """Return a single value as a list of it."""
    return value if isinstance(value, list | tuple) else [value]


Seconds = Annotated[
    float, BeforeValidator(_as_duration, json_schema_input_type=float | str), Field(gt=0, allow_inf_nan=False)
]
Limit = Annotated[
    float, BeforeValidator(_as_duration, json_schema_input_type=float | str), Field(ge=0, allow_inf_nan=False)
]


class _Part(BaseModel):
    """Data that does not change and has no field that is not declared."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ForecastSpec(_Part):
    """A forecast of the trace's demand, as `gputwin forecast` makes it."""

    target: Literal["arrivals", "in-force", "requests"] = "arrivals"
    horizon: Seconds = 3600.0
    bin: Seconds = 300.0
    models: tuple[str, ...] = ()


class Study(_Part):
    """Scenarios × replicates, and what to ask of their runs."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")] = "study"
    """What the study is called; the file's name where it does not say."""
    trace: str | tuple[str, ...]
    """A trace as on the command line; raw files as a list."""
    format: str | None = None
    cluster: str | dict[str, Any] | None = None
    """A name, a file, or the node groups themselves; the trace's own nodes where nothing is given."""
    scenario: dict[str, Any] = Field(default_factory=dict)
    """Fields of a scenario that all runs have in common."""
    variants: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Named sets of fields; each is combined with each point of the grid. The first is the baseline."""
    grid: dict[str, Annotated[tuple[Any, ...], BeforeValidator(_as_list), Field(min_length=1)]] = Field(
        default_factory=dict
    )
    """Values of a field, by its dotted path; all are combined with each other. The first of each is the baseline."""
    seeds: Count | tuple[Annotated[int, Field(ge=0)], ...] = 1
    """How many replicates, or their seeds: of the generator of a synthetic trace and of everything random in a run."""
    windows: Annotated[int, Field(ge=2, le=1000)] | None = None
    """Replicates of a trace that cannot be generated anew: so many parts of it with the same number of arrivals."""
    targets: dict[str, Limit] = Field(default_factory=dict)
    """What a scenario must reach, by metric, as in `p95_wait: 10m`; a recommendation must meet all."""
    analyses: tuple[Topic, ...] | Literal["all"] = ()
    """Topics of the trace that the report shows besides."""
    forecast: ForecastSpec | None = None

    @property
    def seed_numbers(self) -> tuple[int, ...]:
        """Return the seeds of the replicates."""
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds

    @property
    def limits(self) -> dict[str, float]:
        """Return the targets by the metric's shown name."""
        return {_TARGETS[name]: limit for name, limit in self.targets.items()}

    def common(self) -> dict[str, Any]:
        """Return the fields of a scenario that all runs have in common."""
        own = {name: getattr(self, name) for name in OF_THE_STUDY}
        return {**{k: v for k, v in own.items() if v is not None}, **self.scenario}


def study_of(data: Mapping[str, Any], file: Path | None = None) -> Study:
    """Return the study that plain data describes; the first thing that is wrong is a user error with its path."""
    try:
        study = Study.model_validate(data)
    except ValidationError as error:
        raise first_mistake(error, tuple(Study.model_fields), file) from None
    for name in study.targets:
        if name not in _TARGETS:
            raise InputError(f"unknown metric; known: {', '.join(_TARGETS)}", file=file, field=f"targets.{name}")
    for where, fields in (("scenario", study.scenario), ("grid", study.grid)):
        for name in fields:
            head = name.split(".")[0]
            if head not in Scenario.model_fields:
                known = ", ".join(n for n in Scenario.model_fields if n not in OF_THE_STUDY)
                raise InputError(f"a scenario has no such field; known: {known}", file=file, field=f"{where}.{name}")
            if where == "scenario" and head in OF_THE_STUDY:
                problem = "it stands at the top of a study, not in its scenario"
                raise InputError(problem, file=file, field=f"{where}.{name}", remedy="move it there")
    seeds = study.seed_numbers
    if not seeds or len(set(seeds)) != len(seeds):
        raise InputError("give at least one seed, and each once", file=file, field="seeds")
    if study.windows is not None and len(seeds) > 1:
        raise InputError("give seeds or windows, not both", file=file, field="windows")
    return study


def read_study(path: Path) -> Study:
    """Return the study in a YAML file."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(error.strerror or str(error), file=path, remedy="check the path") from None
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise InputError(f"not YAML ({str(error).splitlines()[0]})", file=path, remedy="see docs/studies.md") from None
    if not isinstance(data, dict):
        raise InputError("not a study: it has no fields", file=path, remedy="see docs/studies.md")
    if not all(isinstance(key, str) for key in data):
        raise InputError("names of fields must be text", file=path)
    return study_of({"name": path.stem, **data}, path)


def study_schema() -> str:
    """Return the JSON schema of a study, for editors; fields of its scenarios are those of a `Scenario`."""
    schema = Study.model_json_schema()
    scenario = Scenario.model_json_schema(ref_template="#/$defs/{model}")
    fields = {k: v for k, v in scenario["properties"].items() if k not in OF_THE_STUDY}
    schema.setdefault("$defs", {}).update(scenario.get("$defs", {}))
    anything = {"type": "object", "additionalProperties": False, "properties": fields}
    any_field = {"type": "object", "additionalProperties": False, "properties": scenario["properties"]}
    schema["properties"]["scenario"] |= anything
    schema["properties"]["variants"]["additionalProperties"] = {
        **any_field,
        "additionalProperties": True,
        "description": "Fields by name or dotted path.",
    }
    schema["properties"]["grid"]["properties"] = {
        name: {"anyOf": [{"type": "array", "items": field, "minItems": 1}, field]}
        for name, field in scenario["properties"].items()
    }
    schema["properties"]["targets"] |= {
        "additionalProperties": False,
        "properties": {name: {"type": ["number", "string"]} for name in _TARGETS},
    }
    return json.dumps(schema, indent=1)
