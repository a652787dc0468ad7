"""Kubernetes: what `kubectl get pods,nodes --all-namespaces -o json` prints, in one file or several.

A pod is an instance. Pods of one job (owner of kind …Job) with the same role, the same request and made within a
minute are a gang: one task. Any other pod is a task of its own, also a replica of a service, which need not start
with the others. A pod's request is the most it needs at any time, over containers, init containers and overhead. It
starts when it is bound to a node and ends with its last container. The namespace is the tenant. Nodes count with
what is allocatable on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from gputwin.core.errors import InputError, shorten
from gputwin.traces.document import Item, read_json
from gputwin.traces.quality import QualityLog
from gputwin.traces.reader import READERS, Clock, Draft, Input, Reader
from gputwin.traces.readers.kubernetes.gangs import instance_table, task_table, tasks_of
from gputwin.traces.readers.kubernetes.nodes import node_of, node_table
from gputwin.traces.readers.kubernetes.pods import Pod, pod_of
from gputwin.traces.sources import Source


def _recognise(source: Source) -> str | None:
    """Return "objects" where the file starts like a Kubernetes object or list of them."""
    head = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return "objects" if head.startswith(b"{") and b'"apiVersion"' in head else None


def _objects(source: Source) -> Iterator[tuple[str, Item]]:
    """Yield each object of a file with its kind; items of a typed list (PodList) may leave theirs out."""
    top = Item.of(source.label, "", read_json(source))
    kind = top.name("kind")
    if "items" not in top.value:
        yield kind, top
        return
    for item in top.children("items"):
        yield item.text("kind") or kind.removesuffix("List"), item


def _identity(kind: str, item: Item) -> tuple[str, str, str]:
    metadata = item.child("metadata")
    return kind, metadata.text("namespace") or "", metadata.text("uid") or metadata.name("name")


def _told_apart(pods: list[Pod]) -> Iterator[Pod]:
    """Yield the pods; one that took an earlier one's name (a StatefulSet's) is named with its uid as well."""
    names: set[tuple[str, str]] = set()
    for pod in pods:
        if (pod.namespace, pod.name) in names:
            yield replace(pod, name=f"{pod.name}@{pod.uid}")
        else:
            names.add((pod.namespace, pod.name))
            yield pod


def read(inputs: Sequence[Input], quality: QualityLog) -> Draft:
    """Return nodes, and tasks and instances from pods; other kinds of objects are counted and dropped."""
    found: dict[str, list[Item]] = {"Node": [], "Pod": []}
    seen: set[tuple[str, str, str]] = set()
    strangers: Counter[str] = Counter()
    copies = 0
    for given in inputs:
        for kind, item in _objects(given.source):
            quality.read(given.source.label, 1)
            if kind not in found:
                strangers[shorten(kind)] += 1
            elif (identity := _identity(kind, item)) in seen:
                copies += 1
            else:
                seen.add(identity)
                found[kind].append(item)
    quality.find("F22", "items", strangers.total(), detail=shorten(", ".join(sorted(strangers)), 200))
    quality.find("Q02", "items", copies, detail="the same object again")
    if not found["Node"] and not found["Pod"]:
        raise InputError(
            "no pods and no nodes", file=inputs[0].source.label, remedy="export: kubectl get pods,nodes -A -o json"
        )
    tables: dict[str, pl.DataFrame] = {}
    nodes = [node_of(item, quality) for item in found["Node"]]
    if nodes:
        tables["nodes"] = node_table(nodes, quality)
    sharers = {node.row.node_id: node.sharers for node in nodes}
    if found["Pod"]:
        pods = [pod_of(item, sharers, quality) for item in found["Pod"]]
        tasks = list(tasks_of(_told_apart(pods)))
        tables |= {"tasks": task_table(tasks), "instances": instance_table(tasks)}
    return Draft(tables, Clock.ABSOLUTE)


READER = READERS.add(Reader("kubernetes", "Kubernetes pods and nodes (kubectl)", (), read, _recognise))
