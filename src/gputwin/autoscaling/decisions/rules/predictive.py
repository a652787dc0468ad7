"""Predictive scaling: a forecast quantile of the arrival rate, and the replicas that serve it within the SLA."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import ClassVar

from gputwin.autoscaling.decisions.interface import Alternative, Decision, Observation, record
from gputwin.autoscaling.decisions.reading import check_limits, hold, read, within
from gputwin.autoscaling.decisions.registry import scaling_rule
from gputwin.autoscaling.decisions.staffing import forecast_rate, replicas_for
from gputwin.core.units import short_duration


@scaling_rule(
    "least replicas so that a share of requests waits no longer than the SLA at the forecast's quantile (Erlang C)",
    source="Gandhi et al., 'AutoScale', TOCS 2012; square-root staffing (Halfin and Whitt, 1981) by exact Erlang C",
)
@dataclass(frozen=True)
class Predictive:
    """Forecast plus queueing model. Without a usable forecast or service time it holds."""

    name: ClassVar[str] = "predictive"
    minimum: int = 1
    maximum: int = 100
    quantile: float = 0.9
    horizon_s: float = 300.0
    """How far ahead: at least the time a replica takes to start plus the time to the next decision."""
    wait_s: float = 1.0
    share: float = 0.95
    """This share of requests must wait no longer than `wait_s`."""
    service_s: float | None = None
    """Mean service time; None: as observed."""
    service_scv: float = 1.0
    """Squared coefficient of variation of the service time."""
    slots: int = 1
    """Requests one replica serves at once."""
    late_after_s: float = 3600.0
    """A forecast older than this is no forecast."""

    def __post_init__(self) -> None:
        check_limits(self.minimum, self.maximum)
        if not (0 < self.quantile < 1 and 0 < self.share < 1):
            raise ValueError("quantile and share lie between 0 and 1")
        if self.wait_s < 0 or self.slots < 1 or self.service_scv < 0 or (self.service_s or 1) <= 0:
            raise ValueError("wait and SCV are at least 0, slots at least 1, the service time above 0")

    @functools.cached_property
    def _words(self) -> str:
        return f" requests/s at quantile {self.quantile:g} within {short_duration(self.horizon_s)} need "

    def start(self) -> None:
        """Return nothing: it has no memory."""

    def decide(self, observation: Observation, memory: None) -> tuple[Decision, None]:
        """Return the replicas for the highest forecast rate up to the horizon."""
        return self.base(observation, beside=True), None

    def base(self, observation: Observation, *, beside: bool = False) -> Decision:
        """Return the decision alone, or with what else could be decided `beside` it, which takes as long again."""
        now_s = observation.time_s
        rate, why = forecast_rate(observation.forecast, self.quantile, now_s, self.horizon_s, self.late_after_s)
        service_s = self.service_s if self.service_s is not None else read(observation, "service_time_s", 3600.0)
        if rate is not None and not service_s:
            rate, why = None, "the service time is unknown"
        if rate is None or not service_s:
            return hold(observation, self.name, self.minimum, self.maximum, why)
        wanted = self._wanted(rate, service_s)
        replicas = within(wanted, self.minimum, self.maximum)
        reasons: tuple[str, ...] = (f"{rate:g}{self._words}{wanted} replicas",)
        if replicas != wanted:
            reasons = (*reasons, f"limits {self.minimum} to {self.maximum}")
        measures = {"forecast_rate_per_s": rate}
        if not beside:
            return record(Decision, (now_s, replicas, self.name, reasons, (), False, measures))
        alternatives = [Alternative("predictive:unlimited", wanted, "without limits")]
        seen = observation.arrival_rate_per_s
        if seen is not None and 0 <= seen < 1e12:
            now_wanted = within(self._wanted(seen, service_s), self.minimum, self.maximum)
            alternatives.append(Alternative("predictive:now", now_wanted, f"for the present {seen:g} requests/s"))
        return Decision(now_s, replicas, self.name, reasons, tuple(alternatives), measures=measures)

    def _wanted(self, rate: float, service_s: float) -> int:
        # Beyond the maximum the exact number does not matter, and a wild forecast must not cost time.
        if rate * service_s >= self.maximum * self.slots:
            return -(-int(rate * service_s + 1) // self.slots)
        return replicas_for(rate, service_s, self.wait_s, self.share, self.slots, self.service_scv)
