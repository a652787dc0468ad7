"""A rule at work on a serving system: at each decision period it sees an observation, and its decision is applied."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gputwin.autoscaling.decisions.interface import Autoscaler, LoadForecast, Observation, Rule, tick_of
from gputwin.autoscaling.serving.outlook import Outlook
from gputwin.autoscaling.serving.simulator import Simulator
from gputwin.autoscaling.serving.system import Engine, Load, Slots
from gputwin.autoscaling.serving.world import (
    N_ARRIVED,
    N_LAUNCHED,
    N_RUNNING,
    N_SERVED,
    N_WAITING,
    T_READY,
    T_RUNNING,
    T_WAITING,
    Floats,
)

_RECENT = 200
"""Completed requests that recent service times and latencies are taken from."""
_LONGEST_OVERTIME = 6 * 3600.0


@dataclass(frozen=True)
class Setting:
    """What is the same for every rule that is compared."""

    system: Slots | Engine
    span: float
    """s from the first possible arrival to the end; requests still there are served after it."""
    period: float = 15.0
    """Between decisions of rules without a tick of their own, and between rows of the series."""
    boot_seconds: float = 60.0
    most_replicas: int = 100
    replicas: int = 1
    """At the start."""
    queue_limit: int | None = None


@dataclass
class Series:
    """What was seen in each period, and what was decided in it: the target at its end, and why it changed."""

    time: list[float] = field(default_factory=list)
    arrivals: list[int] = field(default_factory=list)
    in_flight: list[float] = field(default_factory=list)
    """Mean over the period, waiting and running."""
    waiting: list[int] = field(default_factory=list)
    up: list[int] = field(default_factory=list)
    target: list[int] = field(default_factory=list)
    changes: list[int] = field(default_factory=list)
    """Of the target within the period; a rule with a tick of its own may change it more than once."""
    reason: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ServedRun:
    """A finished run: the simulator with every request's outcome, and the decisions."""

    simulator: Simulator
    series: Series
    end: float
    """The end of the period in which the last request was done, at least the span: replicas are paid for until then."""

    def response_seconds(self) -> Floats:
        """Return s to the first token (LLM engines) or to the end; so far, where it has not come; NaN if refused."""
        run = self.simulator
        has_tokens = run.load.service is None
        response = run.first_token_seconds() if has_tokens else run.latencies()
        pending = np.isnan(response) & ~run.refused()
        return np.where(pending, self.end - run.load.arrival, response)

    @property
    def cold_starts(self) -> int:
        """Return replicas launched after the start."""
        return int(self.simulator.world.counters[N_LAUNCHED])


def serve(
    load: Load,
    setting: Setting,
    rule: Rule[Any],
    outlook: Outlook | None = None,
    offset: float = 0.0,
    metrics: Callable[[Observation], Observation] | None = None,
) -> ServedRun:
    """Return the run of `load` under `rule`; the outlook's clock is `offset` seconds ahead of the run's.

    `metrics` may replace what the rule sees, as a broken metrics source would.
    """
    run = _simulator(load, setting)
    tick = tick_of(rule) or setting.period
    scaler, series, watch = Autoscaler(rule), Series(), _Watch(run, setting, setting.period)
    sensor = watch if tick == setting.period else _Watch(run, setting, tick)
    target, rows, ticks = setting.replicas, 0, 0
    reasons: list[str] = []
    changes = 0
    while (time := rows * setting.period) < setting.span or (
        watch.in_flight_now() > 0 and time < setting.span + _LONGEST_OVERTIME
    ):
        row_ends = (rows + 1) * setting.period
        while (ticks + 1) * tick <= row_ends + 1e-9:
            ticks += 1
            run.advance(ticks * tick)
            seen = sensor.observe(ticks * tick, target, outlook, offset)
            decision = scaler.decide(seen if metrics is None else metrics(seen))
            if decision.replicas != target:
                target, changes = decision.replicas, changes + 1
                reasons += decision.reasons
                run.scale(target)
        rows += 1
        if sensor is not watch:
            run.advance(row_ends)
            watch.observe(row_ends, target, None, offset)
        watch.note(series, row_ends, target, reasons, changes)
        reasons, changes = [], 0
    return ServedRun(run, series, max(run.now, setting.span))


def replay(load: Load, setting: Setting, plan: Sequence[tuple[float, int]]) -> ServedRun:
    """Return the run of `load` under a plan made beforehand: (time, replicas wanted from then on)."""
    run = _simulator(load, setting)
    series, watch = Series(), _Watch(run, setting, setting.period)
    target, time, following = setting.replicas, 0.0, 0
    while time < setting.span or (watch.in_flight_now() > 0 and time < setting.span + _LONGEST_OVERTIME):
        until, changes = time + setting.period, 0
        while following < len(plan) and plan[following][0] <= until:
            run.advance(max(plan[following][0], time))
            changes += plan[following][1] != target
            target = plan[following][1]
            run.scale(target)
            following += 1
        time = until
        run.advance(time)
        watch.observe(time, target, None, 0.0)
        watch.note(series, time, target, (), changes)
        if following == len(plan) and target == 0 and watch.in_flight_now():
            target = 1
            run.scale(1)
    return ServedRun(run, series, max(run.now, setting.span))


def _simulator(load: Load, setting: Setting) -> Simulator:
    return Simulator(
        load,
        setting.system,
        replicas=setting.replicas,
        most_replicas=setting.most_replicas,
        boot_seconds=setting.boot_seconds,
        queue_limit=setting.queue_limit,
    )


class _Watch:
    """Turns the simulator's counters into observations, one period at a time."""

    def __init__(self, run: Simulator, setting: Setting, period: float) -> None:
        self.run, self.period = run, period
        self.slots = setting.system.slots if isinstance(setting.system, Slots) else setting.system.sequences
        self.clocks: list[float] = run.world.clocks.tolist()
        self.arrived = 0
        self.seen: dict[str, float] = {}
        self.forecast: LoadForecast | None = None

    def in_flight_now(self) -> int:
        counters = self.run.world.counters
        return int(counters[N_WAITING] + counters[N_RUNNING])

    def observe(self, time: float, target: int, outlook: Outlook | None, offset: float) -> Observation:
        w = self.run.world
        clocks = w.clocks.tolist()
        before, self.clocks = self.clocks, clocks
        period = self.period
        running = (clocks[T_RUNNING] - before[T_RUNNING]) / period
        in_flight = running + (clocks[T_WAITING] - before[T_WAITING]) / period
        ready = (clocks[T_READY] - before[T_READY]) / period
        arrived = int(w.counters[N_ARRIVED])
        arrivals, self.arrived = arrived - self.arrived, arrived
        up, booting, draining = self.run.states()
        metrics: dict[str, float | None] = {
            "concurrency": in_flight,
            "concurrency_per_replica": in_flight / max(ready, 1.0),
            "gpu": min(running / (ready * self.slots), 1.0) if ready > 0 else 0.0,
        }
        self.seen = {"arrivals": arrivals, "in_flight": in_flight, "up": up}
        service, latency = self._recent()
        return Observation(
            time_s=time,
            replicas=target,
            ready=up,
            starting=booting,
            stopping=draining,
            metrics=metrics,
            queue_length=float(w.counters[N_WAITING]),
            in_flight=in_flight,
            arrival_rate_per_s=arrivals / period,
            service_time_s=service,
            latency_s={"p95": latency},
            forecast=None if outlook is None else self._forecast(outlook, time, offset),
        )

    def _forecast(self, outlook: Outlook, time: float, offset: float) -> LoadForecast:
        """Return the latest forecast by the run's clock."""
        made_at = outlook.made_at(time + offset) - offset
        if self.forecast is None or self.forecast.made_at_s != made_at:
            self.forecast = replace(outlook.at(time + offset), made_at_s=made_at)
        return self.forecast

    def _recent(self) -> tuple[float | None, float | None]:
        """Return the mean service time and the 95th percentile of latencies of the latest requests served."""
        w = self.run.world
        done = int(w.counters[N_SERVED])
        if not done:
            return None, None
        latest = w.requests.completed[max(done - _RECENT, 0) : done]
        finish = w.requests.finish[latest]
        service = float((finish - w.requests.start[latest]).mean())
        latency = np.partition(finish - w.requests.arrival[latest], int(0.95 * (len(latest) - 1)))
        # Two digits: more would only defeat the memory of the queueing model.
        digits = 10.0 ** (1 - math.floor(math.log10(max(service, 1e-9))))
        return round(service * digits) / digits, float(latency[int(0.95 * (len(latest) - 1))])

    def note(self, series: Series, time: float, target: int, reasons: Sequence[str], changes: int) -> None:
        """Add what was last observed, and what was decided, to the series."""
        series.time.append(time)
        series.arrivals.append(int(self.seen["arrivals"]))
        series.in_flight.append(self.seen["in_flight"])
        series.waiting.append(int(self.run.world.counters[N_WAITING]))
        series.up.append(int(self.seen["up"]))
        series.target.append(target)
        series.changes.append(changes)
        series.reason.append("; ".join(reasons))
