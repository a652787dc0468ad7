"""Tuning of autoscalers: which thresholds and cool-downs of which scaling rule to adopt, by cost and SLA.

Windows are equal parts of the trace in time. A run serves one window's requests under one rule; the present rule serves the
same ones, so that losses are paired. Any parameter of any registered scaling rule can be tuned; `in_flight` stands for the
requests in flight per replica that a rule aims at, whatever the rule calls it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from gputwin.autoscaling.compare import default_target
from gputwin.autoscaling.cost import one_price
from gputwin.autoscaling.decisions.interface import Rule
from gputwin.autoscaling.decisions.registry import rule_from_plain
from gputwin.autoscaling.score import Terms, score, work_seconds
from gputwin.autoscaling.serving.run import Setting, serve
from gputwin.autoscaling.serving.workload import Service, service_of
from gputwin.core.errors import InputError, UserError
from gputwin.core.units import HOUR, parse_duration
from gputwin.core.version import VERSION
from gputwin.optimization.tuning.bandits import ALGORITHMS
from gputwin.optimization.tuning.runs import Runs, Study
from gputwin.optimization.tuning.study_file import whole_numbers
from gputwin.simulation.batch import Batch
from gputwin.simulation.scenario_files import name_from_here
from gputwin.traces.locate import open_trace

METRICS = ("cost", "compute", "missed", "p95_response", "changes")
KEY = "autoscaler"
"""The field that tells such a study from one of schedulers."""
_FIELDS = {"trace", KEY, "windows", "held_out", "present", "configurations", "objectives", "budget", "algorithm"}
_LEAST_REQUESTS = 20

Configuration = Mapping[str, Any]
"""A scaling rule as plain values: its name under "rule", then its parameters."""


@dataclass(frozen=True)
class Serving:
    """What is the same for every rule: how requests are served, what replicas cost, what is promised."""

    load: float = 1.0
    sla: str | None = None
    boot: str = "60s"
    period: str = "15s"
    minimum: int = 1
    maximum: int = 100
    service: str = "10s"
    slots: int = 1
    engine: str = "llama-3.1-8b"
    price: float = 1.0
    penalty: float | None = None


def name_of(configuration: Configuration) -> str:
    """Return the rule and its parameters in one line."""
    rest = ", ".join(f"{k} {_plain(v)}" for k, v in configuration.items() if k != "rule")
    return f"{configuration['rule']}: {rest}" if rest else str(configuration["rule"])


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def made_rule(configuration: Configuration, serving: Serving) -> Rule[Any]:
    """Return the rule of a configuration, within the fewest and most replicas of the study."""
    plain = {"minimum": serving.minimum, "maximum": serving.maximum, **configuration}
    aim = plain.pop("in_flight", None)
    if aim is not None:
        try:
            plain |= _AIMS[str(plain["rule"])](float(aim))
        except KeyError:
            raise UserError(f"in_flight is no threshold of '{plain['rule']}'; known: {', '.join(_AIMS)}") from None
        except (TypeError, ValueError):
            raise UserError(f"in_flight {aim!r} is no number of requests per replica") from None
    return rule_from_plain(plain)


_AIMS: dict[str, Callable[[float], dict[str, Any]]] = {
    "threshold": lambda n: {"bands": [{"metric": "concurrency_per_replica", "up": n, "down": 0.6 * n}]},
    "hpa": lambda n: {"metrics": [{"type": "External", "name": "concurrency", "target": n}]},
    "knative": lambda n: {"target": n, "total": 2 * n, "burst_capacity": 0.0},
    "keda": lambda n: {"triggers": [{"metric": "concurrency", "target": n}]},
}


class ScalingRuns(Runs[Configuration]):
    """Runs of scaling rules on windows of requests."""

    def __init__(
        self,
        study: Study[Configuration],
        service: Service,
        serving: Serving,
        key: str,
        *,
        store: Path | None,
        seed: int,
    ) -> None:
        super().__init__(study, f"{key}|{serving}|{study.windows + study.held_out}", store=store, seed=seed)
        self.serving = serving
        self.span = service.span / (study.windows + study.held_out)
        self.loads = [
            service.load.between(k * self.span, (k + 1) * self.span) for k in range(study.windows + study.held_out)
        ]
        fewest = min(map(len, self.loads))
        if fewest < _LEAST_REQUESTS:
            raise UserError(f"a window has {fewest} requests, at least {_LEAST_REQUESTS} are needed; use fewer windows")
        target = default_target(service.load, service.system) if serving.sla is None else parse_duration(serving.sla)
        penalty = serving.price / HOUR if serving.penalty is None else serving.penalty
        self.terms = Terms(target, one_price(serving.price, penalty))
        period = parse_duration(serving.period)
        # Every run begins with as many replicas as its first window has work for, so that no rule pays for the start.
        busy = float(work_seconds(self.loads[0], service.system).sum()) / self.span
        begin = min(max(math.ceil(busy), serving.minimum), serving.maximum)
        self.setting = Setting(service.system, self.span, period, parse_duration(serving.boot), serving.maximum, begin)
        self.need = np.zeros(math.ceil(self.span / period))

    @property
    def size(self) -> int:
        """Return 0: windows of requests are served in this process."""
        return 0

    def measure(self, batch: Batch | None, pairs: Sequence[tuple[Configuration, int]]) -> Iterable[dict[str, float]]:
        """Return the metrics of each rule on its window."""
        return (self._measured(configuration, window) for configuration, window in pairs)

    def _measured(self, configuration: Configuration, window: int) -> dict[str, float]:
        run = serve(self.loads[window], self.setting, made_rule(configuration, self.serving))
        found = score(run, self.setting, self.terms, self.need)
        return {
            "cost": found.cost.total,
            "compute": found.cost.compute,
            "missed": found.missed_share,
            "p95_response": found.p95_response,
            "changes": float(found.scale_events),
        }


def scaling_runs(path: Path, data: Mapping[str, Any], *, store: Path | None = None, seed: int = 0) -> ScalingRuns:
    """Return the runs of a study file with an autoscaler in it; mistakes are reported by their field."""
    for key in data:
        if key not in _FIELDS:
            raise InputError("unknown field", file=path, field=str(key), remedy=f"known: {', '.join(sorted(_FIELDS))}")
    given = data[KEY] or {}
    known = {f.name for f in fields(Serving)}
    if not isinstance(given, dict) or not set(given) <= known:
        raise InputError("unknown setting", file=path, field=KEY, remedy=f"known: {', '.join(sorted(known))}")
    serving = Serving(**given)
    grid, present = data.get("configurations"), data.get("present")
    if not isinstance(grid, dict) or "rule" not in grid:
        remedy = "give rule: [hpa, threshold] and lists of parameters, such as in_flight: [2, 4]"
        raise InputError("no configurations", file=path, field="configurations", remedy=remedy)
    if not isinstance(present, dict) or "rule" not in present:
        raise InputError("no present rule", file=path, field="present", remedy="give one as in {rule: hpa}")
    lists = {k: v if isinstance(v, list) else [v] for k, v in grid.items()}
    arms = tuple(dict(zip(lists, values, strict=True)) for values in product(*lists.values()))
    for arm in (present, *arms):
        try:
            made_rule(arm, serving)
        except UserError as error:
            raise InputError(str(error), file=path, field="configurations", remedy="see docs/optimization.md") from None
    objectives = data.get("objectives") or {"cost": 1.0}
    if not isinstance(objectives, dict) or not set(objectives) <= set(METRICS):
        remedy = f"known: {', '.join(METRICS)}"
        raise InputError("unknown objective", file=path, field="objectives", remedy=remedy)
    algorithm = data.get("algorithm", "ucb")
    if algorithm not in ALGORITHMS:
        remedy = f"known: {', '.join(ALGORITHMS)}"
        raise InputError(f"unknown algorithm '{algorithm}'", file=path, field="algorithm", remedy=remedy)
    study: Study[Configuration] = Study(
        present,
        arms,
        {k: float(v) for k, v in objectives.items()},
        algorithm=algorithm,
        name_of=name_of,
        **whole_numbers(path, data),
    )
    trace = open_trace(name_from_here(data["trace"], path.parent))
    service = service_of(
        trace,
        engine=serving.engine,
        service_seconds=parse_duration(serving.service),
        slots=serving.slots,
        load_factor=serving.load,
        seed=seed,
    )
    return ScalingRuns(
        study,
        service,
        serving,
        f"{trace.meta.fingerprint}|{asdict(serving)}|{study.windows + study.held_out}|{VERSION}|{seed}",
        store=store,
        seed=seed,
    )
