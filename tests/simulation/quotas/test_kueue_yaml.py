"""ClusterQueue and Cohort YAML becomes a tree of quotas; what is wrong with it is said in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from gputwin.core.errors import UserError
from gputwin.simulation.quotas.kueue_yaml import read_quotas
from gputwin.simulation.quotas.tree import FlavorResource, PreemptionPolicy

TWO_TEAMS = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: vision}
spec:
  cohort: research
  resourceGroups:
  - coveredResources: [cpu, nvidia.com/gpu]
    flavors:
    - name: a100
      resources:
      - {name: cpu, nominalQuota: 500m, borrowingLimit: 2}
      - {name: nvidia.com/gpu, nominalQuota: 8, lendingLimit: 2}
  preemption:
    withinClusterQueue: LowerOrNewerEqualPriority
    reclaimWithinCohort: Any
    borrowWithinCohort: {policy: LowerPriority, maxPriorityThreshold: 100}
  fairSharing: {weight: 1500m}
---
apiVersion: v1
kind: List
items:
- kind: ClusterQueue
  metadata: {name: speech}
  spec: {cohortName: research}
- kind: Cohort
  metadata: {name: research}
  spec:
    parentName: company
    resourceGroups:
    - coveredResources: [nvidia.com/gpu]
      flavors: [{name: a100, resources: [{name: nvidia.com/gpu, nominalQuota: "16"}]}]
- kind: ResourceFlavor
  metadata: {name: a100}
"""


def _write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "queues.yaml"
    path.write_text(text)
    return path


def test_quotas_limits_weights_and_policies_are_read(tmp_path: Path) -> None:
    tree = read_quotas(_write(tmp_path, TWO_TEAMS))
    vision, speech = tree.queue("vision"), tree.queue("speech")
    gpu, cpu = (tree.resources.index(FlavorResource("a100", r)) for r in ("nvidia.com/gpu", "cpu"))
    assert tree.subtree[vision, [gpu, cpu]].tolist() == [8.0, 500.0]
    assert tree.guaranteed[vision, gpu] == 6.0
    assert tree.borrowing[vision, cpu] == 2000.0
    assert tree.weight[[vision, speech]].tolist() == [1.5, 1.0]
    assert [tree.nodes[n].name for n in tree.path(speech)] == ["research", "company"]
    assert tree.subtree[tree.path(speech)[0], gpu] == 16.0 + 2.0
    assert tree.nodes[vision].preemption == PreemptionPolicy("LowerOrNewerEqualPriority", "Any", True, 100)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("nominalQuota: 8", "nominalQuota: eight", "ClusterQueue vision: a100/nvidia.com/gpu.nominalQuota"),
        ("nominalQuota: 8", "nominalQuota: -8", "negative"),
        ("nominalQuota: 8, ", "", "ClusterQueue vision: a100/nvidia.com/gpu.nominalQuota': none; give one"),
        (
            "lendingLimit: 2",
            "lendLimit: 2",
            "'lendLimit' is unknown; write one of name, nominalQuota, borrowingLimit, lendingLimit",
        ),
        ("reclaimWithinCohort: Any", "reclaimInCohort: Any", "vision: preemption': 'reclaimInCohort' is unknown"),
        ("maxPriorityThreshold: 100", "maxPriority: 100", "vision: borrowWithinCohort': 'maxPriority' is unknown"),
        ("weight: 1500m", "weigth: 1500m", "vision: fairSharing': 'weigth' is unknown; write weight"),
        ("reclaimWithinCohort: Any", "reclaimWithinCohort: Sometimes", "write one of Never, LowerPriority, Any"),
        ("{name: vision}", "{}", "without a name"),
        ("{name: speech}", "{name: vision}", "defined twice"),
        ("parentName: company", "parentName: research", "its own ancestor"),
        ("weight: 1500m", "weight: heavy", "fairSharing.weight"),
        ("kind: ClusterQueue", "kind: Queue", "no ClusterQueue"),
        ("metadata: {name: vision}", "metadata: {name: vision", "not YAML"),
        ("kind: Cohort", "kind: !!python/object/apply:os.system [id]", "not YAML"),
        ("flavors:\n", "flavors: [a100]\n    flavours:\n", "not a set of fields"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = TWO_TEAMS.replace(old, new)
    assert text != TWO_TEAMS
    with pytest.raises(UserError) as error:
        read_quotas(_write(tmp_path, text))
    assert said in str(error.value)
    assert "queues.yaml" in str(error.value)
    assert "\n" not in str(error.value)
