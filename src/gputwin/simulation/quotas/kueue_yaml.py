"""Kueue's ClusterQueue and Cohort objects as a tree of quotas: what `kubectl get clusterqueues,cohorts -o yaml` prints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from gputwin.core.errors import InputError, UserError, shorten
from gputwin.core.units import parse_quantity
from gputwin.simulation.quotas.tree import FlavorResource, PreemptionPolicy, Quota, QuotaNode, QuotaTree, build_tree

CPU_UNITS = 1000
"""Units of a CPU: amounts of CPU are counted in milli-CPU, all others as given."""

_WITHIN = ("Never", "LowerPriority", "LowerOrNewerEqualPriority")
_PREEMPTION = ("withinClusterQueue", "reclaimWithinCohort", "borrowWithinCohort")
_RECLAIM = ("Never", "LowerPriority", "Any")


def read_quotas(path: Path) -> QuotaTree:
    """Return the tree of the ClusterQueues and Cohorts in a YAML file; objects of other kinds are passed over."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError("no such file", file=path, remedy="give a YAML file of ClusterQueues and Cohorts") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", file=path) from None
    try:
        nodes = [node for document in yaml.safe_load_all(text) for node in _objects(document, path)]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = f"not YAML: {getattr(error, 'problem', None) or error}"
        raise InputError(problem, file=path, row=None if mark is None else mark.line + 1) from None
    if not any(node.is_queue for node in nodes):
        raise InputError(
            "no ClusterQueue in it", file=path, remedy="export them with kubectl get clusterqueues -o yaml"
        )
    try:
        return build_tree(nodes)
    except UserError as error:
        raise InputError(str(error), file=path) from None


def _objects(document: Any, path: Path) -> Iterator[QuotaNode]:
    if document is None:
        return
    if not isinstance(document, dict):
        raise InputError(
            f"'{shorten(document)}' is not a Kubernetes object", file=path, remedy="write kind, metadata, spec"
        )
    if document.get("kind") == "List":
        for item in _list(document, "items", path, "List"):
            yield from _objects(item, path)
    elif document.get("kind") in ("ClusterQueue", "Cohort"):
        yield _node(document, path)


def _node(document: dict[str, Any], path: Path) -> QuotaNode:
    kind = document["kind"]
    name = _mapping(document, "metadata", path, kind).get("name")
    if not isinstance(name, str) or not name:
        raise InputError(f"a {kind} without a name", file=path, field="metadata.name")
    where = f"{kind} {name}"
    spec = _mapping(document, "spec", path, where)
    is_queue = kind == "ClusterQueue"
    parent = next(
        (spec[k] for k in (("cohortName", "cohort") if is_queue else ("parentName", "parent")) if spec.get(k)), None
    )
    if parent is not None and not isinstance(parent, str):
        raise InputError(f"'{shorten(parent)}' is not a name", file=path, field=f"{where}: cohort")
    weight = _known(_mapping(spec, "fairSharing", path, where), ("weight",), path, f"{where}: fairSharing").get(
        "weight"
    )
    fair = 1.0 if weight is None else _quantity(weight, path, f"{where}: fairSharing.weight")
    policy = _policy(spec, path, where) if is_queue else PreemptionPolicy()
    return QuotaNode(name, parent, _quotas(spec, path, where), fair, is_queue, policy)


def _quotas(spec: dict[str, Any], path: Path, where: str) -> dict[FlavorResource, Quota]:
    quotas: dict[FlavorResource, Quota] = {}
    for group in _list(spec, "resourceGroups", path, where):
        for flavor in _list(_entry(group, path, where), "flavors", path, where):
            flavor_name = _entry(flavor, path, where).get("name")
            for resource in _list(flavor, "resources", path, where):
                resource_name = _entry(resource, path, where).get("name")
                if not isinstance(flavor_name, str) or not isinstance(resource_name, str):
                    raise InputError("a quota without the names of its flavor and resource", file=path, field=where)
                fr = FlavorResource(flavor_name, resource_name)
                if fr in quotas:
                    raise InputError(f"{flavor_name}/{resource_name} twice", file=path, field=where, remedy="keep one")
                at = f"{where}: {flavor_name}/{resource_name}"
                _known(resource, ("name", *_AMOUNTS), path, at)
                if resource.get("nominalQuota") is None:
                    raise InputError("none", file=path, field=f"{at}.nominalQuota", remedy="give one, 0 to only borrow")
                quotas[fr] = Quota(*(_amount(resource, k, d, path, at) for k, d in _AMOUNTS.items()))
    return quotas


_AMOUNTS = {"nominalQuota": 0.0, "borrowingLimit": float("inf"), "lendingLimit": float("inf")}


def _amount(resource: dict[str, Any], key: str, default: float, path: Path, where: str) -> float:
    if resource.get(key) is None:
        return default
    return _quantity(resource[key], path, f"{where}.{key}") * (CPU_UNITS if resource["name"] == "cpu" else 1)


def _policy(spec: dict[str, Any], path: Path, where: str) -> PreemptionPolicy:
    given = _known(_mapping(spec, "preemption", path, where), _PREEMPTION, path, f"{where}: preemption")
    borrow = _mapping(given, "borrowWithinCohort", path, where)
    _known(borrow, ("policy", "maxPriorityThreshold"), path, f"{where}: borrowWithinCohort")
    threshold = borrow.get("maxPriorityThreshold")
    if threshold is not None and (isinstance(threshold, bool) or not isinstance(threshold, int)):
        raise InputError(f"'{shorten(threshold)}' is not a priority", file=path, field=f"{where}: maxPriorityThreshold")
    return PreemptionPolicy(
        _choice(given, "withinClusterQueue", _WITHIN, path, where),
        _choice(given, "reclaimWithinCohort", _RECLAIM, path, where),
        _choice(borrow, "policy", ("Never", "LowerPriority"), path, f"{where}: borrowWithinCohort") != "Never",
        threshold,
    )


def _known(given: dict[str, Any], fields: tuple[str, ...], path: Path, where: str) -> dict[str, Any]:
    """Return the mapping; a field that Kueue does not have would be a limit that is silently not kept."""
    if unknown := [key for key in given if key not in fields]:
        write = fields[0] if len(fields) == 1 else f"one of {', '.join(fields)}"
        raise InputError(f"'{shorten(unknown[0])}' is unknown", file=path, field=where, remedy=f"write {write}")
    return given


def _choice(given: dict[str, Any], key: str, choices: tuple[str, ...], path: Path, where: str) -> str:
    value = given.get(key) or choices[0]
    if value not in choices:
        raise InputError(
            f"'{shorten(value)}' is unknown",
            file=path,
            field=f"{where}: {key}",
            remedy=f"write one of {', '.join(choices)}",
        )
    return str(value)


def _quantity(value: Any, path: Path, where: str) -> float:
    try:
        amount = float(parse_quantity(str(value)))
    except UserError as error:
        raise InputError(str(error), file=path, field=where) from None
    if amount < 0:
        raise InputError(f"'{shorten(value)}' is negative", file=path, field=where, remedy="give 0 or more")
    return amount


def _entry(value: Any, path: Path, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"'{shorten(value)}' is not a set of fields", file=path, field=where)
    return value


def _mapping(value: dict[str, Any], key: str, path: Path, where: str) -> dict[str, Any]:
    return _entry(value.get(key) or {}, path, f"{where}: {key}")


def _list(value: dict[str, Any], key: str, path: Path, where: str) -> list[Any]:
    found = value.get(key) or []
    if not isinstance(found, list):
        raise InputError(f"'{shorten(found)}' is not a list", file=path, field=f"{where}: {key}")
    return found


class LocalQueue(NamedTuple):
    """A queue of a namespace, and the ClusterQueue it leads to."""

    namespace: str
    name: str
    cluster_queue: str


def read_local_queues(path: Path) -> list[LocalQueue]:
    """Return the LocalQueues in a file that `read_quotas` has read."""
    found = []
    documents = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    while documents:
        document = documents.pop(0)
        if isinstance(document, dict) and document.get("kind") == "List":
            documents += _list(document, "items", path, "List")
        elif isinstance(document, dict) and document.get("kind") == "LocalQueue":
            about = _mapping(document, "metadata", path, "LocalQueue")
            name, namespace = about.get("name"), about.get("namespace") or "default"
            leads_to = _mapping(document, "spec", path, f"LocalQueue {name}").get("clusterQueue")
            for field, value in (("metadata.name", name), ("spec.clusterQueue", leads_to)):
                if not isinstance(value, str) or not value:
                    raise InputError(f"LocalQueue {name} without {field}", file=path, field=field)
            found.append(LocalQueue(str(namespace), str(name), str(leads_to)))
    return found
