"""A rule sees what happened in the period, its decision is applied, and broken metrics change nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest

from gputwin.autoscaling.decisions.hpa.spec import MetricTarget
from gputwin.autoscaling.decisions.interface import Decision, Observation, tick_of
from gputwin.autoscaling.decisions.registry import make_rule
from gputwin.autoscaling.decisions.rules.hpa import Hpa
from gputwin.autoscaling.decisions.rules.knative import Kpa
from gputwin.autoscaling.serving.outlook import LEVELS, outlook
from gputwin.autoscaling.serving.run import Setting, replay, serve
from gputwin.autoscaling.serving.system import Load, Slots
from gputwin.core.rng import stream

HPA = Hpa(1, 20, (MetricTarget("External", "concurrency", 1.0, "AverageValue"),), downscale_window_s=0.0)


@dataclass(frozen=True)
class Script:
    """Asks for given numbers in turn, and keeps what it saw."""

    name: ClassVar[str] = "script"
    asked: tuple[int, ...]
    seen: list[Observation] = field(default_factory=list)
    minimum: int = 0
    maximum: int = 100

    def start(self) -> int:
        return 0

    def decide(self, observation: Observation, memory: int) -> tuple[Decision, int]:
        self.seen.append(observation)
        wanted = self.asked[min(memory, len(self.asked) - 1)]
        return Decision(observation.time_s, wanted, self.name, ("as written",)), memory + 1


def steady(count: int = 40, gap: float = 1.0, service: float = 2.0) -> Load:
    return Load(np.arange(count) * gap + 0.5, service=np.full(count, service))


def test_a_rule_sees_the_period_before() -> None:
    script = Script((4, 2, 2, 3))
    setting = Setting(Slots(), span=40.0, period=10.0, boot_seconds=5.0, replicas=4)
    run = serve(steady(), setting, script)
    first, second = script.seen[:2]
    assert first.time_s == 10.0
    assert (first.replicas, first.ready, first.starting) == (4, 4, 0)
    assert first.arrival_rate_per_s == 1.0
    assert first.service_time_s == 2.0
    # Ten requests of two seconds, the last two not done yet: 16 s + 1.5 s + 0.5 s of service in 10 s.
    assert first.in_flight == pytest.approx(1.8)
    assert first.metrics["gpu"] == pytest.approx(1.8 / 4)
    assert first.latency_s["p95"] == pytest.approx(2.0)
    assert second.replicas == 4
    # The last request is done a period after the span.
    assert run.series.target == [4, 2, 2, 3, 3]
    assert run.series.reason == ["", "as written", "", "as written", ""]
    assert run.series.up[:3] == [4, 4, 2]
    assert not run.simulator.refused().any()
    assert run.end >= 40.0


def test_knative_decides_every_two_seconds_whatever_the_period() -> None:
    # 10 requests at 20.5 s on one replica: a window of 6 s of which 1.5 s have passed holds 15 ÷ 6 = 2.5 in flight.
    load = Load(np.array([0.5, *[20.5] * 10]), service=np.full(11, 8.0))
    kpa = Kpa(1, 20, target=1.0, total=1.0, burst_capacity=0.0)
    setting = Setting(Slots(), span=60.0, period=15.0, boot_seconds=1.0, replicas=1)
    seen: list[Observation] = []

    def keep(observation: Observation) -> Observation:
        seen.append(observation)
        return observation

    run = serve(load, setting, kpa, metrics=keep)
    assert [o.time_s for o in seen[:4]] == [2.0, 4.0, 6.0, 8.0]
    # Rows are still one per period, and count the changes within it.
    assert run.series.time[:3] == [15.0, 30.0, 45.0]
    launched = np.sort(run.simulator.lives()[:, 0])
    assert 22.0 <= launched[1] <= 24.0
    assert run.series.changes[1] >= 2
    assert "panic mode" in run.series.reason[1]


def test_a_limit_around_a_rule_decides_as_often_as_the_rule() -> None:
    assert tick_of(make_rule("bounds", inner={"rule": "knative"})) == 2.0
    assert tick_of(HPA) is None


def test_everybody_is_served_though_the_span_is_over() -> None:
    run = serve(steady(40, 1.0, 9.0), Setting(Slots(), span=40.0, period=10.0, replicas=2), Script((2,)))
    assert run.end > 40.0
    assert np.isfinite(run.response_seconds()).all()
    assert run.simulator.latencies()[-1] == pytest.approx(run.response_seconds()[-1])


@pytest.mark.parametrize("value", [None, math.nan, -1.0, math.inf])
def test_broken_metrics_change_nothing(value: float | None) -> None:
    def broken(seen: Observation) -> Observation:
        if seen.time_s < 100.0:
            return seen
        return seen._replace(metrics={"concurrency": value}, in_flight=value)

    run = serve(steady(300), Setting(Slots(), span=300.0, period=10.0, replicas=3), HPA, metrics=broken)
    at = run.series.time.index(100.0)
    assert len(set(run.series.target[at:])) == 1
    assert run.series.target[-1] == run.series.target[at - 1] >= 1


def test_a_rule_follows_the_load() -> None:
    rng = stream(3, "load")
    arrival = np.sort(np.concatenate([rng.uniform(0, 600, 600), rng.uniform(200, 400, 1600)]))
    load = Load(arrival, service=np.full(len(arrival), 1.0))
    run = serve(load, Setting(Slots(), span=600.0, period=10.0, boot_seconds=10.0, replicas=2), HPA)
    target = np.array(run.series.target)
    assert target[30:38].mean() > 2 * target[10:18].mean()
    assert target[-3:].mean() < target[30:38].mean() / 2


def test_a_plan_is_replayed_at_its_times() -> None:
    run = replay(
        steady(), Setting(Slots(), span=40.0, period=10.0, boot_seconds=5.0, replicas=1), [(3.0, 3), (25.0, 2)]
    )
    lives = run.simulator.lives()
    assert sorted(lives[:, 0].tolist()) == [0.0, 3.0, 3.0]
    assert sorted(lives[:, 1].tolist()) == [0.0, 8.0, 8.0]
    assert run.series.up[:3] == [3, 3, 2]


def test_forecasts_use_only_what_came_before() -> None:
    rng = stream(4, "arrivals")
    arrival = np.sort(rng.uniform(0, 4 * 86_400.0, 8000))
    later = np.sort(np.concatenate([arrival[arrival < 3 * 86_400.0], rng.uniform(3 * 86_400.0, 4 * 86_400.0, 9000)]))
    span, first = 4 * 86_400.0, 2.5 * 86_400.0
    one, other = (outlook(a, span, first, 600.0, 1800.0) for a in (arrival, later))
    split = 3 * 144
    assert one.model == other.model
    np.testing.assert_array_equal(one.rates[: split + 1], other.rates[: split + 1])
    assert not np.array_equal(one.rates[split + 2 :], other.rates[split + 2 :])


def test_forecast_quantiles_cover_their_share() -> None:
    rng = stream(5, "arrivals")
    span, width = 20_000.0, 10.0
    arrival = np.sort(rng.uniform(0, span, 40_000))
    made = outlook(arrival, span, span / 2, width, 20.0)
    rate = np.bincount((arrival / width).astype(int), minlength=2000) / width
    origins = np.arange(1000, 1990)
    for i, level in enumerate(LEVELS):
        assert np.mean(rate[origins] <= made.rates[origins, i, 0]) == pytest.approx(level, abs=0.05)
    assert made.at(15.0).made_at_s == 10.0
