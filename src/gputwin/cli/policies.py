"""`gputwin policies`: every registered policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gputwin.cli.console import Json, Quiet, emit, say, table
from gputwin.cli.options import Policies
from gputwin.cli.settings import settings

if TYPE_CHECKING:
    import polars as pl


def run(
    policies: Policies = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the policies: who goes next, whose turn it is, who may overtake, where it goes, who must yield, and so on.

    Examples:

        gputwin policies

        gputwin policies --policies my_policy.py --json
    """
    from gputwin.autoscaling.decisions.registry import RULES
    from gputwin.autoscaling.pools.registry import POOL_RULES
    from gputwin.simulation.elasticity.sizes import ELASTIC
    from gputwin.simulation.planning.snapshot import PLANNERS
    from gputwin.simulation.policy import KINDS
    from gputwin.simulation.policy_files import load_policies

    for path in policies or ():
        load_policies(path)
    entries = [
        {"kind": kind, "name": p.name, "rule": p.rule, "parameters": dict(p.parameters), "source": p.source}
        for kind, registry in KINDS.items()
        for p in registry
    ]
    entries += [
        {"kind": kind, "name": p.name, "rule": p.rule, "parameters": {}, "source": p.source}
        for kind, registry in (("planner", PLANNERS), ("elastic", ELASTIC))
        for p in registry
    ]
    entries += [
        {"kind": kind, "name": r.name, "rule": r.rule, "parameters": r.numbers(), "source": r.source}
        for kind, rules in (("scaling", RULES), ("node pool", POOL_RULES))
        for r in rules
    ]

    def render() -> None:
        if not settings().full:
            kinds = dict.fromkeys(str(e["kind"]) for e in entries)
            names = [[kind, ", ".join(str(e["name"]) for e in entries if e["kind"] == kind)] for kind in kinds]
            table("Policies", ["kind", "names"], names)
            say("Rules, parameters with their defaults, and sources: --full, or docs/policies.md")
            return
        rows = [
            [e["kind"], e["name"], e["rule"], ", ".join(f"{k}={v:g}" for k, v in e["parameters"].items()), e["source"]]
            for e in entries
        ]
        table("Policies", ["kind", "name", "rule", "parameters", "source"], rows)

    def frame() -> pl.DataFrame:
        import polars as pl

        flat = [{**e, "parameters": ",".join(f"{k}={v:g}" for k, v in e["parameters"].items())} for e in entries]
        return pl.DataFrame(flat)

    emit({"policies": entries}, json, render, frame)
