"""The step between zero (or idle) and the minimum, which KEDA takes itself; between minimum and maximum the HPA decides."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Switch:
    """How a ScaledObject goes to zero and back."""

    minimum: int = 0
    idle: int | None = None
    """Replicas while no trigger is active; None: the minimum (zero where that is zero)."""
    cooldown_s: float = 300.0
    """Time since a trigger was last active before the step to zero; it does not delay anything else."""
    initial_cooldown_s: float = 0.0
    pause_in: bool = False
    pause_out: bool = False
    force_activation: bool = False


def switched(
    switch: Switch,
    current: int,
    is_active: bool,
    failed: bool,
    now_s: float,
    last_active_s: float | None,
    created_s: float = 0.0,
) -> tuple[int | None, str]:
    """Return the replicas KEDA itself sets, or None where that is left to the HPA, and why.

    Where nothing is active and a trigger failed, everything stays; a fallback is the caller's business.
    """
    if is_active or switch.force_activation:
        from_idle = switch.idle is not None and current < switch.minimum
        if current == 0 or from_idle:
            if switch.pause_out:
                return current, "scale-out is paused"
            return max(1, switch.minimum), "a trigger is active"
        return None, ""
    if failed:
        return current, "no trigger is active and one failed"
    idle = switch.idle if switch.idle is not None else 0
    goes_idle = current > idle if switch.idle is not None else current > 0 and switch.minimum == 0
    if goes_idle:
        if switch.pause_in:
            return current, "scale-in is paused"
        if last_active_s is None:
            is_cool = created_s + switch.initial_cooldown_s <= now_s
        else:
            is_cool = last_active_s + switch.cooldown_s < now_s
        if is_cool:
            return idle, "no trigger is active and the cool-down has passed"
        return None, "no trigger is active; cooling down"
    if current < switch.minimum and switch.idle is None:
        if switch.pause_out:
            return current, "scale-out is paused"
        return switch.minimum, "fewer than the minimum"
    return None, "" if current > idle else "no trigger is active"
