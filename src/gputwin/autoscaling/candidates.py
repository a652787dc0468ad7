"""The rules that are compared on a serving trace, each with the few settings that are tried on its first part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gputwin.autoscaling.decisions.hpa.spec import MetricTarget
from gputwin.autoscaling.decisions.interface import Rule
from gputwin.autoscaling.decisions.rules.hpa import Hpa
from gputwin.autoscaling.decisions.rules.hybrid import Hybrid
from gputwin.autoscaling.decisions.rules.keda import Keda, Trigger
from gputwin.autoscaling.decisions.rules.knative import Kpa
from gputwin.autoscaling.decisions.rules.predictive import Predictive
from gputwin.autoscaling.decisions.rules.threshold import Band, Threshold
from gputwin.core.errors import UserError
from gputwin.core.units import short_duration

COMPARED = ("threshold", "hpa", "knative", "predictive", "hybrid")
KNOWN = (*COMPARED, "keda")
_ALWAYS = 10**9


@dataclass(frozen=True)
class Scope:
    """What the settings depend on."""

    fills: tuple[float, ...]
    """Requests in flight per replica to aim at."""
    minimum: int
    maximum: int
    period: float
    boot_seconds: float
    wait_seconds: float
    """Wait that the target leaves beside the service itself."""
    price_per_hour: float
    service_scv: float


def settings_of(name: str, scope: Scope) -> Iterator[tuple[str, Rule[Any]]]:
    """Yield the settings of a rule to try, each with a name in words."""
    if name not in KNOWN:
        raise UserError(f"no rule '{name}' to compare; known: {', '.join(KNOWN)}")
    yield from _SETTINGS[name](scope)


def _threshold(s: Scope) -> Iterator[tuple[str, Rule[Any]]]:
    for fill in s.fills:
        for up_for, step in ((0.0, 2), (60.0, 1)):
            bands = (Band("concurrency_per_replica", fill, 0.6 * fill),)
            words = f"up above {fill:g} in flight for {short_duration(up_for)} by {step}"
            yield words, Threshold(s.minimum, s.maximum, bands, up_for, 300.0, step, 1)


def _hpa(s: Scope, windows: tuple[float, ...] = (60.0, 300.0)) -> Iterator[tuple[str, Hpa]]:
    for fill in s.fills:
        for window in windows:
            metric = MetricTarget("External", "concurrency", fill, "AverageValue")
            words = f"{fill:g} in flight per replica, down after {short_duration(window)}"
            yield words, Hpa(s.minimum, s.maximum, (metric,), downscale_window_s=window)


def _knative(s: Scope) -> Iterator[tuple[str, Rule[Any]]]:
    for fill in s.fills:
        for delay in (0.0, 300.0):
            words = f"{fill:g} in flight per replica, scale-down delay {short_duration(delay)}"
            rule = Kpa(
                s.minimum,
                s.maximum,
                target=fill,
                total=2 * fill,
                burst_capacity=0.0,
                scale_down_delay_s=delay,
            )
            yield words, rule


def _keda(s: Scope) -> Iterator[tuple[str, Rule[Any]]]:
    for fill in s.fills:
        words = f"{fill:g} in flight per replica, to zero after {short_duration(300.0)}"
        yield words, Keda(0, s.maximum, (Trigger("concurrency", fill),), cooldown_s=300.0)


def _base(s: Scope, fill: float, quantile: float) -> Predictive:
    return Predictive(
        s.minimum,
        s.maximum,
        quantile,
        horizon_s=s.boot_seconds + s.period,
        wait_s=s.wait_seconds,
        service_scv=s.service_scv,
        slots=max(round(fill), 1),
        late_after_s=_ALWAYS,
    )


def _predictive(s: Scope) -> Iterator[tuple[str, Rule[Any]]]:
    for fill in _slots(s):
        for quantile in (0.5, 0.8, 0.95, 0.99):
            words = f"quantile {quantile:g}, {fill:g} requests per replica"
            yield words, _base(s, fill, quantile)


def _hybrid(s: Scope) -> Iterator[tuple[str, Rule[Any]]]:
    for fill, burst in _bases(s):
        for quantile in (0.2, 0.5, 0.8, 0.95):
            for keep in (0.0, 60.0, 300.0):
                metric = MetricTarget("External", "concurrency", burst, "AverageValue")
                rule = Hybrid(
                    s.minimum,
                    s.maximum,
                    _base(s, fill, quantile),
                    Hpa(s.minimum, s.maximum, (metric,), downscale_window_s=0.0),
                    s.price_per_hour,
                    None,
                    keep * s.price_per_hour / 3600.0,
                )
                words = f"base at quantile {quantile:g}, {fill:g} per replica; burst above {burst:g} in flight"
                yield f"{words}; spare ones stay {short_duration(keep)}", rule


def _bases(s: Scope) -> Iterator[tuple[float, float]]:
    """Yield requests per replica for the base, and in flight per replica above which the burst adds some."""
    whole = _slots(s)
    for burst in (s.fills[0], s.fills[-1]):
        yield min(whole, key=lambda fill: abs(fill - burst)), burst


def _slots(s: Scope) -> tuple[float, ...]:
    """Return the fills as whole requests, each once."""
    return tuple(sorted({float(max(round(f), 1)) for f in s.fills}))


_SETTINGS = {
    "threshold": _threshold,
    "hpa": _hpa,
    "knative": _knative,
    "keda": _keda,
    "predictive": _predictive,
    "hybrid": _hybrid,
}
