"""The data-quality log: numbered rules, what each found, and the count of rows read, kept and dropped.

A rule is applied to a canonical table and either drops the rows it concerns, repairs them (a wrong value becomes
unknown, never a guess) or flags them (they stay as they are). Readers report what only they can see through the same
log. Rows read = rows kept + rows dropped, always.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum

import polars as pl

from gputwin.core.errors import InputError, shorten

EXAMPLES = 3


class Action(StrEnum):
    """What was done about the rows a rule concerns."""

    DROPPED = "dropped"
    REPAIRED = "repaired"
    FLAGGED = "flagged"


@dataclass(frozen=True)
class Rule:
    """One numbered rule of the report."""

    id: str
    title: str
    action: Action


def _rules(*rows: tuple[str, str, Action]) -> dict[str, Rule]:
    return {id_: Rule(id_, title, action) for id_, title, action in rows}


RULES: Mapping[str, Rule] = _rules(
    # Files and cells: what a reader sees while it parses.
    ("F01", "file not recognised, skipped", Action.FLAGGED),
    ("F02", "column not known to the reader, ignored", Action.FLAGGED),
    ("F03", "cell that does not parse, made unknown", Action.REPAIRED),
    ("F04", "column left out on purpose: it is not a measurement", Action.FLAGGED),
    ("F05", "exact copy of another row, kept because rows carry no id", Action.FLAGGED),
    ("F06", "parts of the trace run on unrelated clocks; each starts at zero", Action.FLAGGED),
    ("F07", "row that belongs to no job of the trace, dropped", Action.DROPPED),
    ("F08", "value outside the source's own vocabulary", Action.FLAGGED),
    (
        "F09",
        "local time that is ambiguous or skipped (clock change), resolved to the earlier",
        Action.REPAIRED,
    ),
    ("F10", "amount that is not a whole number of units, rounded", Action.REPAIRED),
    ("F11", "number that is not finite or absurdly large, made unknown", Action.REPAIRED),
    ("F12", "quantities of the source that contradict each other, kept as they are", Action.FLAGGED),
    ("F13", "there before the trace began: the source puts it at time zero", Action.FLAGGED),
    ("F14", "column the canonical tables have no place for, left out", Action.FLAGGED),
    ("F20", "line with another number of fields than the format has, dropped", Action.DROPPED),
    ("F21", "resource the trace has no column for, left out", Action.FLAGGED),
    ("F22", "item of a kind the reader does not use, dropped", Action.DROPPED),
    ("F23", "node closed to new work, kept", Action.FLAGGED),
    ("F24", "list of array tasks cut short by the source; those it names are kept", Action.FLAGGED),
    ("F25", "wall-clock times that name no zone, read as UTC", Action.FLAGGED),
    (
        "F26",
        "alive at an end of its trace that is not one of the merged record: counts as far as it was seen",
        Action.REPAIRED,
    ),
    # Identity.
    ("Q01", "identifier missing, row dropped", Action.DROPPED),
    ("Q02", "identifier used twice, later rows dropped", Action.DROPPED),
    # Times.
    ("Q10", "time that is negative or not a number, made unknown", Action.REPAIRED),
    ("Q11", "starts before it is submitted: submit time made unknown", Action.REPAIRED),
    ("Q12", "ends before it starts: end time made unknown", Action.REPAIRED),
    ("Q13", "ran when the trace began: holds its request from then on, leaves scheduling analysis", Action.FLAGGED),
    ("Q14", "alive when the trace ended: leaves runtime analysis", Action.FLAGGED),
    ("Q15", "never started", Action.FLAGGED),
    ("Q16", "ran for no time at all", Action.FLAGGED),
    ("Q17", "clock jump: a gap far longer than the usual step", Action.FLAGGED),
    ("Q18", "duration that is negative or not a number, made unknown", Action.REPAIRED),
    ("Q19", "no submit or start time: when it held its request is not known, leaves every load", Action.FLAGGED),
    # Amounts.
    ("Q20", "amount that is negative or not a number, made unknown", Action.REPAIRED),
    ("Q21", "asks for more than a whole of one GPU, capped", Action.REPAIRED),
    ("Q22", "asks for more than any node has", Action.FLAGGED),
    ("Q23", "asks for a GPU model no node has", Action.FLAGGED),
    ("Q24", "asks for more than its limit", Action.FLAGGED),
    ("Q25", "gang of no instances, made one", Action.REPAIRED),
    # Tables against each other.
    ("Q30", "ran on a machine that is not in the node table", Action.FLAGGED),
    ("Q31", "instance of a task that is not in the task table", Action.FLAGGED),
    ("Q32", "task with another number of instances than it asked for", Action.FLAGGED),
    ("Q33", "used more than the machine has", Action.FLAGGED),
)

Example = dict[str, str | int | float | bool | None]


@dataclass(frozen=True)
class Finding:
    """What one rule found in one table or file."""

    rule: str
    title: str
    table: str
    count: int
    action: str
    detail: str = ""
    examples: tuple[Example, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return the finding as plain data."""
        return asdict(self) | {"examples": list(self.examples)}

    def line(self) -> str:
        """Return the finding in one line of words."""
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.rule} {self.table}: {self.count:,} × {self.title}{detail}"


@dataclass
class QualityLog:
    """Rows read per file and findings so far. With `strict` the first finding is an error.

    `lenient` lets a cell that does not parse become unknown (rule F03) instead of stopping the ingest.
    """

    strict: bool = False
    lenient: bool = False
    rows_by_file: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def read(self, label: str, rows: int) -> None:
        """Count `rows` read from the file called `label`."""
        self.rows_by_file[label] = self.rows_by_file.get(label, 0) + rows

    def find(
        self, rule: str, table: str, count: int, *, detail: str = "", examples: pl.DataFrame | None = None
    ) -> None:
        """Record that `rule` concerned `count` rows of `table`; nothing when the count is zero.

        A table may come in parts: what a rule finds in each adds up to one finding.
        """
        if not count:
            return
        entry = RULES[rule]
        finding = Finding(rule, entry.title, table, int(count), entry.action, detail, example_rows(examples))
        for i, earlier in enumerate(self.findings):
            if (earlier.rule, earlier.table, earlier.detail) == (rule, table, detail):
                examples_so_far = (earlier.examples + finding.examples)[:EXAMPLES]
                self.findings[i] = replace(earlier, count=earlier.count + int(count), examples=examples_so_far)
                break
        else:
            self.findings.append(finding)
        if self.strict:
            shown = f"; first: {finding.examples[0]}" if finding.examples else ""
            raise InputError(finding.line() + shown, remedy="fix the data, or ingest without --strict")

    @property
    def rows_read(self) -> int:
        """Return the rows read from all files."""
        return sum(self.rows_by_file.values())

    @property
    def rows_dropped(self) -> int:
        """Return the rows dropped by any rule."""
        return sum(f.count for f in self.findings if f.action == Action.DROPPED)

    @property
    def rows_kept(self) -> int:
        """Return the rows that made it into the trace."""
        return self.rows_read - self.rows_dropped


def example_rows(frame: pl.DataFrame | None, limit: int = EXAMPLES) -> tuple[Example, ...]:
    """Return the first rows of `frame` as small plain records without unknown values; `_row` becomes `row`."""
    if frame is None:
        return ()
    rows = []
    for record in frame.head(limit).to_dicts():
        clean: Example = {}
        for name, value in record.items():
            if value is None:
                continue
            # JSON has no word for an infinite number.
            is_plain = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
            clean["row" if name == "_row" else name] = value if is_plain else shorten(value, 80)
        rows.append(clean)
    return tuple(rows)
