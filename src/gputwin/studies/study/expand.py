"""From a study to its scenarios: variants × grid, each checked with the path of what is wrong, × replicates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import numpy as np

from gputwin.core.errors import InputError, UserError
from gputwin.simulation.scenario import Scenario, leaves, scenario_of
from gputwin.simulation.scenario_files import seen_from_here
from gputwin.studies.comparison.labels import SAY_THEMSELVES
from gputwin.studies.study.model import MOST_RUNS, Study
from gputwin.traces.dataset import Trace
from gputwin.traces.locate import SYNTHETIC
from gputwin.traces.measures import ARRIVAL


@dataclass(frozen=True)
class Variant:
    """One set of rules of a study: its label, and its scenario before it is given a replicate's seed or window."""

    label: str
    scenario: Scenario


@dataclass(frozen=True)
class Replicate:
    """What all variants are run on alike: a trace, a seed, and a window of arrivals where there is one."""

    name: str
    trace: str | tuple[str, ...]
    seed: int
    window: tuple[float, float] | None = None

    def of(self, scenario: Scenario) -> Scenario:
        """Return the scenario on this replicate."""
        fields: dict[str, Any] = {"trace": self.trace, "seed": self.seed}
        if self.window is not None:
            fields["slice"] = {"start_time": self.window[0], "end_time": self.window[1]}
        return scenario.with_(**fields)


def variants_of(study: Study, file: Path | None = None) -> list[Variant]:
    """Return the study's sets of rules, the baseline first; a wrong value is a user error that names its place."""
    base = study.common()
    scenario_at(base, "", file)
    named = study.variants or {"": {}}
    for label, fields in study.variants.items():
        if not label.strip():
            raise InputError("a variant needs a name", file=file, field="variants")
        for path, value in fields.items():
            scenario_at(
                with_field(base, path, value, f"variants.{label}.{path}", file), f"variants.{label}.{path}", file
            )
    for path, values in study.grid.items():
        for k, value in enumerate(values):
            where = f"grid.{path}.{k}"
            scenario_at(with_field(base, path, value, where, file), where, file)
    points = list(product(*([(path, v) for v in values] for path, values in study.grid.items())))
    if len(points) * len(named) * max(len(study.seed_numbers), study.windows or 1) > MOST_RUNS:
        raise InputError(f"more than {MOST_RUNS:,} runs; give fewer values", file=file, field="grid")
    found: dict[str, Variant] = {}
    for name, fields in named.items():
        for point in points:
            data = base
            for path, value in (*fields.items(), *point):
                data = with_field(data, path, value, path, file)
            label = " / ".join([*([name] if name else []), *(label_of(*axis) for axis in point)]) or "base"
            if label in found:
                raise InputError(
                    f"two points of the study are the same: {label}; give each once", file=file, field="grid"
                )
            try:
                found[label] = Variant(label, _scenario(data, file).check())
            except UserError as error:
                raise _located(error, study, fields, point, label, file) from None
    return list(found.values())


def _located(
    error: UserError,
    study: Study,
    fields: Mapping[str, Any],
    point: Sequence[tuple[str, Any]],
    label: str,
    file: Path | None,
) -> InputError:
    """Return the error with its place: the value that is wrong by itself, else the combination."""
    problem, remedy = (error.problem, error.remedy) if isinstance(error, InputError) else (str(error), None)
    places = [(f"grid.{path}.{study.grid[path].index(value)}", path, value) for path, value in point]
    places += [(f"variants.{label.split(' / ')[0]}.{path}", path, value) for path, value in fields.items()]
    for where, path, value in places:
        try:
            _scenario(with_field(study.common(), path, value, where, file), file).check()
        except UserError as alone:
            if str(alone) == str(error):
                return InputError(problem, file=file, field=where, remedy=remedy)
    return InputError(f"{problem} (in: {label})", file=file, remedy=remedy)


def _scenario(data: Mapping[str, Any], file: Path | None) -> Scenario:
    """Return the scenario of plain data from a file; names of files that stand beside that are right here."""
    scenario = scenario_of(data, file)
    return scenario if file is None else seen_from_here(scenario, file.parent)


def scenario_at(data: Mapping[str, Any], where: str, file: Path | None) -> Scenario:
    """Return the scenario of plain data; what is wrong is reported with the place in the study's file it comes from."""
    try:
        return _scenario(data, file)
    except InputError as error:
        field = error.field or ""
        if where:
            # Below the value itself the rest of the path still says where.
            asked = ".".join(where.split(".")[1:])
            below = field.removeprefix(asked.rpartition(".")[0]).lstrip(".") if where.startswith("grid.") else ""
            field = f"{where}.{below}" if below and "." in below else where
        elif field.split(".")[0] not in ("trace", "format", "cluster"):
            field = f"scenario.{field}"
        raise InputError(error.problem, file=file, field=field, remedy=error.remedy) from None


def with_field(data: Mapping[str, Any], path: str, value: Any, where: str, file: Path | None = None) -> dict[str, Any]:
    """Return the data with a value at a dotted path; what is not there on the way is made, numbers are places in a list."""
    result = deepcopy(dict(data))
    at: Any = result
    *parents, last = path.split(".")
    if parents[:1] in (["fairness"], ["speed"]) and isinstance(result.get(parents[0]), str):
        # A rule by its name alone is short for this.
        result[parents[0]] = {"policy": result[parents[0]]}
    for part in (*parents, last):
        is_last = part is last
        if isinstance(at, list):
            if not part.isdecimal() or int(part) >= len(at):
                raise InputError(f"the list has {len(at)} entries; '{part}' is none of them", file=file, field=where)
            if is_last:
                at[int(part)] = value
            else:
                at = at[int(part)]
        elif isinstance(at, dict):
            if is_last:
                at[part] = value
            else:
                if at.get(part) is None:
                    at[part] = {}
                at = at[part]
        else:
            problem = f"'{at}' has no parts, so '{part}' cannot be set"
            raise InputError(problem, file=file, field=where, remedy="write it out as a mapping")
    return result


def label_of(path: str, value: Any) -> str:
    """Return a value of a grid in words: alone where it says itself what it is, else after its field's name."""
    if isinstance(value, Mapping | list | tuple):
        said = " ".join(f"{k} {v}" for k, v in leaves(value).items()) or "none"
    else:
        said = "none" if value is None or value == "" else str(value).lower() if isinstance(value, bool) else str(value)
    return said if path in SAY_THEMSELVES and said != "none" else f"{path} {said}"


def replicates_of(
    study: Study, trace: Trace | None, variants: Sequence[Variant], file: Path | None = None
) -> list[Replicate]:
    """Return what every variant is run on: generated traces, seeds, or windows of the trace, which is needed for them."""
    named = variants[0].scenario.trace
    if study.windows is not None and trace is not None:
        edges = _edges(trace, study.windows, file)
        seed = variants[0].scenario.seed
        return [Replicate(f"window {k + 1}", named, seed, edges[k]) for k in range(study.windows)]
    seeds = study.seed_numbers
    if isinstance(named, str) and named.startswith(SYNTHETIC):
        kind, _, query = named.partition("?")
        settings = dict(parse_qsl(query, keep_blank_values=True))
        if study.seeds == 1:
            return [Replicate(f"seed {settings.get('seed', 0)}", named, variants[0].scenario.seed)]
        if "seed" in settings:
            remedy = "remove it, or give one seed"
            raise InputError("the trace names a seed, and the study several", file=file, field="trace", remedy=remedy)
        return [Replicate(f"seed {s}", f"{kind}?{urlencode({**settings, 'seed': s})}", s) for s in seeds]
    is_random = any(v.scenario.faults is not None or v.scenario.placement.name == "random" for v in variants)
    if len(seeds) > 1 and not is_random:
        problem = "seeds change nothing: the trace is not generated and nothing else is random"
        raise InputError(problem, file=file, field="seeds", remedy="give windows instead, as in `windows: 5`")
    if study.seeds == 1:
        return [Replicate("the trace", named, variants[0].scenario.seed)]
    return [Replicate(f"seed {s}", named, s) for s in seeds]


def _edges(trace: Trace, count: int, file: Path | None) -> list[tuple[float, float]]:
    """Return the bounds, s, of windows with about the same number of arrivals."""
    times = trace.tasks.select(ARRIVAL).to_series().drop_nulls().sort().to_numpy()
    cuts = np.unique(times[np.linspace(0, times.size, count, endpoint=False).astype(int)]) if times.size else times
    if len(cuts) < count:
        raise InputError(f"too few arrivals for {count} windows; give fewer", file=file, field="windows")
    ends = [*cuts[1:].tolist(), float(np.nextafter(times[-1], np.inf))]
    return list(zip(cuts.tolist(), ends, strict=True))
