"""Writes the pages that are generated from code: `python -m docs.generate`. A test fails while they are out of date."""

from __future__ import annotations

from pathlib import Path

from gputwin.autoscaling.decisions.registry import RULES as SCALING
from gputwin.autoscaling.pools.registry import POOL_RULES
from gputwin.simulation.policy import KINDS
from gputwin.traces import schema
from gputwin.traces.catalog import CATALOG
from gputwin.traces.quality import RULES
from gputwin.traces.reader import READERS

HERE = Path(__file__).parent
_BY_HAND = "by `make docs`; do not edit by hand."


def quality_page() -> str:
    """Return the page of data-quality rules."""
    lines = [
        "# Data-quality rules",
        "",
        f"Generated from `src/gputwin/traces/quality.py` {_BY_HAND}",
        "",
        "Each rule drops the rows it concerns, repairs them (a wrong value becomes unknown, never a guess) or flags",
        "them. Rows read = rows kept + rows dropped, always. `--strict` makes any finding an error.",
        "",
        "| rule | what it finds | action |",
        "|---|---|---|",
    ]
    return "\n".join([*lines, *(f"| {r.id} | {r.title} | {r.action.value} |" for r in RULES.values())]) + "\n"


def formats_page() -> str:
    """Return the page of trace formats and of public traces."""
    lines = ["# Formats and public traces", "", f"Generated from the readers and the catalogue {_BY_HAND}", ""]
    lines += ["| format | what |", "|---|---|"]
    lines += [f"| `{r.name}` | {r.title} |" for r in READERS]
    lines += ["", "Public traces that `gputwin traces fetch NAME` downloads and verifies:", ""]
    lines += ["| name | what | licence | files |", "|---|---|---|---|"]
    lines += [f"| `{t.name}` | {t.title} | {t.licence} | {len(t.files)} |" for t in CATALOG]
    return "\n".join(lines) + "\n"


def policies_page() -> str:
    """Return the page of policies."""
    lines = [
        "# Policies",
        "",
        f"Generated from the registries {_BY_HAND} Write your own: [own-policy.md](own-policy.md).",
    ]
    for title, kind in (
        ("Who goes next (`--order`)", "order"),
        ("Who may overtake (`--backfill`)", "backfill"),
        ("Where it goes (`--placement`)", "placement"),
        ("Whose turn it is, who must hold back (`--fairness`)", "fairness"),
        ("Who must yield (`--preempt`)", "preemption"),
        ("How fast it runs (`speed.policy` of a scenario)", "speed"),
    ):
        lines += ["", f"## {title}", "", "| name | rule | parameters | source |", "|---|---|---|---|"]
        for p in KINDS[kind]:
            parameters = ", ".join(f"`{k}={v:g}`" for k, v in p.parameters.items())
            lines.append(f"| `{p.name}` | {p.rule} | {parameters} | {p.source} |")
    more = "Formulas and worked sequences: [autoscaling-rules.md](autoscaling-rules.md)."
    for title, rules in (("How many replicas", SCALING), ("How many nodes", POOL_RULES)):
        lines += ["", f"## {title}", "", more, "", "| name | rule | parameters | source |", "|---|---|---|---|"]
        for r in rules:
            parameters = ", ".join(f"`{k}={v:g}`" for k, v in r.numbers().items())
            lines.append(f"| `{r.name}` | {r.rule} | {parameters} | {r.source} |")
    return "\n".join(lines) + "\n"


PAGES = {
    "schema.md": schema.markdown,
    "quality.md": quality_page,
    "formats.md": formats_page,
    "policies.md": policies_page,
}


def main() -> None:
    """Write all pages."""
    for name, make in PAGES.items():
        (HERE / name).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
