"""Writes the pages that are generated from code: `python -m docs.generate`. A test fails while they are out of date."""

from __future__ import annotations

from pathlib import Path

from gputwin.simulation.policy import KINDS
from gputwin.traces import schema
from gputwin.traces.catalog import CATALOG
from gputwin.traces.quality import RULES
from gputwin.traces.reader import READERS
from gputwin.traces.readers.mapped.fields import FIELDS

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


def log_fields_page() -> str:
    """Return the page of what a column of one's own log can mean."""
    lines = [
        "# Fields of a mapping",
        "",
        f"Generated from the reader {_BY_HAND} How to use them: [own-log.md](own-log.md).",
    ]
    for table, fields in FIELDS.items():
        lines += [
            "",
            f"## {table}",
            "",
            "| field | kind | meaning | column names that suggest it |",
            "|---|---|---|---|",
        ]
        for f in fields:
            names = ", ".join(f"`{name}`" for name in f.names[1:6])
            lines.append(f"| `{f.name}` | {f.kind.value} | {f.meaning.replace('|', '&#124;')} | {names} |")
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
        ("Who must yield (`--preempt`)", "preemption"),
        ("How fast it runs (`speed.policy` of a scenario)", "speed"),
    ):
        lines += ["", f"## {title}", "", "| name | rule | parameters | source |", "|---|---|---|---|"]
        for p in KINDS[kind]:
            parameters = ", ".join(f"`{k}={v:g}`" for k, v in p.parameters.items())
            lines.append(f"| `{p.name}` | {p.rule} | {parameters} | {p.source} |")
    return "\n".join(lines) + "\n"


PAGES = {
    "schema.md": schema.markdown,
    "quality.md": quality_page,
    "formats.md": formats_page,
    "policies.md": policies_page,
    "log-fields.md": log_fields_page,
}


def main() -> None:
    """Write all pages."""
    for name, make in PAGES.items():
        (HERE / name).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
