"""The table of every queueing model beside a simulation of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from gputwin.core.processors import processors
from gputwin.core.units import percent
from gputwin.simulation.batch import Batch
from gputwin.studies.validation.cases import all_cases
from gputwin.studies.validation.replicate import Case, Row, settle


@dataclass(frozen=True)
class ModelTable:
    """Rows in the order of the cases."""

    rows: tuple[Row, ...]

    @property
    def disagreements(self) -> tuple[Row, ...]:
        """Return the rows where theory is outside the interval and the documented error."""
        return tuple(row for row in self.rows if not row.agrees)

    def cells(self) -> list[list[str]]:
        """Return the table's cells as they are to be read."""
        return [
            [
                row.model,
                row.setting,
                row.figure,
                f"{row.theory:.4g}",
                f"{row.simulation:.4g} ± {row.half_width:.1g}",
                percent(row.error, 1, signed=True),
                "exact" if row.tolerance is None else f"within {percent(row.tolerance)}",
                row.simulator,
                "agrees" if row.agrees else "DIFFERS",
            ]
            for row in self.rows
        ]

    def verdict(self) -> str:
        """Return how many figures agree, in a sentence."""
        exact = sum(row.tolerance is None for row in self.rows)
        if not self.disagreements:
            return (
                f"All {len(self.rows)} figures agree: {exact} exact ones within the 99.9 % interval of the simulation, "
                f"{len(self.rows) - exact} approximations within their documented error."
            )
        named = ", ".join(f"{row.model} ({row.figure})" for row in self.disagreements)
        return f"{len(self.disagreements)} of {len(self.rows)} figures differ: {named}."

    def page(self) -> str:
        """Return the table as a page of the documentation."""
        lines = [
            "# Queueing models compared with simulation",
            "",
            "Written by `gputwin reproduce queueing-models -o docs/queueing-models.md`; do not edit by hand. Times are in",
            "units of the mean service. Simulations are means of independent replications with their 99.9 % interval; an",
            "exact model must lie inside it, an approximation within its documented error of it. `engine` is the",
            "simulator of this package; models it has no rule for (interrupting, sharing, impatience) are simulated by a",
            "few plain lines of `studies/validation/single_server.py` and `other_queues.py`.",
            "",
            "| " + " | ".join(COLUMNS) + " |",
            "|" + "---|" * len(COLUMNS),
        ]
        return "\n".join([*lines, *("| " + " | ".join(cells) + " |" for cells in self.cells()), "", self.verdict(), ""])

    def to_json(self) -> dict[str, Any]:
        """Return the table as plain data."""
        rows = [{**asdict(row), "error": row.error, "agrees": row.agrees} for row in self.rows]
        return {"rows": rows, "verdict": self.verdict()}


COLUMNS = ("model", "setting", "figure", "theory", "simulation", "error", "the model is", "simulated by", "verdict")


_FEW = 5
"""So few cases take less time than starting processes."""


def validate_models(
    only: Sequence[str] = (),
    *,
    seed: int = 0,
    workers: int | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> ModelTable:
    """Return every model beside its simulation; `only` keeps models whose name has one of these texts in it."""
    wanted = [
        number
        for number, case in enumerate(_cases())
        if not only or any(text.lower() in case.model.lower() for text in only)
    ]
    if workers is None:
        workers = 1 if len(wanted) <= _FEW else processors()
    with Batch(workers=workers) as batch:
        calls = [(number, seed) for number in wanted]
        found = batch.map(_settled, calls, lambda done, of: progress(f"simulated {done} of {of} models"))
    return ModelTable(tuple(row for rows in found for row in rows))


@cache
def _cases() -> tuple[Case, ...]:
    return tuple(all_cases())


def _settled(number: int, seed: int) -> list[Row]:
    return settle(_cases()[number], seed)
