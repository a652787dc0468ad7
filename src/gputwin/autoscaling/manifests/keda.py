"""KEDA's ScaledObject and ScaledJob: manifests of the rules, and the rules of manifests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gputwin.autoscaling.decisions.keda.jobs import JobStrategy
from gputwin.autoscaling.decisions.rules.keda import Fallback, Formula, Keda, Trigger
from gputwin.autoscaling.decisions.rules.scaledjob import ScaledJob
from gputwin.autoscaling.manifests.hpa import behavior_of, behavior_plain
from gputwin.autoscaling.manifests.quantities import quantity_text
from gputwin.autoscaling.manifests.section import OWN, Section
from gputwin.core.errors import UserError

API = "keda.sh/v1alpha1"
_PAUSE_IN, _PAUSE_OUT = "autoscaling.keda.sh/paused-scale-in", "autoscaling.keda.sh/paused-scale-out"
_LATE = f"{OWN}late-after-s"
_TARGET_KEYS = ("threshold", "value", "lagThreshold", "queueLength", "targetValue", "messageCount", "targetQueryValue")
"""Where scalers keep their target; the activation is under "activation" + the same name."""
_METRIC_KEYS = ("query", "metricName", "queueName", "topic", "queueURL")
_USES = ("cpu", "memory")
_SERVER = "http://prometheus:9090"


def to_scaled_object(rule: Keda, name: str, workload: str) -> dict[str, Any]:
    """Return the manifest, with Prometheus triggers whose query is the metric's name."""
    spec: dict[str, Any] = {
        "scaleTargetRef": {"name": workload},
        "minReplicaCount": rule.minimum,
        "maxReplicaCount": rule.maximum,
        "cooldownPeriod": _whole(rule.cooldown_s, "cooldownPeriod"),
        "initialCooldownPeriod": _whole(rule.initial_cooldown_s, "initialCooldownPeriod"),
        "triggers": [_trigger(t.metric, t.target, t.activation, t.target_type, t.label) for t in rule.triggers],
    }
    if rule.idle is not None:
        spec["idleReplicaCount"] = rule.idle
    if rule.fallback is not None:
        fallback = rule.fallback
        spec["fallback"] = {
            "failureThreshold": fallback.failures,
            "replicas": fallback.replicas,
            "behavior": fallback.behavior,
        }
    advanced: dict[str, Any] = {}
    if rule.behavior is not None:
        advanced["horizontalPodAutoscalerConfig"] = {"behavior": behavior_plain(rule.behavior)}
    if rule.formula is not None:
        advanced["scalingModifiers"] = {
            "formula": rule.formula.text,
            "target": quantity_text(rule.formula.target),
            "activationTarget": quantity_text(rule.formula.activation),
            "metricType": rule.formula.target_type,
        }
    if advanced:
        spec["advanced"] = advanced
    own = {_PAUSE_IN: "true"} if rule.pause_in else {}
    own |= {_PAUSE_OUT: "true"} if rule.pause_out else {}
    return _manifest("ScaledObject", name, spec, own, rule.late_after_s, Keda().late_after_s)


def to_scaled_job(rule: ScaledJob, name: str, workload: str) -> dict[str, Any]:
    """Return the manifest; the job's template names the workload as its container's image."""
    strategy: dict[str, Any] = {"strategy": rule.strategy.name}
    if rule.strategy.queue_deduction is not None:
        strategy["customScalingQueueLengthDeduction"] = rule.strategy.queue_deduction
    if rule.strategy.running_share is not None:
        strategy["customScalingRunningJobPercentage"] = quantity_text(rule.strategy.running_share)
    pod = {"containers": [{"name": workload, "image": workload}], "restartPolicy": "Never"}
    spec = {
        "jobTargetRef": {"template": {"spec": pod}},
        "minReplicaCount": rule.minimum,
        "maxReplicaCount": rule.maximum,
        "scalingStrategy": strategy,
        "triggers": [_trigger(rule.metric, rule.target, rule.activation, "AverageValue", "")],
    }
    return _manifest("ScaledJob", name, spec, {}, rule.late_after_s, ScaledJob().late_after_s)


def _manifest(
    kind: str, name: str, spec: dict[str, Any], own: dict[str, str], late_s: float, usual_s: float
) -> dict[str, Any]:
    annotations = own | ({_LATE: quantity_text(late_s)} if late_s != usual_s else {})
    metadata: dict[str, Any] = {"name": name, **({"annotations": annotations} if annotations else {})}
    return {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec}


def _whole(seconds: float, field: str) -> int:
    if seconds != int(seconds):
        raise UserError(f"a ScaledObject's {field} is in whole seconds, not {seconds:g}")
    return int(seconds)


def _trigger(metric: str, target: float, activation: float, target_type: str, label: str) -> dict[str, Any]:
    named = {"name": label} if label else {}
    if target_type == "Utilization":
        if metric not in _USES:
            raise UserError(f"KEDA has utilisation triggers for {' and '.join(_USES)} only, not for '{metric}'")
        return {"type": metric, **named, "metricType": target_type, "metadata": {"value": quantity_text(target)}}
    values = {
        "serverAddress": _SERVER,
        "query": metric,
        "threshold": quantity_text(target),
        "activationThreshold": quantity_text(activation),
    }
    return {"type": "prometheus", **named, "metricType": target_type, "metadata": values}


def from_scaled_object(manifest: Mapping[str, Any], file: str | None = None) -> Keda:
    """Return the rule a ScaledObject describes."""
    top = Section(manifest, "", file)
    spec, own = top.section("spec"), top.section("metadata").section("annotations")
    triggers = tuple(_trigger_of(entry) for entry in spec.sections("triggers"))
    if not triggers:
        raise spec.error("a ScaledObject needs a trigger", field="triggers")
    fallback, advanced = spec.section("fallback"), spec.section("advanced")
    config, modifiers = advanced.section("horizontalPodAutoscalerConfig"), advanced.section("scalingModifiers")
    usual = Keda()
    return spec.made(
        lambda: Keda(
            spec.whole("minReplicaCount", 0),
            spec.whole("maxReplicaCount", 100),
            triggers,
            _formula_of(modifiers) if modifiers.has("formula") else None,
            spec.whole("idleReplicaCount", 0) if spec.has("idleReplicaCount") else None,
            float(spec.whole("cooldownPeriod", 300)),
            float(spec.whole("initialCooldownPeriod", 0)),
            _fallback_of(fallback) if spec.has("fallback") else None,
            behavior_of(config.section("behavior")) if config.has("behavior") else None,
            own.flag(_PAUSE_IN, False),
            own.flag(_PAUSE_OUT, False),
            own.number(_LATE, usual.late_after_s),
        )
    )


def _fallback_of(section: Section) -> Fallback:
    for name in ("failureThreshold", "replicas"):
        if not section.has(name):
            raise section.error(f"'{name}' is missing")
    return section.made(
        lambda: Fallback(
            section.whole("failureThreshold", 0), section.whole("replicas", 0), section.text("behavior", "static")
        )
    )


def _formula_of(section: Section) -> Formula:
    if not section.has("target"):
        raise section.error("'target' is missing")
    return section.made(
        lambda: Formula(
            section.text("formula", ""),
            section.number("target", 1.0),
            section.number("activationTarget", 0.0),
            section.text("metricType", "AverageValue"),
        )
    )


def _trigger_of(entry: Section) -> Trigger:
    values = entry.section("metadata")
    kind = entry.text("type", "")
    key = next((name for name in _TARGET_KEYS if values.has(name)), None)
    if key is None:
        raise values.error(f"none of {', '.join(_TARGET_KEYS)} is given, so the trigger '{kind}' has no target")
    label = entry.text("name", "")
    metric = next((values.text(name, "") for name in _METRIC_KEYS if values.has(name)), label or kind)
    if kind in _USES:
        metric = kind
    activation = f"activation{key[0].upper()}{key[1:]}"
    return entry.made(
        lambda: Trigger(
            metric,
            values.number(key, 0.0),
            values.number(activation, 0.0),
            entry.text("metricType", values.text("type", "Utilization") if kind in _USES else "AverageValue"),
            label,
        )
    )


def from_scaled_job(manifest: Mapping[str, Any], file: str | None = None) -> ScaledJob:
    """Return the rule a ScaledJob describes; of several triggers the first counts."""
    top = Section(manifest, "", file)
    spec, own = top.section("spec"), top.section("metadata").section("annotations")
    triggers = [_trigger_of(entry) for entry in spec.sections("triggers")]
    if not triggers:
        raise spec.error("a ScaledJob needs a trigger", field="triggers")
    given = spec.section("scalingStrategy")
    deduction, share = "customScalingQueueLengthDeduction", "customScalingRunningJobPercentage"
    strategy = given.made(
        lambda: JobStrategy(
            given.text("strategy", "default"),
            given.whole(deduction, 0) if given.has(deduction) else None,
            given.number(share, 0.0) if given.has(share) else None,
        )
    )
    return spec.made(
        lambda: ScaledJob(
            spec.whole("minReplicaCount", 0),
            spec.whole("maxReplicaCount", 100),
            triggers[0].metric,
            triggers[0].target,
            triggers[0].activation,
            strategy,
            own.number(_LATE, ScaledJob().late_after_s),
        )
    )
