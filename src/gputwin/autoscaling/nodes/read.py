"""Node pools from a YAML file: a cluster spec whose groups have limits, and an `autoscaler` section."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gputwin.autoscaling.nodes.spec import NodePools, PoolGroup
from gputwin.core.errors import InputError, UserError
from gputwin.simulation.cluster import cluster_of, open_cluster

_REMEDY = "see docs/autoscaling.md"
_OF_GROUP = ("minimum", "spot_price_per_hour")
_OF_AUTOSCALER: dict[str, type | tuple[type, ...]] = {
    "rule": str,
    "settings": dict,
    "period_seconds": (int, float),
    "boot_seconds": (int, float),
    "boot_sigma": (int, float),
    "movable": bool,
    "grace_seconds": (int, float),
}


def open_pools(name: str) -> NodePools:
    """Return the pools of a YAML file, or a named cluster whose groups become pools without a minimum."""
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        cluster = open_cluster(name)
        return NodePools(cluster.name, tuple(PoolGroup(group) for group in cluster.groups))
    import yaml

    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(error.strerror or str(error), file=path, remedy="check the path") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not YAML ({str(error).splitlines()[0]})", file=path, remedy=_REMEDY) from None
    return pools_of(data, path)


def pools_of(data: object, path: Path | None = None) -> NodePools:
    """Return the pools that plain data describes."""
    if not isinstance(data, dict):
        raise InputError("not a spec of node pools", file=path, remedy=f"it needs 'groups'; {_REMEDY}")
    section = data.get("autoscaler") or {}
    if not isinstance(section, dict):
        raise InputError("not a mapping", file=path, field="autoscaler", remedy=_REMEDY)
    for key, value in section.items():
        _check(str(key), value, path)
    groups = data.get("groups")
    extras: list[dict[str, Any]] = []
    stripped: list[Any] = []
    for i, group in enumerate(groups if isinstance(groups, list) else ()):
        if not isinstance(group, dict):
            raise InputError("not a mapping", file=path, field=f"groups.{i}", remedy=_REMEDY)
        extras.append(_extras(group, i, path))
        stripped.append({key: value for key, value in group.items() if key not in _OF_GROUP})
    plain = {key: value for key, value in data.items() if key != "autoscaler"}
    cluster = cluster_of({**plain, "groups": stripped} if isinstance(groups, list) else plain, path)
    try:
        pools = tuple(PoolGroup(group, **extra) for group, extra in zip(cluster.groups, extras, strict=True))
        return NodePools(cluster.name, pools, **section)
    except UserError as error:
        raise InputError(str(error), file=path, remedy=_REMEDY) from None


def _check(key: str, value: object, path: Path | None) -> None:
    if key not in _OF_AUTOSCALER:
        known = ", ".join(_OF_AUTOSCALER)
        raise InputError("unknown field", file=path, field=f"autoscaler.{key}", remedy=f"known: {known}")
    kind = _OF_AUTOSCALER[key]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise InputError(f"{value!r} is of the wrong kind", file=path, field=f"autoscaler.{key}", remedy=_REMEDY)


def _extras(group: dict[Any, Any], i: int, path: Path | None) -> dict[str, Any]:
    found = {key: group[key] for key in _OF_GROUP if key in group}
    for key, value in found.items():
        whole = key == "minimum"
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
            wanted = "a whole number" if whole else "a number"
            raise InputError(f"{value!r} is not {wanted}", file=path, field=f"groups.{i}.{key}", remedy=_REMEDY)
    return found
