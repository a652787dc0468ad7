"""What scenarios are called: by what they differ in, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pydantic import BaseModel

from gputwin.core.errors import UserError
from gputwin.core.units import short_duration
from gputwin.simulation.result import SimulationResult
from gputwin.simulation.scenario import Scenario, fields_apart, leaves, scenario_of
from gputwin.studies.comparison.scenario_run import ScenarioRun

_OF_THE_REPLICATE = ("trace", "format", "trace_fingerprint", "seed")
_FAIRNESS = "fairness."
_MOST_TERMS = 2
_USUAL = ("order", "backfill", "placement")
SAY_THEMSELVES = ("order", "backfill", "placement", "preemption", "sharing", "prediction", "cluster")
"""Fields whose values need no name beside them."""
GUARANTEES = "quota:reclaim=1,guaranteed=0"
"""The rule that guarantees alone stand for (`simulate --guarantee`)."""
_PARTS = ("planner", "elasticity", "locality", "faults", "checkpoints", "speed", "interference", "power")
"""Fields with settings of their own, which a scenario has or has not."""


def label_runs(results: Sequence[SimulationResult]) -> list[ScenarioRun]:
    """Return saved runs named by the fields in which their scenarios differ; the same trace and seed are one replicate."""
    scenarios = [result.scenario for result in results]
    parts = {scenario.slice: result.jobs["job_id"] for scenario, result in zip(scenarios, results, strict=True)}
    if len(parts) > 1 and len({frozenset(jobs) for jobs in parts.values()}) > 1:
        raise UserError("the runs are of different parts of the trace (slice): compare runs of the same jobs")
    apart = fields_apart(scenarios, _OF_THE_REPLICATE)
    # A scenario names its predictions, cluster and files; what they held is known from the run.
    for what, text in _CONTENTS.items():
        found = [text(result) for result in results]
        known = {tuple(fields.items()) for fields in apart}
        with_it = {(tuple(fields.items()), content) for fields, content in zip(apart, found, strict=True)}
        if len(with_it) > len(known):
            apart = [{**fields, what: content} for fields, content in zip(apart, found, strict=True)]
    labels, short = (
        [", ".join(words) or "run" for words in _all_words(apart, scenarios, most)] for most in (None, _MOST_TERMS)
    )
    chosen = short if len(set(short)) == len(set(labels)) else labels
    return [
        ScenarioRun(label, f"{result.manifest['trace_fingerprint']}/{scenario.seed}", result)
        for label, result, scenario in zip(chosen, results, scenarios, strict=True)
    ]


def rules_in_words(scenario: Scenario) -> str:
    """Return a scenario's rules and all else that it sets: "order fifo, …, placement first-fit, quota (llm 24 GPUs)"."""
    said = [f"{name} {getattr(scenario, name)}" for name in _USUAL]
    leave_out = (*_OF_THE_REPLICATE, *_USUAL, "cluster")
    plain = scenario_of({name: getattr(scenario, name) for name in ("trace", "cluster")})
    both = [plain, scenario]
    return ", ".join([*said, *_all_words(fields_apart(both, leave_out), both)[1]])


def _all_words(
    apart: Sequence[Mapping[str, str]], scenarios: Sequence[Scenario], most: int | None = None
) -> list[list[str]]:
    """Return for each scenario the fields in which they differ as people say them."""
    missing = {part for part in _PARTS if any(_is_off(scenario, part) for scenario in scenarios)}
    return [_words(fields, scenario, missing, most) for fields, scenario in zip(apart, scenarios, strict=True)]


def _is_off(scenario: Scenario, part: str) -> bool:
    """Return whether the scenario does without this part, or has it as it is by default."""
    spec = getattr(scenario, part)
    return spec is None or spec == Scenario.model_fields[part].default


def _words(fields: Mapping[str, str], scenario: Scenario, missing: set[str], most: int | None) -> list[str]:
    """Return fields and values as people say them: "sjf", "no planner", "faults (mtbf 30 d)", "quota (llm 16 GPUs)".

    `missing`: parts that some scenario does without, so that the defaults of those who have them need no mention. Of the
    terms of tenants at most so many are named, the others counted.
    """
    words, settings, fairness = [], dict[str, dict[str, str]](), dict[str, str]()
    for field, value in fields.items():
        part, _, setting = field.partition(".")
        if field.startswith(_FAIRNESS):
            fairness[field] = value
        elif part in _PARTS:
            settings.setdefault(part, {})[setting] = value
        else:
            words.append(value if field in SAY_THEMSELVES else f"{field} {value}")
    parts = [part for part in _PARTS if part in settings]
    words += [_part_words(p, settings[p], scenario, p in missing) for p in parts if not _is_off(scenario, p)]
    without = [part for part in parts if _is_off(scenario, part)]
    if without and not words:
        # Beside other words it goes without saying.
        *others, last = without
        words = [f"no {', '.join(others)} or {last}" if others else f"no {last}"]
    return [*words, *_fairness_words(fairness, bool(words), most)] if fairness else words


def _part_words(part: str, settings: Mapping[str, str], scenario: Scenario, is_missing: bool) -> str:
    """Return what a scenario sets of one part: "planner max-min (round 10 min)", "checkpoints (interval 30 min)"."""
    own = {**settings}
    if is_missing:
        usual = _defaults(getattr(scenario, part))
        own = {name: value for name, value in own.items() if value != usual.get(name, "none")}
    policy = own.pop("policy", "")
    listed = ", ".join(_setting_words(name, value) for name, value in own.items())
    return " ".join(filter(None, (part, policy, f"({listed})" if listed else "")))


def _defaults(spec: BaseModel) -> dict[str, str]:
    fields = type(spec).model_fields.items()
    return leaves({name: f.get_default(call_default_factory=True) for name, f in fields if not f.is_required()})


def _setting_words(name: str, value: str) -> str:
    """Return a setting with its value in the unit that its name ends in: "save 20 s", "node 3000 W"."""
    quantity, _, unit = name.rpartition("_")
    if value != "none" and unit == "seconds":
        value, name = short_duration(float(value)), quantity
    elif value != "none" and unit == "watts":
        value, name = f"{value} W", quantity
    return f"{name.replace('_', ' ').replace('.', ' ')} {value}"


def _fairness_words(fields: Mapping[str, str], has_others: bool, most: int | None) -> list[str]:
    """Return the rule of fairness and the terms of tenants; nothing where there is none and other words say enough."""
    rule = fields.get(f"{_FAIRNESS}policy", "")
    if rule == "none":
        return [] if has_others else ["no fairness rule"]
    terms = []
    is_guarantee = rule == GUARANTEES and not any(name.endswith(".gpus") for name in fields)
    for name, value in fields.items():
        of, _, term = name.rpartition(".")
        tenant = of.removeprefix(f"{_FAIRNESS}tenants.")
        if tenant != of and value != "none" and (term, value) != ("weight", "1"):
            in_gpus = term == "gpus" or (is_guarantee and term == "guaranteed")
            terms.append(f"{tenant} {value} GPUs" if in_gpus else f"{tenant} {term} {value}")
    if most is not None and len(terms) > most:
        terms = [*terms[:most], f"{len(terms) - most} more"]
    rule = "guarantees" if is_guarantee and terms else rule
    limits = f"({', '.join(terms)})" if rule and terms else ", ".join(terms)
    return [f"{rule} {limits}".strip() or "no limits"]


_CONTENTS: dict[str, Callable[[SimulationResult], str]] = {
    "predictions": lambda result: str(result.manifest.get("predictions_sha256") or "none")[:8],
    "nodes": lambda result: f"{result.manifest['nodes']:,} with {result.manifest['gpus']:,} GPUs",
}
