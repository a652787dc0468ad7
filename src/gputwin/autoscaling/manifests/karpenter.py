"""Karpenter's NodePool: a manifest of the rule, and the rule of a manifest with a catalogue of node types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gputwin.autoscaling.manifests.quantities import duration_text, quantity_text
from gputwin.autoscaling.manifests.section import OWN, Section
from gputwin.autoscaling.pools.budgets import Budget
from gputwin.autoscaling.pools.interface import NodeType
from gputwin.autoscaling.pools.karpenter import Karpenter

_TYPE, _CAPACITY = "node.kubernetes.io/instance-type", "karpenter.sh/capacity-type"
_LIMITS = {"cpu_milli": ("cpu", 0.001), "memory_mib": ("memory", 2.0**20), "gpu_milli": ("nvidia.com/gpu", 0.001)}


def to_node_pool(rule: Karpenter, name: str, bought: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the manifest; prices and capacities stay in the catalogue of types.

    `bought` says how nodes may be bought (on-demand, spot) where the types themselves do not.
    """
    capacity = sorted(bought or {"spot" if kind.is_spot else "on-demand" for kind in rule.types})
    requirements = [
        {"key": _TYPE, "operator": "In", "values": [kind.name for kind in rule.types]},
        {"key": _CAPACITY, "operator": "In", "values": capacity},
    ]
    after = "Never" if rule.consolidate_after_s is None else duration_text(rule.consolidate_after_s)
    disruption: dict[str, Any] = {
        "consolidationPolicy": rule.policy,
        "consolidateAfter": after,
        "budgets": [_budget(budget) for budget in rule.budgets],
    }
    if rule.policy == "Balanced":
        disruption["consolidationThreshold"] = rule.threshold
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    spec: dict[str, Any] = {
        "template": {"spec": {"nodeClassRef": reference, "requirements": requirements}},
        "disruption": disruption,
    }
    if rule.limits:
        spec["limits"] = {_LIMITS[k][0] if k in _LIMITS else k: _limit(k, v) for k, v in rule.limits.items()}
    usual, own = _settings(Karpenter(rule.types)), _settings(rule)
    notes = {f"{OWN}{key}": value for key, value in own.items() if value != usual[key]}
    metadata: dict[str, Any] = {"name": name, **({"annotations": notes} if notes else {})}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": metadata, "spec": spec}


def _settings(rule: Karpenter) -> dict[str, str]:
    return {
        "pool": rule.pool,
        "threshold": quantity_text(rule.threshold),
        "spot-to-spot": str(rule.spot_to_spot).lower(),
        "least-spot-types": str(rule.least_spot_types),
        "validation-s": quantity_text(rule.validation_s),
        "most-candidates": str(rule.most_candidates),
        "origin-epoch-s": quantity_text(rule.origin_epoch_s),
    }


def _limit(name: str, amount: int) -> str:
    if name == "memory_mib":
        return f"{amount}Mi"
    return f"{amount}m" if name == "cpu_milli" else quantity_text(amount * _LIMITS.get(name, ("", 1.0))[1])


def _budget(budget: Budget) -> dict[str, Any]:
    plain: dict[str, Any] = {"nodes": budget.nodes}
    if budget.reasons:
        plain["reasons"] = list(budget.reasons)
    if budget.schedule and budget.duration_s is not None:
        plain |= {"schedule": budget.schedule, "duration": duration_text(budget.duration_s)}
    return plain


def from_node_pool(manifest: Mapping[str, Any], types: Sequence[NodeType], file: str | None = None) -> Karpenter:
    """Return the rule of a NodePool over those of `types` that its requirements admit."""
    top = Section(manifest, "", file)
    spec, own = top.section("spec"), top.section("metadata").section("annotations")
    disruption = spec.section("disruption")
    chosen = _chosen(spec, types)
    after: float | None = 0.0
    if disruption.has("consolidateAfter"):
        never = disruption.text("consolidateAfter", "") == "Never"
        after = None if never else disruption.seconds("consolidateAfter", 0.0)
    budgets = tuple(_budget_of(entry) for entry in disruption.sections("budgets"))
    usual = Karpenter(tuple(types[:1]) or (NodeType("none", 0.0, {}),))
    return spec.made(
        lambda: Karpenter(
            chosen,
            own.text(f"{OWN}pool", usual.pool),
            disruption.text("consolidationPolicy", usual.policy),
            after,
            budgets if disruption.has("budgets") else usual.budgets,
            disruption.number("consolidationThreshold", own.number(f"{OWN}threshold", usual.threshold)),
            _limits_of(spec.section("limits")),
            own.flag(f"{OWN}spot-to-spot", usual.spot_to_spot),
            own.whole(f"{OWN}least-spot-types", usual.least_spot_types),
            own.number(f"{OWN}validation-s", usual.validation_s),
            own.whole(f"{OWN}most-candidates", usual.most_candidates),
            own.number(f"{OWN}origin-epoch-s", usual.origin_epoch_s),
        )
    )


def _chosen(spec: Section, types: Sequence[NodeType]) -> tuple[NodeType, ...]:
    """Return the types the requirements on instance and capacity type admit; other requirements are not looked at."""
    inner = spec.section("template").section("spec")
    chosen = list(types)
    for entry in inner.sections("requirements"):
        key, operator, values = entry.text("key", ""), entry.text("operator", ""), entry.texts("values")
        if key not in (_TYPE, _CAPACITY):
            continue
        if operator not in ("In", "NotIn"):
            raise entry.error("give In or NotIn", operator or "nothing", "operator")
        if key == _TYPE and operator == "In":
            unknown = [value for value in values if all(kind.name != value for kind in types)]
            if unknown:
                raise entry.error("the catalogue has no such node type", unknown[0], "values")
        names = {id(k): k.name if key == _TYPE else "spot" if k.is_spot else "on-demand" for k in chosen}
        chosen = [kind for kind in chosen if (names[id(kind)] in values) == (operator == "In")]
    if not chosen:
        raise inner.error("the requirements admit no node type of the catalogue", field="requirements")
    return tuple(chosen)


def _budget_of(entry: Section) -> Budget:
    return entry.made(
        lambda: Budget(
            entry.text("nodes", "10%"),
            entry.texts("reasons"),
            entry.text("schedule", ""),
            entry.seconds("duration", 0.0) if entry.has("duration") else None,
        )
    )


def _limits_of(section: Section) -> dict[str, int]:
    limits = {}
    names = {theirs: (ours, unit) for ours, (theirs, unit) in _LIMITS.items()}
    for name in section.values:
        ours, unit = names.get(str(name), (str(name), 1.0))
        limits[ours] = round(section.number(name, 0.0) / unit)
    return limits
