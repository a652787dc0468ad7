"""The page that builds a scenario: fields made from the policy registry and the scenario's JSON schema."""

from __future__ import annotations

import re
from typing import Any

from gputwin.server.pages import blocks as b
from gputwin.server.pages.traces import CLUSTERS
from gputwin.server.service import Service
from gputwin.simulation.policy import KINDS
from gputwin.simulation.scenario import Scenario

_QUESTIONS = {
    "order": "Who goes next",
    "backfill": "Who may overtake",
    "placement": "Where it goes",
    "fairness": "Whose turn it is",
    "preemption": "Who must yield",
    "sharing": "How a GPU is divided",
}
_DEFAULTS = {"order": "fifo", "backfill": "greedy", "placement": "first-fit", "sharing": "fraction"}
_PLAIN = ("load_scale", "seed", "sla_wait_seconds", "resolution_seconds")
_PARTS = {
    "faults": ("Failures of nodes", "Nodes fail and are repaired"),
    "checkpoints": ("Checkpoints", "When jobs save their work, and what that takes"),
    "elasticity": ("Elastic jobs", "Jobs may have other sizes than they ask for"),
}
_LABELS = {
    "load_scale": "Demand, times the trace's",
    "sla_wait_seconds": "Count jobs that wait longer than (s)",
    "resolution_seconds": "Step of the series (s)",
    "mtbf_seconds": "Mean time between failures (s)",
    "gpu_mtbf_seconds": "Mean time between failures of a GPU (s)",
    "rack_mtbf_seconds": "Mean time between failures of a rack (s)",
    "shape": "Shape of times between failures",
    "repair_seconds": "Mean time to repair (s)",
    "repair": "Law of times to repair",
    "repair_sigma": "Sigma of lognormal times to repair",
    "repair_shape": "Shape of Weibull times to repair",
    "rack_repair_seconds": "Mean time to repair a rack (s)",
    "maintenance_period_seconds": "Time between maintenances (s)",
    "maintenance_seconds": "Length of a maintenance (s)",
    "maintenance_notice_seconds": "Notice of a maintenance (s)",
    "least_gpus": "GPUs of a job at least",
    "most_gpus": "GPUs of a job at most",
    "least_share": "Least share of its GPUs that a job keeps",
    "on_preemption": "Save on preemption",
    "stagger": "Jobs save at different times",
    "most_stops": "Stops of a job at most",
}


def new_run(service: Service, trace: str) -> b.Page:
    """Return the form for a run of a trace."""
    space = service.workspace
    known = [r for r in (space.trace_record(id_) for id_ in space.trace_ids()) if not r["is_serving"]]
    page = b.Page("/new", "New run", crumbs=[b.link("Traces and runs", "/")])
    page.lead = "Run a trace on a cluster under rules of your choice. The same scenario never runs twice."
    if not known:
        page.blocks.append(b.statement("There is no trace to run yet; upload or generate one first."))
        page.blocks.append(b.links(b.link("Add a trace", "/", primary=True)))
        return page
    chosen = trace if trace in [r["id"] for r in known] else known[0]["id"]
    has_nodes = next(r for r in known if r["id"] == chosen)["tables"].get("nodes", 0) > 0
    what = [
        b.select("trace", "Trace", [(r["id"], _trace_label(r)) for r in known], chosen),
        b.input_field(
            "cluster",
            "Cluster",
            placeholder="the trace's own nodes" if has_nodes else "homogeneous:10x8",
            help="pai2020, openb2023 or homogeneous:NODESxGPUS; empty: the trace's own nodes.",
            suggest=list(CLUSTERS),
        ),
    ]
    groups = [b.group(what, "What runs where"), b.group([_policy(kind) for kind in _QUESTIONS], "Rules")]
    groups.append(b.group(_tenants(), "Tenants", closed=True, text="Weights, quotas, guarantees, groups"))
    schema = Scenario.model_json_schema()
    groups.append(
        b.group(
            [_from_schema(n, schema["properties"][n], schema) for n in _PLAIN],
            "More",
            closed=True,
            text="Demand, seed, limits",
        )
    )
    for name, (title, text) in _PARTS.items():
        fields = [_from_schema(f"{name}.{n}", s, schema) for n, s in _part(schema, name).items() if _is_simple(s)]
        groups.append(b.group(fields, title, closed=True, text=text))
    page.blocks.append(b.form("run", "", "/api/runs", "Run", groups, check="/api/scenarios/validate"))
    return page


def _trace_label(record: dict[str, Any]) -> str:
    """Return what tells a trace from others: of generated ones the generator's words come first."""
    source, title = record["source"], record["title"]
    return f"{source}: {title}" if source.startswith("synthetic:") else f"{title} ({record['id']})"


def _tenants() -> list[b.Block]:
    """Return the terms of tenants, each as name=value with commas between."""
    return [
        b.input_field("weights", "Weights", placeholder="llm=2,vision=1", help="For DRF, fair queueing, fair share."),
        b.input_field("quotas", "GPUs at most", placeholder="llm=16", help="A quota: no more GPUs at a time."),
        b.input_field(
            "guarantees", "GPUs guaranteed", placeholder="llm=16,vision=8", help="Others may borrow them meanwhile."
        ),
        b.input_field("groups", "Groups", placeholder="llm=research/nlp", help="The tree of tenants, for hdrf."),
    ]


def _policy(kind: str) -> b.Block:
    """Return the choice of a policy, with each one's rule and parameters."""
    options: list[dict[str, Any]] = []
    if kind not in _DEFAULTS:
        options.append({"value": "", "label": "none", "parameters": {}})
    for policy in KINDS[kind]:
        given = {} if kind in ("backfill", "preemption") else dict(policy.parameters)
        options.append(
            {
                "value": policy.name,
                "label": policy.name,
                "help": re.sub(r"`([^`]*)`", r"“\1”", policy.rule),
                "parameters": given,
            }
        )
    return {
        "name": f"rules.{kind}",
        "label": _QUESTIONS[kind],
        "type": "select",
        "value": _DEFAULTS.get(kind, ""),
        "options": options,
    }


def _part(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the fields of a part of the scenario."""
    found = schema["properties"][name]
    reference = next((s["$ref"] for s in [found, *found.get("anyOf", []), *found.get("allOf", [])] if "$ref" in s), "")
    properties: dict[str, Any] = schema["$defs"][reference.rpartition("/")[2]]["properties"]
    return properties


def _types(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the one thing a field may be, besides nothing."""
    options = [s for s in spec.get("anyOf", [spec]) if s.get("type") != "null"]
    return options[0] if len(options) == 1 else {}


def _is_simple(spec: dict[str, Any]) -> bool:
    found = _types(spec)
    return "enum" in found or found.get("type") in ("number", "integer", "boolean")


def _from_schema(name: str, spec: dict[str, Any], schema: dict[str, Any]) -> b.Block:
    """Return the field of a form that a field of the scenario asks for; empty is its default."""
    found = _types(spec)
    own = name.rpartition(".")[2]
    label = _LABELS.get(own) or own.replace("_seconds", " (s)").replace("_", " ").capitalize()
    default = spec.get("default")
    if "enum" in found:
        return b.select(f"rules.{name}", label, [(v, v) for v in found["enum"]], str(default), skip=default)
    if found.get("type") == "boolean":
        return b.input_field(f"rules.{name}", label, "checkbox", default, skip=default)
    least = found.get("minimum", found.get("exclusiveMinimum"))
    more = {"step": 1} if found.get("type") == "integer" else {}
    return b.input_field(
        f"rules.{name}", label, "number", help="" if default is None else f"{default:g} unless given", min=least, **more
    )
