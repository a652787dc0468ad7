"""What limits around another rule share: they move the wish towards what is there, and say so."""

from __future__ import annotations

from typing import Any

from gputwin.autoscaling.decisions.interface import Alternative, Decision, Observation, Rule


class Around:
    """A limit around a rule `inner`, whose fewest and most replicas are its own."""

    inner: Rule[Any]

    @property
    def minimum(self) -> int:
        """Return the inner rule's minimum."""
        return self.inner.minimum

    @property
    def maximum(self) -> int:
        """Return the inner rule's maximum."""
        return self.inner.maximum


def limited(decision: Decision, replicas: int, rule: str, reason: str) -> Decision:
    """Return the decision with `replicas` set by the limit `rule`; the inner rule's wish becomes an alternative."""
    if replicas == decision.replicas:
        return decision
    wish = Alternative(decision.rule, decision.replicas, decision.reasons[0] if decision.reasons else "")
    return Decision(
        decision.time_s,
        replicas,
        rule,
        (reason, *decision.reasons),
        (wish, *decision.alternatives),
        decision.held,
        decision.measures,
    )


def is_free(inner: Rule[Any], observation: Observation, decision: Decision) -> bool:
    """Return whether a limit has nothing to say: no change, or the present size is itself outside the limits."""
    current = observation.replicas
    return decision.replicas == current or current < inner.minimum or current > inner.maximum
