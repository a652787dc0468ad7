"""How close a generated trace comes to its original."""

from __future__ import annotations

import polars as pl

from gputwin.report import figures
from gputwin.report.page import FigurePart, Kind, Part, Section, TablePart, number
from gputwin.report.report_input import ReportInput
from gputwin.traces.dataset import Trace
from gputwin.traces.locate import SYNTHETIC
from gputwin.traces.synthetic.fidelity import LOAD_ROW

_STATISTICS = ("mean", "p50", "p90", "p95", "p99")
_NOTES = (
    "Fidelity compares the generated trace with what is published of its original. KS is the Kolmogorov–Smirnov "
    "distance: the largest difference of the two distribution functions, 0 for the same, 1 for disjoint.",
)


def fidelity_of(trace: Trace) -> pl.DataFrame | None:
    """Return how a generated trace compares with its original; None for a trace that was not generated."""
    from gputwin.traces import synthetic

    name, _, _ = trace.meta.source.removeprefix(SYNTHETIC).partition("?")
    if not trace.meta.source.startswith(SYNTHETIC) or name not in synthetic.NAMES:
        return None
    return synthetic.fidelity(trace, name)


def fidelity(subject: ReportInput) -> Section | None:
    """Return the section on fidelity; None where the trace was not generated."""
    frame = subject.fidelity
    if frame is None or frame.is_empty():
        return None
    measured = frame.filter(pl.col("ks").is_not_null())
    loads = frame.filter(pl.col("marginal").str.starts_with(LOAD_ROW))
    published = frame.filter(
        pl.col("ks").is_null() & pl.col("mean").is_not_null() & ~pl.col("marginal").str.starts_with(LOAD_ROW)
    )
    parts: list[Part] = []
    if not measured.is_empty():
        parts += [*_ratios(measured), _quantiles(measured)]
    if not published.is_empty():
        parts.append(_published(published))
    if not loads.is_empty():
        parts.append(_load(loads))
    return Section("fidelity", "Fidelity", tuple(parts), _NOTES) if parts else None


def _ratios(frame: pl.DataFrame) -> list[Part]:
    ratios = pl.concat(
        frame.select(
            "marginal",
            pl.lit(statistic).alias("statistic"),
            pl.col(statistic).alias("generated"),
            pl.col(f"{statistic}_reference").alias("original"),
            (pl.col(statistic) / pl.col(f"{statistic}_reference")).alias("ratio"),
        )
        for statistic in _STATISTICS
    ).filter(pl.col("ratio").is_finite() & (pl.col("ratio") > 0))
    if ratios.is_empty():
        return []
    closest = frame.row(int(frame["ks"].arg_min() or 0), named=True)
    farthest = frame.row(int(frame["ks"].arg_max() or 0), named=True)
    within = int(ratios["ratio"].is_between(0.9, 1.1).sum())
    caption = (
        f"Generated over original, for means and quantiles: {within} of {ratios.height} are within 10 %. The distance "
        f"KS is smallest for {closest['marginal']} ({closest['ks']:.3f}) and largest for {farthest['marginal']} "
        f"({farthest['ks']:.3f})."
    )
    figure = figures.fidelity(ratios)
    return [FigurePart("fidelity-ratios", "Generated against original", figure, caption, ratios)]


def _quantiles(frame: pl.DataFrame) -> TablePart:
    rows = [
        (
            r["marginal"],
            r["unit"] or "",
            f"{r['rows']:,}",
            f"{r['ks']:.3f}",
            *(f"{number(r[s])} / {number(r[f'{s}_reference'])}" for s in _STATISTICS),
        )
        for r in frame.to_dicts()
    ]
    kinds = {"quantity": Kind.TEXT, "unit": Kind.TEXT} | dict.fromkeys(("values", "KS", *_STATISTICS), Kind.NUMBER)
    sources = "; ".join(f"{r['marginal']}: {r['source']}" for r in frame.to_dicts())
    return TablePart("Generated / original", kinds, tuple(rows), f"Originals from: {sources}.")


def _published(frame: pl.DataFrame) -> TablePart:
    rows = [(r["marginal"], number(r["mean"]), number(r["mean_reference"]), r["source"]) for r in frame.to_dicts()]
    kinds = {"figure": Kind.TEXT, "generated": Kind.NUMBER, "published": Kind.NUMBER, "source": Kind.TEXT}
    return TablePart("Single published figures", kinds, tuple(rows))


def _load(frame: pl.DataFrame) -> TablePart:
    rows = [
        (r["marginal"].removeprefix(LOAD_ROW), r["unit"], number(r["mean"]), number(r["mean_reference"]), r["source"])
        for r in frame.to_dicts()
    ]
    kinds = {"load": Kind.TEXT, "unit": Kind.TEXT, "generated": Kind.NUMBER, "expected": Kind.NUMBER}
    return TablePart(
        "Load offered to its own cluster",
        kinds | {"source": Kind.TEXT},
        tuple(rows),
        "GPUs asked for over GPUs there are, if nobody had to wait, from the first arrival to the last.",
    )
