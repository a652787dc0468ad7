"""What a table of pairs says, in figures and words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gputwin.core.units import percent
from gputwin.simulation.engine.state.records import Floats
from gputwin.simulation.interference.model import LeftOut, left_out_errors, thirds
from gputwin.simulation.interference.table import PairTable


@dataclass(frozen=True)
class TypeFigures:
    """One type of job: its mean speed beside others, and that of others beside it; pairs that do not fit left out."""

    name: str
    third: int
    suffers: float
    leaves: float


@dataclass(frozen=True)
class TableSummary:
    """One GPU's pairs."""

    gpu: str
    pairs: int
    do_not_fit: int
    not_measured: int
    median_speed: float
    errors: tuple[LeftOut, ...]
    thirds: tuple[tuple[float, ...], ...]
    types: tuple[TypeFigures, ...]

    def mean_error(self, of: str = "error") -> float:
        """Return the error over all pairs tested; not a number where none could be."""
        if not self.errors:
            return float("nan")
        return float(np.average([getattr(e, of) for e in self.errors], weights=[e.pairs for e in self.errors]))

    def to_json(self) -> dict[str, Any]:
        """Return the summary as plain data."""
        return {
            **asdict(self),
            "errors": [{**asdict(e), "error_by_alone": _or_none(e.error_by_alone)} for e in self.errors],
            "mean_error": _or_none(self.mean_error()),
            "mean_error_of_mean": _or_none(self.mean_error("error_of_mean")),
            "mean_error_by_alone": _or_none(self.mean_error("error_by_alone")),
            "conclusion": self.conclusion(),
        }

    def conclusion(self) -> str:
        """Return what the table says, in words."""
        said = (
            f"Two jobs on one {self.gpu} run at {percent(self.median_speed)} of their speed each (median of {self.pairs:,} "
            f"measured pairs); {self.do_not_fit:,} pairs do not fit into its memory together."
        )
        if not self.errors:
            return said + " No two types were measured beside all others, so unmeasured pairs count as the mean."
        own, mean, alone = (self.mean_error(of) for of in ("error", "error_of_mean", "error_by_alone"))
        verdict = "better than" if own < mean else "no better than"
        said += (
            f" From a family's speed beside two probes its speed beside jobs it was never measured with is predicted to "
            f"within ±{own:.3f}, {verdict} the mean's ±{mean:.3f}"
        )
        worse = [e.family for e in self.errors if e.error >= e.error_of_mean]
        said += f" (not for {', '.join(worse)})" if worse and own < mean else ""
        return said + ("." if np.isnan(alone) else f"; from speeds alone on other GPUs, to ±{alone:.3f}.")


def _mean(speeds: Floats) -> float:
    """Return the mean of what is known; 0 where a type fits beside no other."""
    return float(np.nanmean(speeds)) if np.isfinite(speeds).any() else 0.0


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value


def summary_of(table: PairTable, gpu: int) -> TableSummary:
    """Return the figures of one GPU of the table."""
    speeds = table.speeds[gpu]
    known = np.where(speeds > 0, speeds, np.nan)
    third, means = thirds(table, gpu)
    types = tuple(
        TypeFigures(name, int(third[t]), _mean(known[t]), _mean(known[:, t])) for t, name in enumerate(table.types)
    )
    return TableSummary(
        table.gpus[gpu],
        int((speeds > 0).sum()),
        int((speeds == 0).sum()),
        int(np.isnan(speeds).sum()),
        float(np.nanmedian(known)),
        tuple(left_out_errors(table, gpu)),
        tuple(tuple(float(x) for x in row) for row in means),
        types,
    )
