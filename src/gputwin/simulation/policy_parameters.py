"""What users give of a policy: its name and the values of its parameters, checked against what it has."""

from __future__ import annotations

import math
from collections.abc import Mapping

from gputwin.core.errors import UserError
from gputwin.simulation.policy import FairnessRule, Ordering, Placement, Preemption, SharingRule, Speed


def settle(
    policy: Ordering | Placement | Speed | FairnessRule | Preemption | SharingRule, given: Mapping[str, float]
) -> dict[str, float]:
    """Return the policy's parameters with the given values in place of defaults.

    An unknown name, a value that is no number, one below the policy's bound, an infinite one where the default is finite,
    or a fraction where the default is a whole number (`3`, not `3.0`) is a user error.
    """
    for name, value in given.items():
        if name not in policy.parameters:
            known = ", ".join(policy.parameters) or "none"
            raise UserError(f"'{policy.name}' has no parameter '{name}'; it has: {known}")
        least = policy.at_least.get(name, -math.inf)
        if math.isnan(value) or (math.isinf(value) and math.isfinite(policy.parameters[name])):
            raise UserError(
                f"'{policy.name}:{name}={value:g}': give a finite number, as in {policy.parameters[name]:g}"
            )
        if value < least:
            raise UserError(f"'{policy.name}:{name}={value:g}': give {least:g} or more")
        default = policy.parameters[name]
        if isinstance(default, bool) and value not in (0, 1):
            raise UserError(f"'{policy.name}:{name}={value:g}': give 0 or 1")
        if isinstance(default, int) and value != int(value):
            raise UserError(f"'{policy.name}:{name}={value:g}': give a whole number, as in {default}")
    return {**policy.parameters, **given}


def parse_policy(text: str) -> tuple[str, dict[str, float]]:
    """Return name and parameters of "name" or "name:parameter=value,…"."""
    name, _, rest = text.partition(":")
    parameters: dict[str, float] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        try:
            parameters[key] = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise UserError(f"'{text}': write parameters as name:parameter=number, as in priority:aging=0.01")
    return name, parameters
