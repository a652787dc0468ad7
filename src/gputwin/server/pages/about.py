"""Pages on what there is: policies, and the REST API."""

from __future__ import annotations

from typing import Any

from gputwin.server.pages import blocks as b
from gputwin.server.rest.policies import policies


def policies_page() -> b.Page:
    """Return every policy by the question it answers."""
    page = b.Page(
        "/policies", "Policies", lead="Each answers one question of scheduling; a run takes one answer to each."
    )
    found: dict[str, list[dict[str, Any]]] = {}
    for policy in policies():
        found.setdefault(policy["kind"], []).append(policy)
    columns = [
        b.column("name", "code"),
        b.column("rule", whole=True),
        b.column("parameters", "code", whole=True),
        b.column("source", whole=True),
    ]
    for kind, members in found.items():
        rows = [
            [
                p["name"],
                p["rule"].replace("`", ""),
                ", ".join(f"{k}={v:g}" for k, v in p["parameters"].items()) or "–",
                p["source"] or "–",
            ]
            for p in members
        ]
        page.blocks.append(b.table(kind.capitalize(), columns, rows, stacks=True))
    return page


def rest_page(description: dict[str, Any]) -> b.Page:
    """Return what the REST API answers, from its OpenAPI description."""
    page = b.Page("/rest", "REST API", lead="All that the pages show, for programs.")
    page.blocks.append(
        b.links(b.link("OpenAPI description", "/api/openapi.json"), b.link("Prometheus metrics", "/metrics"))
    )
    by_tag: dict[str, list[list[b.Cell]]] = {}
    for path, methods in description["paths"].items():
        for method, told in methods.items():
            by_tag.setdefault((told.get("tags") or ["other"])[0], []).append(
                [f"{method.upper()} {path}", told.get("summary", "")]
            )
    columns = [b.column("request", "code"), b.column("what", whole=True)]
    for tag, rows in by_tag.items():
        page.blocks.append(b.table(tag.capitalize(), columns, rows, stacks=True))
    return page
