"""Replicas for a service level: the queueing model behind predictive rules."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gputwin.autoscaling.decisions.interface import LoadForecast
from gputwin.core.units import short_duration
from gputwin.queueing.erlang import servers_for_wait


def replicas_for(
    rate_per_s: float, service_s: float, wait_s: float, share: float, slots: int = 1, service_scv: float = 1.0
) -> int:
    """Return the fewest replicas of `slots` servers so that `share` of requests wait no longer than `wait_s`.

    M/M/c (Erlang C); for other service times the wait's tail is stretched by (1 + SCV) ÷ 2 (Allen and Cunneen's
    approximation, as in Bolch et al., "Queueing Networks and Markov Chains", 6.2.4).
    """
    if rate_per_s <= 0:
        return 0
    stretch = (1.0 + service_scv) / 2.0
    servers = servers_for_wait(rate_per_s * service_s, service_s, wait_s / stretch if stretch > 0 else math.inf, share)
    return math.ceil(servers / slots)


def forecast_rate(
    forecast: LoadForecast | None, level: float, now_s: float, horizon_s: float, late_after_s: float
) -> tuple[float | None, str]:
    """Return the highest forecast rate at quantile `level` until `horizon_s` from now; None and why where there is none.

    Between two quantiles the value is interpolated, outside them the nearest one is taken.
    """
    if forecast is None:
        return None, "there is no forecast"
    if forecast.failed:
        return None, f"the forecast failed: {forecast.failed}"
    age = now_s - forecast.made_at_s
    if not -1e-9 <= age <= late_after_s:
        return None, f"the forecast is {short_duration(age)} old, outside 0 to {short_duration(late_after_s)}"
    if not forecast.quantiles or not forecast.step_s > 0:
        return None, "the forecast has no quantiles"
    # Made by rounding a hair later than now, it begins now.
    age, step_s = max(age, 0.0), forecast.step_s
    first, last = int(age // step_s), math.ceil((age + horizon_s) / step_s)
    low, high, share = _around(forecast, level)
    end = len(high)
    if first >= end:
        return None, f"the forecast ends {short_duration(age - end * step_s)} ago"
    if last <= first:
        last = first + 1
    most = 0.0
    for k in range(first, last if last < end else end):
        value = high[k]
        if share < 1.0:
            value = low[k] + (value - low[k]) * share
        # Not NaN, infinite or negative: a comparison with NaN is false.
        if not 0.0 <= value < math.inf:
            return None, "the forecast holds values that are no rates"
        if value > most:
            most = value
    return most, ""


def _around(forecast: LoadForecast, level: float) -> tuple[Sequence[float], Sequence[float], float]:
    """Return the quantiles below and above `level`, and how far it is from the one to the other."""
    below = above = None
    for entry in forecast.quantiles:
        if entry <= level and (below is None or entry > below):
            below = entry
        if entry >= level and (above is None or entry < above):
            above = entry
    if below is None or above is None or below == above:
        nearest = forecast.quantiles[max(forecast.quantiles) if above is None else above]
        return nearest, nearest, 1.0
    low, high = forecast.quantiles[below], forecast.quantiles[above]
    if len(low) != len(high):
        return high, high, 1.0
    return low, high, (level - below) / (above - below)
