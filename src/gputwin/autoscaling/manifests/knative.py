"""Knative: a Service with autoscaling annotations (and the cluster's config-autoscaler), and the rule of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gputwin.autoscaling.decisions.rules.knative import Kpa
from gputwin.autoscaling.manifests.quantities import duration_text, quantity_text
from gputwin.autoscaling.manifests.section import OWN, Section
from gputwin.core.errors import UserError

PREFIX = "autoscaling.knative.dev/"
_USUAL = Kpa()


def to_knative(rule: Kpa, name: str, workload: str) -> list[dict[str, Any]]:
    """Return a Service and the ConfigMap with the two rates that Knative knows per cluster only."""
    if not rule.target <= rule.total:
        raise UserError(f"Knative's target utilisation is at most 100 %: {rule.target:g} of {rule.total:g} is more")
    notes = {
        "class": "kpa.autoscaling.knative.dev",
        "metric": rule.metric,
        "target": quantity_text(rule.total),
        "target-utilization-percentage": quantity_text(100.0 * rule.target / rule.total),
        "min-scale": str(rule.minimum),
        "max-scale": str(rule.maximum),
        "window": duration_text(rule.stable_window_s),
        "panic-window-percentage": quantity_text(100.0 * rule.panic_window_s / rule.stable_window_s),
        "panic-threshold-percentage": quantity_text(100.0 * rule.panic_threshold),
        "target-burst-capacity": quantity_text(rule.burst_capacity),
        "scale-down-delay": duration_text(rule.scale_down_delay_s),
        "scale-to-zero-pod-retention-period": duration_text(rule.grace_s),
    }
    if rule.activation_scale:
        notes["activation-scale"] = str(rule.activation_scale)
    annotations = {f"{PREFIX}{key}": value for key, value in notes.items()}
    # Percentages do not always bring a float back to the last digit; a decision at the border must not depend on it.
    exact = {"target": rule.target, "panic-window-s": rule.panic_window_s, "panic-threshold": rule.panic_threshold}
    annotations |= {f"{OWN}{key}": quantity_text(value) for key, value in exact.items()}
    if rule.late_after_s != _USUAL.late_after_s:
        annotations[f"{OWN}late-after-s"] = quantity_text(rule.late_after_s)
    if not rule.reachable:
        annotations[f"{OWN}reachable"] = "false"
    template = {"metadata": {"annotations": annotations}, "spec": {"containers": [{"image": workload}]}}
    service = {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"template": template},
    }
    rates = {
        "max-scale-up-rate": quantity_text(rule.max_up_rate),
        "max-scale-down-rate": quantity_text(rule.max_down_rate),
    }
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "config-autoscaler", "namespace": "knative-serving"},
        "data": rates,
    }
    return [service, config]


def from_knative(manifest: Mapping[str, Any], config: Mapping[str, Any] | None = None, file: str | None = None) -> Kpa:
    """Return the rule of a Service's annotations and of the cluster's config-autoscaler, where given."""
    top = Section(manifest, "", file)
    notes = top.section("spec").section("template").section("metadata").section("annotations")
    data = Section(config or {}, "", file).section("data")

    def number(name: str, default: float) -> float:
        return notes.number(f"{PREFIX}{name}", data.number(name, default))

    metric = notes.text(f"{PREFIX}metric", "concurrency")
    usual_total, usual_use = (200.0, 70.0) if metric == "rps" else (_USUAL.total, 70.0)
    usual_total = data.number("requests-per-second-target-default", usual_total) if metric == "rps" else usual_total
    total = notes.number(f"{PREFIX}target", usual_total)
    share = notes.number(
        f"{PREFIX}target-utilization-percentage",
        data.number("container-concurrency-target-percentage", usual_use),
    )
    window = notes.seconds(f"{PREFIX}window", data.seconds("stable-window", _USUAL.stable_window_s))
    grace = max(
        notes.seconds(f"{PREFIX}scale-to-zero-pod-retention-period", 0.0),
        data.seconds("scale-to-zero-pod-retention-period", 0.0),
    )
    has_grace = notes.has(f"{PREFIX}scale-to-zero-pod-retention-period")
    if not has_grace:
        grace = max(grace, data.seconds("scale-to-zero-grace-period", _USUAL.grace_s))
    maximum = notes.whole(f"{PREFIX}max-scale", _USUAL.maximum)
    return notes.made(
        lambda: Kpa(
            notes.whole(f"{PREFIX}min-scale", 0),
            # 0 stands for no limit.
            maximum if maximum else 2**31 - 1,
            metric,
            notes.number(f"{OWN}target", total * share / 100.0),
            total,
            number("target-burst-capacity", _USUAL.burst_capacity),
            window,
            notes.number(f"{OWN}panic-window-s", window * number("panic-window-percentage", 10.0) / 100.0),
            notes.number(f"{OWN}panic-threshold", number("panic-threshold-percentage", 200.0) / 100.0),
            data.number("max-scale-up-rate", _USUAL.max_up_rate),
            data.number("max-scale-down-rate", _USUAL.max_down_rate),
            notes.seconds(f"{PREFIX}scale-down-delay", data.seconds("scale-down-delay", 0.0)),
            notes.whole(f"{PREFIX}activation-scale", 0),
            grace,
            notes.flag(f"{OWN}reachable", True),
            notes.number(f"{OWN}late-after-s", _USUAL.late_after_s),
        )
    )
