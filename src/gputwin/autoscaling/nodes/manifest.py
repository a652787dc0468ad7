"""Karpenter's NodePool for node pools: written as it was simulated, and read back with the pools as its catalogue."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import yaml

from gputwin.autoscaling.manifests.files import read_manifest
from gputwin.autoscaling.manifests.karpenter import to_node_pool
from gputwin.autoscaling.nodes.spec import KARPENTER_SETTINGS, NodePools
from gputwin.autoscaling.pools.interface import NodeType
from gputwin.autoscaling.pools.karpenter import Karpenter
from gputwin.core.errors import InputError, UserError

_OURS = ("types", "unavailable")
"""What a run itself fills in."""


def node_pool_text(pools: NodePools, *, with_spot: bool) -> str:
    """Return the NodePool as YAML; the settings are those of `pools` where its rule is Karpenter's, else the usual ones."""
    settings = pools.settings if pools.rule == Karpenter.name else {}
    rule = Karpenter(_catalogue(pools), **{**KARPENTER_SETTINGS, **settings})
    manifest = to_node_pool(rule, "gputwin", ("on-demand", "spot") if with_spot else ("on-demand",))
    return yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True)


def with_node_pool(pools: NodePools, path: Path, *, with_spot: bool) -> NodePools:
    """Return the pools sized by Karpenter with the settings of a NodePool, which must admit every group."""
    rule = read_manifest(path, _catalogue(pools))
    if not isinstance(rule, Karpenter):
        raise InputError("it sizes no nodes", file=path, field="kind", remedy="give a NodePool of Karpenter's")
    admitted = {kind.name for kind in rule.types}
    for pool in pools.groups:
        if pool.group.name not in admitted:
            raise InputError(
                f"it does not admit node group '{pool.group.name}'", file=path, remedy="leave it out of --cluster"
            )
    if with_spot:
        try:
            read_manifest(path, _catalogue(pools, is_spot=True))
        except InputError:
            raise InputError("it buys no spot nodes", file=path, remedy="leave out --spot") from None
    names = [field.name for field in dataclasses.fields(rule) if field.name not in _OURS]
    settings = {name: getattr(rule, name) for name in names}
    return dataclasses.replace(pools, rule=Karpenter.name, settings=settings)


def one_manifest(paths: list[Path], rules: list[str] | None, target: str | None) -> Path:
    """Return the one manifest to follow; a user error says what it cannot be combined with."""
    if len(paths) > 1:
        raise UserError("give one --policy with --cluster: the pools are sized by one NodePool")
    if rules and set(rules) != {Karpenter.name}:
        raise UserError("--policy with --cluster is a NodePool, so --rule can only be karpenter")
    if target is not None:
        raise UserError("--target chooses the settings itself; leave out --policy")
    return paths[0]


def _catalogue(pools: NodePools, *, is_spot: bool = False) -> tuple[NodeType, ...]:
    return tuple(
        NodeType(pool.group.name, pool.spot_price if is_spot else pool.price, {}, is_spot) for pool in pools.groups
    )
