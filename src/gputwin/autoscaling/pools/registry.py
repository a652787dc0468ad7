"""Every rule for node pools by name."""

from __future__ import annotations

from collections.abc import Callable

from gputwin.autoscaling.decisions.registry import Made, RuleKind
from gputwin.core.registry import Registry

POOL_RULES: Registry[RuleKind] = Registry("node pool rule", "gputwin.autoscaling.pools")


def pool_rule(rule: str, *, source: str = "") -> Callable[[Made], Made]:
    """Return a decorator that registers a frozen dataclass with a `name` as a rule for node pools."""

    def register(made: Made) -> Made:
        POOL_RULES.add(RuleKind(made.name, rule, made, source))
        return made

    return register
