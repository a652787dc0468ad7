"""How fast the HPA may go: stabilisation windows, policies by pods and percent, and the limits without a behaviour."""

from __future__ import annotations

import math
from typing import NamedTuple

from gputwin.autoscaling.decisions.hpa.spec import Behavior, ScalingRules

Log = tuple[tuple[float, int], ...]
"""(time in s, replicas) of recommendations, or (time in s, change) of scale events."""


WITHIN = "DesiredWithinRange"
"""The reason where no limit changes the wish."""


class Limited(NamedTuple):
    """Replicas after a limit and the condition's reason."""

    replicas: int
    reason: str


def stabilized(now_s: float, desired: int, log: Log, window_s: float) -> tuple[int, Log]:
    """Return the highest recommendation of the window, and the log with this one in it (no behaviour given)."""
    best, oldest = desired, now_s - window_s
    for at, replicas in log:
        if replicas > best and at >= oldest:
            best = replicas
    old = len(log) - 1
    while old >= 0 and log[old][0] >= oldest:
        old -= 1
    return best, replaced(log, old, (now_s, desired))


def stabilized_with(now_s: float, current: int, desired: int, log: Log, behavior: Behavior) -> tuple[int, Log]:
    """Return the recommendation nearest to `current` within the direction's window, and the log with this one in it.

    Up takes the lowest recent recommendation, down the highest, never past `current`.
    """
    up_s, down_s = behavior.up.stabilization_s, behavior.down.stabilization_s
    longest = max(up_s, down_s)
    lowest = highest = desired
    old = -1
    for i, (at, replicas) in enumerate(log):
        age = now_s - at
        if age < up_s and replicas < lowest:
            lowest = replicas
        if age < down_s and replicas > highest:
            highest = replicas
        if age > longest:
            old = i
    kept = lowest if current < lowest else highest if current > highest else current
    return kept, replaced(log, old, (now_s, desired))


def replaced(log: Log, at: int, entry: tuple[float, int]) -> Log:
    """Return the log with `entry` in place of number `at`, or at the end where that is −1."""
    return (*log, entry) if at < 0 else (*log[:at], entry, *log[at + 1 :])


def change_within(now_s: float, period_s: float, events: Log) -> int:
    """Return how many replicas the events of the last `period_s` changed in all."""
    return sum(change for at, change in events if now_s - at < period_s)


def stored(now_s: float, change: int, events: Log, rules: ScalingRules | None) -> Log:
    """Return the events with a new one, which takes the place of one that no policy looks back to any more."""
    if rules is None:
        return ()
    longest = max((policy.period_s for policy in rules.policies), default=0)
    old = -1
    for i, (at, _) in enumerate(events):
        if now_s - at > longest:
            old = i
    return replaced(events, old, (now_s, change))


def up_limit(now_s: float, current: int, ups: Log, downs: Log, rules: ScalingRules) -> int:
    """Return the most replicas the policies allow now."""
    if rules.select == "Disabled" or not rules.policies:
        return current
    allowed = []
    for policy in rules.policies:
        start = current - change_within(now_s, policy.period_s, ups) + change_within(now_s, policy.period_s, downs)
        more = start + policy.value if policy.type == "Pods" else math.ceil(start * (1 + policy.value / 100))
        allowed.append(more)
    return min(allowed) if rules.select == "Min" else max(allowed)


def down_limit(now_s: float, current: int, ups: Log, downs: Log, rules: ScalingRules) -> int:
    """Return the fewest replicas the policies allow now."""
    if rules.select == "Disabled" or not rules.policies:
        return current
    allowed = []
    for policy in rules.policies:
        start = current + change_within(now_s, policy.period_s, downs) - change_within(now_s, policy.period_s, ups)
        allowed.append(start - policy.value if policy.type == "Pods" else int(start * (1 - policy.value / 100)))
    return max(allowed) if rules.select == "Min" else min(allowed)


def rate_limited(
    now_s: float, current: int, desired: int, minimum: int, maximum: int, behavior: Behavior, ups: Log, downs: Log
) -> Limited:
    """Return `desired` within policies and limits."""
    if desired > current:
        limit = max(up_limit(now_s, current, ups, downs, behavior.up), current)
        most, reason = (limit, "ScaleUpLimit") if maximum > limit else (maximum, "TooManyReplicas")
        if desired > most:
            return Limited(most, reason)
    elif desired < current:
        limit = min(down_limit(now_s, current, ups, downs, behavior.down), current)
        least, reason = (limit, "ScaleDownLimit") if minimum < limit else (minimum, "TooFewReplicas")
        if desired < least:
            return Limited(least, reason)
    return Limited(desired, WITHIN)


def limited(current: int, desired: int, minimum: int, maximum: int, factor: float = 2.0, least: float = 4.0) -> Limited:
    """Return `desired` within the limits where no behaviour is given: up to `factor` times as many, or to `least`."""
    limit = int(max(factor * current, least))
    most, reason = (limit, "ScaleUpLimit") if maximum > limit else (maximum, "TooManyReplicas")
    if desired < minimum:
        return Limited(minimum, "TooFewReplicas")
    if desired > most:
        return Limited(most, reason)
    return Limited(desired, WITHIN)
