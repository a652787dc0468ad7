"""Manifests as people write them, with Kubernetes' defaults; mistakes are one line with file and path."""

from __future__ import annotations

from pathlib import Path

import pytest

from gputwin.autoscaling.decisions.hpa.spec import DEFAULT_UP, Policy
from gputwin.autoscaling.decisions.rules.hpa import Hpa
from gputwin.autoscaling.decisions.rules.keda import Keda
from gputwin.autoscaling.decisions.rules.knative import Kpa
from gputwin.autoscaling.manifests.files import read_manifest, rule_of_text
from gputwin.autoscaling.manifests.quantities import duration, quantity
from gputwin.core.errors import InputError

HPA = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: llm}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llm}
  maxReplicas: 12
  metrics:
  - type: Pods
    pods:
      metric: {name: queue_length}
      target: {type: AverageValue, averageValue: 2500m}
  behavior:
    scaleDown:
      policies: [{type: Pods, value: 1, periodSeconds: 60}]
"""


def test_hpa_defaults() -> None:
    rule = rule_of_text(HPA)
    assert isinstance(rule, Hpa)
    assert (rule.minimum, rule.maximum, rule.metrics[0].target) == (1, 12, 2.5)
    assert rule.behavior is not None
    assert rule.behavior.up == DEFAULT_UP
    assert rule.behavior.down.policies == (Policy("Pods", 1, 60),)
    assert rule.behavior.down.stabilization_s == 300


def test_scaled_object_of_other_scalers() -> None:
    rule = rule_of_text("""
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: worker
  annotations: {autoscaling.keda.sh/paused-scale-in: "true"}
spec:
  scaleTargetRef: {name: worker}
  maxReplicaCount: 30
  fallback: {failureThreshold: 3, replicas: 6}
  triggers:
  - type: rabbitmq
    metadata: {queueName: orders, mode: QueueLength, value: "20", activationValue: "5"}
  - type: kafka
    name: lag
    metadata: {topic: events, lagThreshold: "100", activationLagThreshold: "7"}
  - type: cpu
    name: use
    metricType: Utilization
    metadata: {value: "60"}
""")
    assert isinstance(rule, Keda)
    assert [(t.metric, t.target, t.activation, t.label) for t in rule.triggers] == [
        ("orders", 20.0, 5.0, ""),
        ("events", 100.0, 7.0, "lag"),
        ("cpu", 60.0, 0.0, "use"),
    ]
    assert rule.triggers[2].target_type == "Utilization"
    assert (rule.minimum, rule.maximum, rule.cooldown_s, rule.pause_in) == (0, 30, 300.0, True)
    assert rule.fallback is not None
    assert rule.fallback.behavior == "static"


def test_knative_annotations_and_cluster_defaults() -> None:
    rule = rule_of_text("""
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: llm}
spec:
  template:
    metadata:
      annotations:
        autoscaling.knative.dev/target: "10"
        autoscaling.knative.dev/target-utilization-percentage: "80"
        autoscaling.knative.dev/window: 2m
        autoscaling.knative.dev/max-scale: "0"
---
apiVersion: v1
kind: ConfigMap
metadata: {name: config-autoscaler}
data: {max-scale-up-rate: "3", scale-to-zero-grace-period: 45s, panic-threshold-percentage: "150.0"}
""")
    assert isinstance(rule, Kpa)
    assert (rule.target, rule.total, rule.stable_window_s, rule.panic_window_s) == (8.0, 10.0, 120.0, 12.0)
    assert (rule.max_up_rate, rule.max_down_rate, rule.grace_s, rule.panic_threshold) == (3.0, 2.0, 45.0, 1.5)
    assert rule.maximum == 2**31 - 1


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("maxReplicas: 12", "minReplicas: 1", "field 'spec': 'maxReplicas' is missing"),
        ("maxReplicas: 12", "maxReplicas: many", "field 'spec.maxReplicas': give a whole number, not 'many'"),
        ("maxReplicas: 12", "maxReplicas: 0", "field 'spec': the limits 1 to 0 are not"),
        ("maxReplicas: 12", "maxReplicas: 12\n  minReplicas: 0", "'spec.minReplicas': 0 needs a metric of type Object"),
        ("type: Pods\n", "type: Podz\n", "field 'spec.metrics[0].type': give one of Resource"),
        (
            "2500m",
            "2500x",
            "'spec.metrics[0].pods.target.averageValue': give a quantity as in 500m, 2 or 4Gi, not '2500x'",
        ),
        ("2500m", "-1", "the target of queue_length must be above 0, not -1"),
        ("averageValue: 2500m", "value: 1", "field 'spec.metrics[0].pods.target': 'averageValue' is missing"),
        (
            "{type: Pods, value: 1, periodSeconds: 60}",
            "3",
            "field 'spec.behavior.scaleDown.policies[0]': give a mapping",
        ),
        ("periodSeconds: 60", "periodSeconds: 9999", "a period of 1 to 1800 s"),
        ("autoscaling/v2", "autoscaling/v1", "'autoscaling/v1' is not autoscaling/v2"),
        ("HorizontalPodAutoscaler", "Deployment", "there is no HorizontalPodAutoscaler"),
        ("metrics:\n", "metrics: {}\n  x:\n", "field 'spec.metrics': give a list, not a mapping"),
        ("spec:", "spec: [", "no YAML"),
    ],
)
def test_mistakes_name_file_and_path(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = tmp_path / "hpa.yaml"
    path.write_text(HPA.replace(old, new))
    with pytest.raises(InputError) as caught:
        read_manifest(path)
    line = str(caught.value)
    assert says in line
    assert line.startswith(str(path))
    assert "\n" not in line


@pytest.mark.parametrize(
    "content", [b"\xff\xfe\x00", b"[1, 2]", b"", b"a: &a [*a]", b"kind: NodePool", b"x" * 2_000_000]
)
def test_files_that_are_no_manifests(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError):
        read_manifest(path)


def test_aliases_that_grow_without_end_are_no_trouble() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)]
    text = "\n".join([*lines, "kind: ScaledObject", "spec: {triggers: *a29}"])
    with pytest.raises(InputError, match="give a mapping, not a list"):
        rule_of_text(text)


def test_yaml_never_runs_code() -> None:
    with pytest.raises(InputError, match="no YAML"):
        rule_of_text("kind: !!python/object/apply:os.system ['true']")


def test_quantities_and_durations() -> None:
    assert [quantity(text) for text in ("500m", "2", "1.5k", "4Gi", "1e3", 7)] == [
        0.5,
        2.0,
        1500.0,
        2.0**32,
        1000.0,
        7.0,
    ]
    assert [duration(text) for text in ("30s", "1h30m", "250ms", "0.5h")] == [30.0, 5400.0, 0.25, 1800.0]
    for wrong in ("", "5", "3x", "m5", "1h 30m"):
        with pytest.raises(ValueError, match="give a duration"):
            duration(wrong)
