"""HorizontalPodAutoscaler (autoscaling/v2): a manifest of the rule, and the rule of a manifest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gputwin.autoscaling.decisions.hpa.calculator import Readiness
from gputwin.autoscaling.decisions.hpa.spec import (
    DEFAULT_DOWN,
    DEFAULT_UP,
    TYPES,
    Behavior,
    MetricTarget,
    Policy,
    ScalingRules,
)
from gputwin.autoscaling.decisions.rules.hpa import Hpa
from gputwin.autoscaling.manifests.quantities import quantity_text
from gputwin.autoscaling.manifests.section import OWN, Section
from gputwin.core.errors import UserError

_KEYS = {"Resource": "resource", "ContainerResource": "containerResource", "Pods": "pods", "Object": "object"}
_KEYS["External"] = "external"
_TARGETS = {"Utilization": "averageUtilization", "AverageValue": "averageValue", "Value": "value"}


def to_hpa(rule: Hpa, name: str, workload: str) -> dict[str, Any]:
    """Return the manifest; flags of the controller become annotations where they differ from the defaults."""
    if rule.minimum == 0 and not rule.settings.of_whole:
        raise UserError("an HPA with minReplicas 0 needs a metric of type Object or External")
    spec: dict[str, Any] = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": workload},
        "minReplicas": rule.minimum,
        "maxReplicas": rule.maximum,
        "metrics": [_metric(metric, workload) for metric in rule.metrics],
    }
    if rule.behavior is not None:
        spec["behavior"] = behavior_plain(rule.behavior)
    metadata: dict[str, Any] = {"name": name}
    own = {f"{OWN}{key}": _text(value) for key, value in _flags(rule).items() if value != _flags(Hpa())[key]}
    if own:
        metadata["annotations"] = own
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}


def _flags(rule: Hpa) -> dict[str, Any]:
    ready = rule.readiness
    return {
        "tolerance": rule.tolerance,
        "downscale-stabilization-s": rule.downscale_window_s,
        "up-limit-factor": rule.up_limit_factor,
        "scale-to-zero": rule.scale_to_zero,
        "late-after-s": rule.late_after_s,
        "cpu-initialization-s": ready.initialization_s,
        "initial-readiness-delay-s": ready.initial_delay_s,
        "metric-window-s": ready.window_s,
        "sample-age-s": ready.sample_age_s,
    }


def _text(value: float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else quantity_text(value)


def _metric(metric: MetricTarget, workload: str) -> dict[str, Any]:
    if metric.type not in _KEYS:
        raise UserError(f"metric type '{metric.type}' is none of {', '.join(TYPES)}")
    value: object = quantity_text(metric.target)
    if metric.target_type == "Utilization":
        value = int(metric.target)
    source: dict[str, Any] = {"target": {"type": metric.target_type, _TARGETS[metric.target_type]: value}}
    if metric.type in ("Resource", "ContainerResource"):
        source = {"name": metric.name, **source}
        if metric.type == "ContainerResource":
            source["container"] = metric.container
    else:
        source = {"metric": {"name": metric.name}, **source}
        if metric.type == "Object":
            source["describedObject"] = {"apiVersion": "v1", "kind": "Service", "name": workload}
    return {"type": metric.type, _KEYS[metric.type]: source}


def behavior_plain(behavior: Behavior) -> dict[str, Any]:
    """Return a behaviour as HPA and ScaledObject write it."""
    return {"scaleUp": _rules_plain(behavior.up), "scaleDown": _rules_plain(behavior.down)}


def _rules_plain(rules: ScalingRules) -> dict[str, Any]:
    policies = [{"type": p.type, "value": p.value, "periodSeconds": p.period_s} for p in rules.policies]
    plain: dict[str, Any] = {
        "stabilizationWindowSeconds": rules.stabilization_s,
        "selectPolicy": rules.select,
        "policies": policies,
    }
    if rules.tolerance is not None:
        plain["tolerance"] = quantity_text(rules.tolerance)
    return plain


def from_hpa(manifest: Mapping[str, Any], file: str | None = None) -> Hpa:
    """Return the rule a manifest describes; what it leaves out has Kubernetes' defaults."""
    top = Section(manifest, "", file)
    spec, own = top.section("spec"), top.section("metadata").section("annotations")
    if not spec.has("maxReplicas"):
        raise spec.error("'maxReplicas' is missing")
    metrics = tuple(_metric_of(entry) for entry in spec.sections("metrics"))
    metrics = metrics or (MetricTarget("Resource", "cpu", 80, "Utilization"),)
    minimum = spec.whole("minReplicas", 1)
    if minimum == 0 and not any(metric.type in ("Object", "External") for metric in metrics):
        raise spec.error("0 needs a metric of type Object or External", field="minReplicas")
    usual = Hpa()
    ready = usual.readiness
    return spec.made(
        lambda: Hpa(
            minimum,
            spec.whole("maxReplicas", 1),
            metrics,
            behavior_of(spec.section("behavior")) if spec.has("behavior") else None,
            own.number(f"{OWN}tolerance", usual.tolerance),
            own.number(f"{OWN}downscale-stabilization-s", usual.downscale_window_s),
            own.number(f"{OWN}up-limit-factor", usual.up_limit_factor),
            own.flag(f"{OWN}scale-to-zero", usual.scale_to_zero),
            Readiness(
                own.number(f"{OWN}cpu-initialization-s", ready.initialization_s),
                own.number(f"{OWN}initial-readiness-delay-s", ready.initial_delay_s),
                own.number(f"{OWN}metric-window-s", ready.window_s),
                own.number(f"{OWN}sample-age-s", ready.sample_age_s),
            ),
            own.number(f"{OWN}late-after-s", usual.late_after_s),
        )
    )


def _metric_of(entry: Section) -> MetricTarget:
    kind = entry.text("type", "")
    if kind not in _KEYS:
        raise entry.error(f"give one of {', '.join(TYPES)}", kind or "nothing", "type")
    source = entry.section(_KEYS[kind])
    is_resource = kind in ("Resource", "ContainerResource")
    name = source.text("name", "") if is_resource else source.section("metric").text("name", "")
    target = source.section("target")
    target_type = target.text("type", "")
    if not name:
        raise source.error("the metric's name is missing")
    if target_type not in _TARGETS:
        raise target.error(f"give one of {', '.join(_TARGETS)}", target_type or "nothing", "type")
    key = _TARGETS[target_type]
    if not target.has(key):
        raise target.error(f"'{key}' is missing")
    value = target.whole(key, 0) if target_type == "Utilization" else target.number(key, 0.0)
    return target.made(lambda: MetricTarget(kind, name, value, target_type, source.text("container", "")))


def behavior_of(section: Section) -> Behavior:
    """Return a behaviour; each side and each entry left out has Kubernetes' default."""
    return Behavior(
        _rules_of(section.section("scaleUp"), DEFAULT_UP), _rules_of(section.section("scaleDown"), DEFAULT_DOWN)
    )


def _rules_of(section: Section, usual: ScalingRules) -> ScalingRules:
    policies = [
        entry.made(
            lambda entry=entry: Policy(  # type: ignore[misc]
                entry.text("type", ""), entry.whole("value", 0), entry.whole("periodSeconds", 0)
            )
        )
        for entry in section.sections("policies")
    ]
    return section.made(
        lambda: ScalingRules(
            section.whole("stabilizationWindowSeconds", usual.stabilization_s),
            section.text("selectPolicy", "Max"),
            tuple(policies) if section.has("policies") else usual.policies,
            section.number("tolerance", 0.0) if section.has("tolerance") else None,
        )
    )
