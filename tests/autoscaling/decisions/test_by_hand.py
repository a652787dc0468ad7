"""Decision sequences worked out by hand, one for each rule; each is carried out before the next observation."""

from __future__ import annotations

from typing import Any

from gputwin.autoscaling.decisions.interface import Autoscaler, Decision, LoadForecast, Observation
from gputwin.autoscaling.decisions.registry import make_rule


def sizes(rule: Any, start: int, seen: list[tuple[float, dict[str, Any]]]) -> list[int]:
    return [decision.replicas for decision in decisions(rule, start, seen)]


def decisions(rule: Any, start: int, seen: list[tuple[float, dict[str, Any]]]) -> list[Decision]:
    autoscaler, size, made = Autoscaler(rule), start, []
    for time_s, fields in seen:
        made.append(autoscaler.decide(Observation(time_s, size, **{"ready": size, **fields})))
        size = made[-1].replicas
    return made


def gpu(value: float) -> dict[str, Any]:
    return {"metrics": {"gpu": value}}


def test_threshold() -> None:
    rule = make_rule("threshold", up_for_s=60, down_for_s=300, bands=[{"metric": "gpu", "up": 0.8, "down": 0.5}])
    seen = [
        (0.0, gpu(0.9)),  # high since 0: waits
        (60.0, gpu(0.9)),  # high for 60 s: 2 -> 3
        (120.0, gpu(0.6)),  # between: nothing
        (180.0, gpu(0.4)),  # low since 180
        (420.0, gpu(0.4)),  # low for 240 of 300 s
        (480.0, gpu(0.4)),  # 300 s; on 2 it would be 0.6, below 0.8: 3 -> 2
        (540.0, gpu(0.45)),  # low since 540
        (840.0, gpu(0.45)),  # 300 s; on 1 it would be 0.9: stays
    ]
    assert sizes(rule, 2, seen) == [2, 3, 3, 3, 3, 2, 2, 2]
    made = decisions(rule, 2, seen)
    assert made[1].reasons[0].endswith(" for 1 min")
    assert made[4].reasons[0] == "all metrics low for 4 min of 5 min"
    last = made[-1]
    assert "would rise to 0.9" in last.reasons[0]
    assert [entry.replicas for entry in last.alternatives] == [3, 1]


def test_threshold_up_if_any_down_if_all() -> None:
    bands = [
        {"metric": "gpu", "up": 0.8, "down": 0.5},
        {"metric": "queue_length", "up": 10, "down": 2, "per_replica": False},
    ]
    rule = make_rule("threshold", up_for_s=0, down_for_s=0, bands=bands)
    seen = [
        (0.0, {**gpu(0.1), "queue_length": 11}),  # the queue alone is high: up
        (15.0, {**gpu(0.1), "queue_length": 5}),  # the GPU alone is low: nothing
        (30.0, {**gpu(0.1), "queue_length": 1}),  # both low: down
    ]
    assert sizes(rule, 2, seen) == [3, 3, 2]


def test_hpa() -> None:
    """Target 10 in flight per replica, tolerance 0.1, at most 2 × current or 4, 300 s stabilisation downwards."""
    rule = make_rule("hpa", maximum=20, metrics=[{"type": "External", "name": "in_flight", "target": 10}])
    seen = [
        (0.0, {"in_flight": 21}),  # 21 / (10 × 2) = 1.05: within tolerance
        (15.0, {"in_flight": 45}),  # ceil(4.5) = 5, but at most max(2 × 2, 4) = 4
        (30.0, {"in_flight": 45}),  # 45 / 40 = 1.125: 5
        (45.0, {"in_flight": 200}),  # 20, at most 10
        (60.0, {"in_flight": 200}),  # 20
        (75.0, {"in_flight": 30}),  # 3, but 20 was recommended 15 s ago
        (360.0, {"in_flight": 30}),  # 20 was recommended 300 s ago: still counts
        (361.0, {"in_flight": 30}),  # 301 s ago: 3
    ]
    assert sizes(rule, 2, seen) == [2, 4, 5, 10, 20, 20, 20, 3]
    made = decisions(rule, 2, seen)
    assert made[1].rule == "hpa:ScaleUpLimit"
    assert any("ScaleDownStabilized" in reason for reason in made[5].reasons)
    assert ("hpa:unstabilized", 3) in [(entry.rule, entry.replicas) for entry in made[5].alternatives]


def test_hpa_takes_the_maximum_and_floors_utilisation() -> None:
    metrics = [
        {"type": "Resource", "name": "gpu", "target": 50, "target_type": "Utilization"},
        {"type": "Pods", "name": "tokens", "target": 100},
    ]
    rule = make_rule("hpa", maximum=20, metrics=metrics)
    # 0.559 floors to 55 %: 55 / 50 = 1.1 is within tolerance, so 4; 130 / 100 × 4 = 5.2: 6.
    made = decisions(rule, 4, [(0.0, {"metrics": {"gpu": 0.559, "tokens": 130.0}})])[0]
    assert made.replicas == 6
    assert {entry.rule: entry.replicas for entry in made.alternatives} == {"hpa:gpu": 4, "hpa:tokens": 6}


def test_hpa_policies() -> None:
    """Up by 2 pods a minute; down by half a minute, no stabilisation."""
    behavior = {
        "up": {"stabilization_s": 0, "policies": [{"type": "Pods", "value": 2, "period_s": 60}]},
        "down": {"stabilization_s": 0, "policies": [{"type": "Percent", "value": 50, "period_s": 60}]},
    }
    metric = [{"type": "External", "name": "in_flight", "target": 1}]
    rule = make_rule("hpa", maximum=20, metrics=metric, behavior=behavior)
    seen = [
        (0.0, {"in_flight": 10}),  # 2 + 2
        (30.0, {"in_flight": 10}),  # 2 added 30 s ago: no more
        (60.0, {"in_flight": 10}),  # 60 s ago no longer counts: 6
        (180.0, {"in_flight": 1}),  # 6 × 0.5
        (240.0, {"in_flight": 1}),  # int(3 × 0.5) = 1
    ]
    assert sizes(rule, 2, seen) == [4, 4, 6, 3, 1]


def test_keda() -> None:
    """Activation above 2, target 5 per replica, 300 s cool-down on the step to zero only."""
    rule = make_rule("keda", triggers=[{"metric": "queue_length", "target": 5, "activation": 2}], cooldown_s=300)
    seen = [
        (0.0, {"queue_length": 2}),  # 2 is not above 2
        (30.0, {"queue_length": 3}),  # active: 0 -> 1
        (60.0, {"queue_length": 19}),  # ceil(19 / 5) = 4
        (90.0, {"queue_length": 0}),  # cooling down; the HPA remembers 4
        (360.0, {"queue_length": 0}),  # last active 300 s ago, at 60: exactly 300 s still cools down; HPA: 300 s too
        (361.0, {"queue_length": 0}),  # 301 s: to zero
    ]
    assert sizes(rule, 0, seen) == [0, 1, 4, 4, 4, 0]


def test_keda_activation_wins_over_the_target() -> None:
    rule = make_rule("keda", triggers=[{"metric": "lag", "target": 1, "activation": 50}], cooldown_s=0)
    made = decisions(rule, 4, [(10.0, {"metrics": {"lag": 40.0}})])[0]
    assert made.replicas == 0
    assert made.alternatives[0].replicas == 40


def test_keda_idle_fallback_and_formula() -> None:
    idle = make_rule("keda", minimum=3, idle=0, cooldown_s=60)
    assert sizes(idle, 0, [(0.0, {"queue_length": 0}), (30.0, {"queue_length": 1})]) == [0, 3]
    fallback = make_rule("keda", minimum=1, fallback={"failures": 2, "replicas": 6})
    missing: list[tuple[float, dict[str, Any]]] = [(30.0 * i, {}) for i in range(4)]
    # Where nothing is active KEDA's executor takes the replicas at the first failure, whatever the threshold is.
    assert sizes(fallback, 2, missing) == [6, 6, 6, 6]
    two = [{"metric": "queue_length", "target": 5}, {"metric": "lag", "target": 5}]
    beside = make_rule("keda", minimum=1, triggers=two, fallback={"failures": 2, "replicas": 6})
    # Another trigger is active: the HPA decides, for which failures 1 and 2 hold and the third stands for 6.
    assert sizes(beside, 2, [(30.0 * i, {"queue_length": 1}) for i in range(4)]) == [2, 2, 4, 6]
    none = make_rule("keda", minimum=0, cooldown_s=0, fallback={"failures": 0, "replicas": 0})
    assert sizes(none, 2, missing) == [2, 2, 2, 2]
    higher = make_rule(
        "keda", minimum=1, fallback={"failures": 0, "replicas": 6, "behavior": "currentReplicasIfHigher"}
    )
    assert sizes(higher, 9, missing[:1]) == [9]
    formula = make_rule(
        "keda",
        minimum=1,
        triggers=[{"metric": "queue_length", "target": 1}, {"metric": "in_flight", "target": 1, "label": "busy"}],
        formula={"text": "queue_length > 10 ? queue_length + busy : busy", "target": 4},
    )
    # 11 + 5 = 16: 4; 10 is not above 10, so 5: ceil(5 / 4) = 2, but 4 was recommended within 300 s.
    both = [(0.0, {"queue_length": 11, "in_flight": 5}), (15.0, {"queue_length": 10, "in_flight": 5})]
    assert sizes(formula, 2, both) == [4, 4]


def test_keda_utilisation_never_decides_about_zero() -> None:
    use = {"metric": "cpu", "target": 50, "target_type": "Utilization"}
    alone = make_rule("keda", triggers=[use], cooldown_s=0)
    # Idle: 0 % asks for none, but the HPA under KEDA keeps one; 90 / 50 × 2 = 3.6.
    assert sizes(alone, 1, [(0.0, {"metrics": {"cpu": 0.0}}), (600.0, {"metrics": {"cpu": 0.0}})]) == [1, 1]
    assert sizes(alone, 2, [(0.0, {"metrics": {"cpu": 0.9}})]) == [4]
    both = make_rule("keda", triggers=[use, {"metric": "queue_length", "target": 5}], cooldown_s=0)
    # The queue is empty, so it goes to zero although the CPU is busy.
    assert sizes(both, 2, [(10.0, {"metrics": {"cpu": 0.9}, "queue_length": 0})]) == [0]


def test_keda_jobs() -> None:
    rule = make_rule("keda-job", maximum=10)
    # 7 in the queue, 3 unfinished: 4 more; an accurate queue holds none of the 3, 1 of which waits: 6 more, room for 7.
    made = decisions(rule, 3, [(0.0, {"queue_length": 7, "starting": 1})])[0]
    assert made.replicas == 7
    assert {a.rule.split(":")[1]: a.replicas for a in made.alternatives} == {
        "default": 7,
        "custom": 7,
        "accurate": 9,
        "eager": 9,
    }


def test_knative() -> None:
    """Target 10 in flight; 60 s stable, 6 s panic; panic from twice the ready replicas on."""
    rule = make_rule("knative", target=10, total=10, stable_window_s=60, panic_window_s=6, grace_s=30)

    def averages(stable: float, panic: float) -> dict[str, Any]:
        return {"metrics": {"concurrency:stable": stable, "concurrency:panic": panic}}

    seen = [
        (0.0, averages(12, 12)),  # ceil(1.2) = 2, and 2 / 1 reaches the panic threshold
        (2.0, averages(15, 38)),  # 4 / 2 = 2: panic goes on, 4
        (30.0, averages(10, 10)),  # panic since 2: never fewer
        (63.0, averages(5, 5)),  # 61 s after the last breach: stable again, max(1, floor(4 / 2)) = 2
        (65.0, averages(0, 0)),  # floor(2 / 2) = 1
        (67.0, averages(0, 0)),  # floor(1 / 2) = 0: the last replica stays 30 s
        (96.0, averages(0, 0)),  # 29 s
        (97.0, averages(0, 0)),  # 30 s: zero
        (99.0, averages(1, 4)),  # wakes up
    ]
    assert sizes(rule, 1, seen) == [2, 4, 4, 2, 1, 1, 1, 0, 1]


def test_knative_keeps_its_own_windows() -> None:
    rule = make_rule("knative", target=10, minimum=1, stable_window_s=60, panic_window_s=6)
    seen = [(2.0 * i, {"in_flight": 10.0}) for i in range(30)] + [(60.0, {"in_flight": 40.0})]
    last = decisions(rule, 1, seen)[-1]
    # Stable: 29 samples of 10 and one of 40, since the one at 0 s is 60 s old; panic: 10, 10 and 40.
    assert last.measures["stable"] == (29 * 10 + 40) / 30
    assert last.measures["panic"] == 20.0
    assert last.replicas == 2


def test_step() -> None:
    steps = {"up": [{"at": 0.7, "amount": 1}, {"at": 0.9, "amount": 3}], "down": [{"at": 0.3, "amount": 1}]}
    rule = make_rule("step", warmup_s=60, **steps)
    seen = [
        (0.0, gpu(0.75)),  # +1
        (30.0, gpu(0.95)),  # warms up
        (60.0, gpu(0.95)),  # +3
        (120.0, gpu(0.5)),  # nothing
        (180.0, gpu(0.3)),  # −1: 0.3 × 6 / 5 = 0.36
    ]
    assert sizes(rule, 2, seen) == [3, 3, 6, 6, 5]
    percent = make_rule("step", kind="percent", up=[{"at": 0.7, "amount": 50}], down=[], warmup_s=0)
    # 50 % of 3 is 1.5, floored to 1; of 1 it is 0, at least 1.
    assert sizes(percent, 3, [(0.0, gpu(0.8))]) == [4]
    assert sizes(percent, 1, [(0.0, gpu(0.8))]) == [2]


INNER = {"rule": "hpa", "maximum": 100, "up_limit_factor": 100, "downscale_window_s": 0}
WISH = {**INNER, "metrics": [{"type": "External", "name": "in_flight", "target": 1}]}


def wants(*wished: tuple[float, int]) -> list[tuple[float, dict[str, Any]]]:
    return [(time_s, {"in_flight": n}) for time_s, n in wished]


def test_velocity() -> None:
    rule = make_rule("velocity", inner=WISH, factor=0.5, most_up=4, down_factor=0.25, most_down=3)
    # Up: min(floor(4 × 0.5), 4) = 2, then 3, then min(floor(9 × 0.5), 4) = 4. Down: min(floor(13 × 0.25), 3) = 3.
    made = decisions(rule, 4, wants((0, 40), (15, 40), (30, 40), (45, 1)))
    assert [d.replicas for d in made] == [6, 9, 13, 10]
    assert made[0].rule == "velocity"
    assert (made[0].alternatives[0].rule, made[0].alternatives[0].replicas) == ("hpa", 40)


def test_cooldown() -> None:
    rule = make_rule("cooldown", inner=WISH, out_s=60, in_s=300)
    seen = wants((0, 4), (30, 6), (60, 6), (120, 3), (359, 3), (360, 3), (400, 5), (420, 2))
    # Out at 0; 30 s later no; 60 s yes. In: 300 s after 60. A scale-in at 360 does not delay the scale-out at 400.
    assert sizes(rule, 2, seen) == [4, 4, 6, 6, 6, 3, 5, 5]


def test_backoff() -> None:
    rule = make_rule("backoff", inner=WISH, base_s=60, longest_s=200, quiet_s=1000)
    seen = wants((0, 4), (30, 2), (60, 2), (90, 4), (180, 2), (329, 2), (330, 2))
    # Up at 0. First reversal waits 60 s. Up again at 90 (second reversal, not delayed). Third: 60 × 2² = 240, at most 200.
    assert sizes(rule, 2, seen) == [4, 4, 2, 4, 4, 2, 2]
    assert sizes(rule, 2, wants((0, 4), (60, 2), (90, 4), (289, 2), (290, 2))) == [4, 2, 4, 4, 2]


def test_bounds_and_warm_pool() -> None:
    rule = make_rule("bounds", inner=WISH, minimum=3, maximum=8, warm=2)
    # 4 + 2 warm; 9 + 2 above the maximum; 0 + 2 below the minimum; a missing metric changes nothing.
    assert sizes(rule, 3, [*wants((0, 4), (15, 9), (30, 1)), (45.0, {})]) == [6, 8, 3, 3]


def test_scheduled() -> None:
    hour = 3600.0
    windows = [
        {"from_s": 8 * hour, "until_s": 18 * hour, "replicas": 5},
        {"from_s": 22 * hour, "until_s": 26 * hour, "replicas": 3},
    ]
    rule = make_rule("scheduled", windows=windows, otherwise=1)
    times = [7.9, 8.0, 17.9, 18.0, 22.5, 24.0, 25.9, 26.0, 32.0]
    assert sizes(rule, 1, [(t * hour, {}) for t in times]) == [1, 5, 5, 1, 3, 3, 3, 1, 5]
    floor = make_rule("scheduled", windows=windows, otherwise=1, inner=WISH)
    assert sizes(floor, 1, wants((8 * 3600, 2), (9 * 3600, 7), (19 * 3600, 2))) == [5, 7, 2]


def test_predictive() -> None:
    """Service 1 s; 95 % wait at most 1 s.

    At 2 requests/s: Erlang C of 3 servers is 4/9, 4/9 e^−1 = 0.16 > 0.05; of 4 it is 4/23, 4/23 e^−2 = 0.024: 4.
    """
    forecast = LoadForecast(0.0, 60.0, {0.5: (0.5, 0.5, 0.5), 0.9: (1.0, 2.0, 50.0)})
    rule = make_rule("predictive", service_s=1.0, wait_s=1.0, share=0.95, horizon_s=120)
    seen = {"forecast": forecast, "arrival_rate_per_s": 1.0}
    assert sizes(rule, 1, [(0.0, seen)]) == [4]
    # From 30 s on the third step is within 120 s: more than 50 replicas.
    assert sizes(rule, 1, [(30.0, seen)])[0] > 50
    # Two requests at once on each replica: half of them.
    assert sizes(make_rule("predictive", service_s=1.0, horizon_s=120, slots=2), 1, [(0.0, seen)]) == [2]


def test_hybrid() -> None:
    """Price 1, penalty 9: quantile 0.9. Start cost 0.05 at price 1 an hour: spare replicas stay 180 s."""
    steady = LoadForecast(0.0, 60.0, {0.5: (1.0,) * 60, 0.9: (2.0,) * 60})
    rule = make_rule(
        "hybrid",
        base={"rule": "predictive", "service_s": 1.0, "quantile": 0.5},
        reactive=WISH,
        price_per_hour=1.0,
        penalty_per_hour=9.0,
        start_cost=0.05,
    )

    def seen(time_s: float, n: int, forecast: LoadForecast | None = steady) -> tuple[float, dict[str, Any]]:
        return time_s, {"in_flight": n, "forecast": forecast}

    made = decisions(
        rule,
        1,
        [
            seen(0, 1),  # base: 2 requests/s need 4
            seen(60, 7),  # burst: 7
            seen(120, 1),  # spare ones stay
            seen(239, 1),  # 179 s since 7 were wanted
            seen(240, 1),  # 180 s: back to the base
            seen(300, 1, None),  # no forecast: nothing is taken away
            seen(360, 6, None),  # but the burst may add
        ],
    )
    assert [d.replicas for d in made] == [4, 7, 7, 7, 4, 4, 6]
    assert [d.rule for d in made[:3]] == ["hybrid:predictive", "hybrid:hpa", "hybrid:break-even"]
    assert made[5].held
    assert "there is no forecast" in made[5].reasons[0]


def test_the_burst_of_a_hybrid_may_reach_its_maximum() -> None:
    """30 replicas at 100 % of their CPU, 80 % wanted: 30 × 1.25 = 37.5, so 38, however little the forecast expects."""
    forecast = LoadForecast(0.0, 60.0, {0.9: (1.0,) * 9})
    seen = {"metrics": {"cpu": 1.0}, "forecast": forecast, "service_time_s": 1.0}
    assert sizes(make_rule("hybrid", maximum=60), 30, [(0.0, seen)]) == [38]
    assert sizes(make_rule("hybrid", maximum=35), 30, [(0.0, seen)]) == [35]
