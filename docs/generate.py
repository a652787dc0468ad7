"""Writes the pages that are generated from code: `python -m docs.generate`. A test fails while they are out of date."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import gputwin
from gputwin.autoscaling.decisions.registry import RULES as SCALING
from gputwin.autoscaling.pools.registry import POOL_RULES
from gputwin.simulation.elasticity.sizes import ELASTIC
from gputwin.simulation.planning.snapshot import PLANNERS
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
        ("Whose turn it is, who must hold back (`--fairness`)", "fairness"),
        ("Who must yield (`--preempt`)", "preemption"),
        ("How fast it runs (`speed.policy` of a scenario)", "speed"),
    ):
        lines += ["", f"## {title}", "", "| name | rule | parameters | source |", "|---|---|---|---|"]
        for p in KINDS[kind]:
            parameters = ", ".join(f"`{k}={v:g}`" for k, v in p.parameters.items())
            lines.append(f"| `{p.name}` | {p.rule} | {parameters} | {p.source} |")
    lines += [
        "",
        "## Who runs on which GPU model, planned at rounds (`--planner`)",
        "",
        "| name | rule | source |",
        "|---|---|---|",
    ]
    lines += [f"| `{p.name}` | {p.rule} | {p.source} |" for p in PLANNERS]
    lines += ["", "## How many GPUs each job has (`--elastic`)", "", "| name | rule | source |", "|---|---|---|"]
    lines += [f"| `{p.name}` | {p.rule} | {p.source} |" for p in ELASTIC]
    more = "Formulas and worked sequences: [autoscaling-rules.md](autoscaling-rules.md)."
    for title, rules in (("How many replicas", SCALING), ("How many nodes", POOL_RULES)):
        lines += ["", f"## {title}", "", more, "", "| name | rule | parameters | source |", "|---|---|---|---|"]
        for r in rules:
            parameters = ", ".join(f"`{k}={v:g}`" for k, v in r.numbers().items())
            lines.append(f"| `{r.name}` | {r.rule} | {parameters} | {r.source} |")
    return "\n".join(lines) + "\n"


def api_page() -> str:
    """Return the page of public Python names."""
    lines = ["# Python", "", f"Generated from `src/gputwin/api/` {_BY_HAND}", ""]
    lines += [
        "`import gputwin` gives these names; they load on first use. Every function takes a path as text or `Path`,",
        "a spec such as `synthetic:pai2020?jobs=1000` or `homogeneous:10x8`, or an object opened before. Results show",
        "themselves at the prompt and in notebooks. Errors are `gputwin.UserError`, with the file, row and field at fault",
        "where there is one (`gputwin.InputError`). The package is typed (`py.typed`).",
    ]
    functions = [n for n in gputwin.__all__ if n[0].islower()]
    lines += ["", "| name | returns |", "|---|---|"]
    for name in functions:
        lines.append(f"| [`{name}`](#{name}) | {_first_line(getattr(gputwin, name)).removeprefix('Return ')} |")
    for name in (n for n in gputwin.__all__ if n[0].isupper()):
        lines.append(f"| `{name}` | {_first_line(getattr(gputwin, name))} |")
    for name in functions:
        function = getattr(gputwin, name)
        signature = str(inspect.signature(function)).replace("'", "")
        before, _, example = inspect.cleandoc(function.__doc__).partition(">>>")
        lines += ["", f"## {name}", "", f"`gputwin.{name}{signature}`", "", before.strip()]
        lines += ["", "```python", f">>>{example}".strip(), "```"]
    return "\n".join(lines) + "\n"


def _first_line(thing: object) -> str:
    paragraph = inspect.cleandoc(thing.__doc__ or "").partition("\n\n")[0]
    return re.split(r"(?<=\.)\s", paragraph, maxsplit=1)[0].replace("|", "&#124;")


PAGES = {
    "schema.md": schema.markdown,
    "quality.md": quality_page,
    "formats.md": formats_page,
    "policies.md": policies_page,
    "log-fields.md": log_fields_page,
    "api.md": api_page,
}


def main() -> None:
    """Write all pages."""
    for name, make in PAGES.items():
        (HERE / name).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
