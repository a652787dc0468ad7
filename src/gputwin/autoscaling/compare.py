"""Scaling rules side by side on one trace: settings chosen on its first part, results on the rest, foresight beside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from gputwin.autoscaling.candidates import COMPARED, Scope, settings_of
from gputwin.autoscaling.cost import one_price
from gputwin.autoscaling.decisions.interface import Rule
from gputwin.autoscaling.decisions.registry import rule_to_plain
from gputwin.autoscaling.foresight import Foresight, cheapest_course
from gputwin.autoscaling.oracle import best_in_hindsight, occupancy
from gputwin.autoscaling.score import Score, Terms, preference, score, work_seconds
from gputwin.autoscaling.serving.outlook import Outlook, outlook
from gputwin.autoscaling.serving.run import ServedRun, Setting, serve
from gputwin.autoscaling.serving.system import Engine, Load, Slots
from gputwin.autoscaling.serving.workload import Service
from gputwin.autoscaling.serving.world import Floats
from gputwin.core.errors import UserError
from gputwin.core.units import DAY, HOUR, MINUTE

FORESIGHT = "foresight"
"""The rule that knows the future: the best plan in hindsight, simulated."""
_SHARES = (0.6, 0.8, 1.0, 1.25)
"""Of a replica's slots in flight to aim at; above 1 some requests wait."""
_BATCH_SHARES = (0.12, 0.25, 0.5)
"""Of a batch's sequences: beyond that prompts wait for each other."""
_MOST_STATES = 40_000_000
"""Of the dynamic programme: bins × replicas × waiting units; longer traces get wider bins."""
_LEAST_REQUESTS = 100


@dataclass(frozen=True)
class Options:
    """What the user sets; None is chosen from the trace."""

    rules: Sequence[str] = COMPARED
    target_seconds: float | None = None
    period: float | None = None
    boot_seconds: float = 60.0
    minimum: int = 1
    maximum: int = 100
    price_per_hour: float = 1.0
    penalty_per_second: float | None = None
    """Per request and second beyond the target; None: what a replica costs per second."""
    first_part: float = 0.5
    violation_budget: float = 0.01
    """Share of minutes that may be violated when settings are chosen."""
    given: Sequence[tuple[str, Rule[Any]]] = ()
    """Rules of the user's own, by name: shown as they are, nothing is chosen."""

    @property
    def penalty_rate(self) -> float:
        """Return what a request's second beyond the target costs."""
        return self.price_per_hour / HOUR if self.penalty_per_second is None else self.penalty_per_second


@dataclass(frozen=True)
class Row:
    """A rule with its chosen setting: how it went on the first part and on the rest."""

    rule: str
    setting: str
    parameters: dict[str, Any]
    chosen_on: Score
    shown_on: Score
    run: ServedRun


@dataclass(frozen=True)
class Comparison:
    """The table, and what is needed to draw it."""

    rows: tuple[Row, ...]
    bound: Foresight
    outlook: Outlook
    options: Options
    target_seconds: float
    split_seconds: float
    shown: Setting
    need: Floats
    requests: tuple[int, int]
    """On the first part and on the rest."""
    is_first_token: bool
    notes: tuple[str, ...]
    tried: int

    def row(self, rule: str) -> Row:
        """Return a rule's row."""
        return next(r for r in self.rows if r.rule == rule)

    def verdicts(self) -> tuple[str, ...]:
        """Return what the table says, in sentences."""
        from gputwin.autoscaling.verdict import verdicts

        return verdicts(self)

    def to_json(self) -> dict[str, Any]:
        """Return the table as plain data."""
        from gputwin.autoscaling.verdict import to_json

        return to_json(self)


def compare(service: Service, options: Options, progress: Callable[[str], None] = lambda step: None) -> Comparison:
    """Return the comparison of `options.rules` on a service's requests."""
    load, system, span = service.load, service.system, service.span
    if len(load) < _LEAST_REQUESTS:
        raise UserError(f"{len(load)} requests are too few to compare rules on; at least {_LEAST_REQUESTS} are needed")
    if not 0.1 <= options.first_part <= 0.9:
        raise UserError(f"the first part must be 0.1 to 0.9 of the trace, not {options.first_part:g}")
    given = {"the SLA": options.target_seconds, "the time between decisions": options.period}
    for what, seconds in given.items():
        if seconds is not None and not 0 < seconds < math.inf:
            raise UserError(f"{what} must be longer than no time, not {seconds:g} s")
    period = (15.0 if span <= 2 * DAY else 60.0) if options.period is None else options.period
    split = math.floor(options.first_part * span / period) * period
    parts = (load.between(0.0, split), load.between(split, math.inf))
    if min(len(p) for p in parts) < _LEAST_REQUESTS // 4:
        raise UserError("one part of the trace has next to no requests; choose another --first-part")
    target = default_target(load, system) if options.target_seconds is None else options.target_seconds
    price = options.price_per_hour
    penalty = options.penalty_rate
    terms = Terms(target, one_price(price, penalty))
    fills = _fills(system)
    scope = Scope(
        fills,
        options.minimum,
        options.maximum,
        period,
        options.boot_seconds,
        _slack(load, system, target),
        price,
        _scv(load),
    )
    views = outlook(
        load.arrival, span, split, max(period, MINUTE if span > 4 * 3600 else period), options.boot_seconds + period
    )
    level = occupancy(parts[0], system, fills, split, period)
    begin = max(math.ceil(float(level[0][-max(int(600 / period), 1) :].mean()) / fills[1]), options.minimum)
    first = Setting(system, split, period, options.boot_seconds, options.maximum, begin)
    shown = replace(first, span=span - split)
    rows: list[Row] = []
    tried = 0
    full = float(system.slots) if isinstance(system, Slots) else fills[-1]
    need_first = level[0] / full
    demands = occupancy(parts[1], system, fills, span - split, period)
    need = demands[0] / full
    candidates = {name: list(settings_of(name, scope)) for name in options.rules}
    total = sum(len(found) for found in candidates.values())
    for name in options.rules:
        best: tuple[tuple[bool, float, float], str, Rule[Any], Score] | None = None
        for words, rule in candidates[name]:
            tried += 1
            progress(f"setting {tried} of {total}: {name}, {words}")
            found = score(serve(parts[0], first, rule, views), first, terms, need_first)
            key = preference(found, options.violation_budget)
            if best is None or key < best[0]:
                best = (key, words, rule, found)
        assert best is not None
        run = serve(parts[1], shown, best[2], views, split)
        rows.append(Row(name, best[1], rule_to_plain(best[2]), best[3], score(run, shown, terms, need), run))
    for name, rule in options.given:
        progress(f"{name}, as given")
        before = score(serve(parts[0], first, rule, views), first, terms, need_first)
        run = serve(parts[1], shown, rule, views, split)
        rows.append(Row(name, "as given", rule_to_plain(rule), before, score(run, shown, terms, need), run))
    progress("foresight")
    limits = (options.minimum, options.maximum, options.violation_budget)
    words, run = best_in_hindsight(parts[1], shown, terms, demands, fills, *limits, price)
    shown_on = score(run, shown, terms, need)
    for row in rows:
        # What a rule did could have been planned as well.
        if preference(row.shown_on, options.violation_budget) < preference(shown_on, options.violation_budget):
            words, run, shown_on = f"what {row.rule} did", row.run, row.shown_on
    rows.append(Row(FORESIGHT, words, {}, shown_on, shown_on, run))
    return Comparison(
        tuple(rows),
        _bound(parts[1], shown, options, price, penalty, target),
        views,
        options,
        target,
        split,
        shown,
        need,
        (len(parts[0]), len(parts[1])),
        isinstance(system, Engine),
        service.notes,
        tried,
    )


def default_target(load: Load, system: Slots | Engine) -> float:
    """Return a target for the response: 2 s to the first token, or half as long again as the 99th percentile of service."""
    if isinstance(system, Engine):
        return 2.0
    assert load.service is not None
    service = load.service
    if load.model_load is not None:
        service = service + load.model_load
    return float(f"{1.5 * float(np.quantile(service, 0.99)):.2g}")


def _slack(load: Load, system: Slots | Engine, target: float) -> float:
    if isinstance(system, Engine):
        return 0.5 * target
    assert load.service is not None
    return max(0.5 * (target - float(np.quantile(load.service, 0.95))), 0.05 * target)


def _scv(load: Load) -> float:
    if load.service is None or not load.service.mean() > 0:
        return 1.0
    return round(float(load.service.var() / load.service.mean() ** 2), 1)


def _fills(system: Slots | Engine) -> tuple[float, ...]:
    if isinstance(system, Slots):
        return tuple(s * system.slots for s in _SHARES)
    return tuple(float(round(s * system.sequences)) for s in _BATCH_SHARES)


def _bound(load: Load, shown: Setting, options: Options, price: float, penalty: float, target: float) -> Foresight:
    each = work_seconds(load, shown.system)
    width, states = shown.period, math.inf
    while states > _MOST_STATES:
        bins = math.ceil(shown.span / width)
        at = np.minimum((load.arrival / width).astype(np.int64), bins - 1)
        work = np.bincount(at, weights=each, minlength=bins)
        most = float(work.max()) / width
        states = bins * (most + 2) * (1.5 * most * (target / width + 1) + 2)
        width *= 2
    width /= 2
    return cheapest_course(
        work.astype(np.float64),
        width,
        boot_seconds=shown.boot_seconds,
        price_per_hour=price,
        penalty_per_second=penalty,
        work_per_request=float(each.mean()),
        allowed_seconds=target,
        minimum=options.minimum,
        first=shown.replicas,
    )


def plain_score(s: Score) -> dict[str, Any]:
    """Return a score as plain data, units in the names."""
    cost = s.cost
    rest = {k: v for k, v in asdict(s).items() if k != "cost"}
    seconds = ("p50_response", "p95_response", "p99_response", "p95_latency")
    named = {f"{k}_seconds" if k in seconds else k: v for k, v in rest.items()}
    return {
        "cost": cost.total,
        "compute_cost": cost.compute,
        "allocated_cost": cost.allocated,
        "idle_cost": cost.idle,
        "storage_cost": cost.storage,
        "network_cost": cost.network,
        "sla_penalty": cost.penalty,
        **named,
    }
