"""Node pools from YAML: what is given is read, and a mistake is one line with its place."""

from __future__ import annotations

import pytest

from gputwin.autoscaling.nodes.read import open_pools
from gputwin.autoscaling.nodes.spec import layout_of
from gputwin.core.errors import InputError, UserError

SPEC = """
name: research
autoscaler:
  rule: karpenter
  boot_seconds: 240
groups:
  - {name: a100, count: 10, gpus: 8, gpu_model: A100, price_per_hour: 30, minimum: 2}
  - {name: cpu, count: 4, cpu_milli: 64000, spot_price_per_hour: 0.2}
"""


def test_groups_limits_prices_and_the_rule_are_read(tmp_path):
    path = tmp_path / "pools.yaml"
    path.write_text(SPEC)
    pools = open_pools(str(path))
    assert (pools.name, pools.rule, pools.boot_seconds, pools.period_seconds) == ("research", "karpenter", 240, 60.0)
    assert [(p.minimum, p.price, p.spot_price) for p in pools.groups] == [(2, 30, 30 * 0.35), (0, 0.5, 0.2)]


def test_spot_nodes_are_lanes_of_their_own_and_a_minimum_stays_on_demand(tmp_path):
    path = tmp_path / "pools.yaml"
    path.write_text(SPEC)
    layout = layout_of(open_pools(str(path)), 0.3)
    assert [(lane.type, lane.count, lane.minimum) for lane in layout.lanes] == [
        ("a100", 10, 2),
        ("a100-spot", 3, 0),
        ("cpu", 4, 0),
        ("cpu-spot", 1, 0),
    ]
    assert layout.always_up == (0, 1)
    assert layout.most == (10, 4)


def test_a_named_cluster_becomes_pools_without_a_minimum():
    pools = open_pools("homogeneous:3x4")
    assert [(p.group.count, p.minimum, p.price) for p in pools.groups] == [(3, 0, 4.0)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("autoscaler: {rules: x}\ngroups: [{count: 1}]", "field 'autoscaler.rules': unknown field"),
        ("autoscaler: {rule: nobody}\ngroups: [{count: 1}]", "unknown rule for node pools 'nobody'"),
        ("autoscaler: {movable: 3}\ngroups: [{count: 1}]", "field 'autoscaler.movable': 3 is of the wrong kind"),
        ("autoscaler: {boot_seconds: -1}\ngroups: [{count: 1}]", "boot_seconds is -1"),
        ("groups: [{count: 1, minimum: 2}]", "minimum must be between 0 and its count 1"),
        ("groups: [{count: 1, minimum: 0.5}]", "field 'groups.0.minimum': 0.5 is not a whole number"),
        ("groups: [{count: 1, color: red}]", "field 'groups.0.color': unknown field"),
        ("groups: [", "not YAML"),
        ("- 1", "not a spec of node pools"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(tmp_path, text, message):
    path = tmp_path / "pools.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        open_pools(str(path))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_spot_share_above_one_is_refused():
    with pytest.raises(UserError, match="give 0 to 1"):
        layout_of(open_pools("homogeneous:3x4"), 1.5)
