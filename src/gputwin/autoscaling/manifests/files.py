"""A rule as YAML text, and the rule of a YAML file: what was exported decides alike when read back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from gputwin.autoscaling.decisions.interface import Rule
from gputwin.autoscaling.decisions.rules.hpa import Hpa
from gputwin.autoscaling.decisions.rules.keda import Keda
from gputwin.autoscaling.decisions.rules.knative import Kpa
from gputwin.autoscaling.decisions.rules.scaledjob import ScaledJob
from gputwin.autoscaling.manifests.hpa import from_hpa, to_hpa
from gputwin.autoscaling.manifests.karpenter import from_node_pool, to_node_pool
from gputwin.autoscaling.manifests.keda import from_scaled_job, from_scaled_object, to_scaled_job, to_scaled_object
from gputwin.autoscaling.manifests.knative import from_knative, to_knative
from gputwin.autoscaling.pools.interface import NodeType
from gputwin.autoscaling.pools.karpenter import Karpenter
from gputwin.core.errors import InputError, UserError

_NO_TYPES = (NodeType("any", 0.0, {}),)
MOST_BYTES = 1_000_000
"""Files larger than this are no manifests."""
KINDS = "HorizontalPodAutoscaler, ScaledObject, ScaledJob, Service (Knative) or NodePool"


def manifest_text(rule: Rule[Any] | Karpenter, name: str = "gputwin", workload: str = "server") -> str:
    """Return the rule as YAML. Rules that Kubernetes has no object for are a user error."""
    documents: list[dict[str, Any]]
    if isinstance(rule, Hpa):
        documents = [to_hpa(rule, name, workload)]
    elif isinstance(rule, Keda):
        documents = [to_scaled_object(rule, name, workload)]
    elif isinstance(rule, ScaledJob):
        documents = [to_scaled_job(rule, name, workload)]
    elif isinstance(rule, Kpa):
        documents = to_knative(rule, name, workload)
    elif isinstance(rule, Karpenter):
        documents = [to_node_pool(rule, name)]
    else:
        raise UserError(f"'{rule.name}' has no Kubernetes manifest; export hpa, keda, keda-job, knative or karpenter")
    return yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True)


def rule_of_text(text: str, types: Sequence[NodeType] = (), file: str | None = None) -> Rule[Any] | Karpenter:
    """Return the rule of the first autoscaling object in YAML text; `types` is the catalogue for a NodePool."""
    documents = _documents(text, file)
    config = next((d for d in documents if d.get("kind") == "ConfigMap"), None)
    for document in documents:
        kind, version = document.get("kind"), str(document.get("apiVersion", ""))
        if kind == "HorizontalPodAutoscaler":
            if version != "autoscaling/v2":
                raise InputError(
                    f"'{version}' is not autoscaling/v2", file=file, field="apiVersion", remedy="convert it"
                )
            return from_hpa(document, file)
        if kind == "ScaledObject":
            return from_scaled_object(document, file)
        if kind == "ScaledJob":
            return from_scaled_job(document, file)
        if kind == "Service" and version.startswith("serving.knative.dev/"):
            return from_knative(document, config, file)
        if kind == "NodePool":
            if not types:
                raise InputError("a NodePool needs a catalogue of node types with prices", file=file, field="kind")
            return from_node_pool(document, types, file)
    raise InputError(f"there is no {KINDS}", file=file, field="kind")


def read_manifest(path: Path, types: Sequence[NodeType] = ()) -> Rule[Any] | Karpenter:
    """Return the rule of a YAML file."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"larger than {MOST_BYTES:,} bytes, so no manifest", file=path)
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(error.strerror or str(error), file=path) from None
    except UnicodeDecodeError:
        raise InputError("no UTF-8 text, so no manifest", file=path) from None
    return rule_of_text(text, types, str(path))


def given_rules(paths: Sequence[Path]) -> tuple[tuple[str, Rule[Any]], ...]:
    """Return the rules of files that size replicas, each by the file's name."""
    found: list[tuple[str, Rule[Any]]] = []
    for path in paths:
        rule = read_manifest(path, _NO_TYPES)
        if isinstance(rule, Karpenter | ScaledJob):
            raise InputError(
                "it sizes no replicas", file=path, field="kind", remedy="give an HPA, KEDA or Knative object"
            )
        name = path.stem
        found.append((name if name not in dict(found) else f"{name}-{len(found) + 1}", rule))
    return tuple(found)


def _documents(text: str, file: str | None) -> list[dict[str, Any]]:
    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "no YAML"
        raise InputError(f"no YAML: {problem}", file=file, row=mark.line + 1 if mark else None) from None
    except (RecursionError, ValueError) as error:
        raise InputError(f"no YAML: {type(error).__name__}", file=file) from None
    for document in documents:
        if document is not None and not isinstance(document, dict):
            raise InputError("give a manifest: a mapping with apiVersion, kind and spec", file=file)
    return [document for document in documents if document]
