"""`gputwin policies`: every registered policy."""

from __future__ import annotations

from typing import Any

from gputwin.cli.console import Json, Quiet, emit, table
from gputwin.cli.options import Policies


def run(
    policies: Policies = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the policies: who goes next, who may overtake, where it goes.

    Examples:

        gputwin policies

        gputwin policies --policies my_policy.py --json
    """
    from gputwin.simulation.policy import BACKFILLS, ORDERINGS, PLACEMENTS, load_policies

    for path in policies or ():
        load_policies(path)
    kinds: dict[str, Any] = {"order": ORDERINGS, "backfill": BACKFILLS, "placement": PLACEMENTS}
    entries = [
        {"kind": kind, "name": p.name, "rule": p.rule, "parameters": dict(p.parameters), "source": p.source}
        for kind, registry in kinds.items()
        for p in registry
    ]

    def render() -> None:
        rows = [
            [e["kind"], e["name"], e["rule"], ", ".join(f"{k}={v:g}" for k, v in e["parameters"].items()), e["source"]]
            for e in entries
        ]
        table("Policies", ["kind", "name", "rule", "parameters", "source"], rows)

    emit({"policies": entries}, json, render)
