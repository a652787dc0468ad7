"""What an analysis comes to: a verdict in one or two sentences, and the findings that matter most to its reader."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from gputwin.analysis.analyze import Analysis
from gputwin.analysis.occupancy import bin_words, time_mean
from gputwin.analysis.topic import Remark
from gputwin.analysis.words import share
from gputwin.core.units import MINUTE, format_duration

MOST_FINDINGS = 6
_SHORT_WAIT, _LONG_WAIT = MINUTE, 10 * MINUTE
"""s; a 95th percentile below the first is no problem to anybody, one above the second is."""
_RANKED = (
    *("bottlenecks", "tenants", "tenancy", "delays", "efficiency", "serving", "cluster", "placement", "workload"),
    *("machines", "runtimes"),
)
"""Topics by what a reader can do about their findings. Figures that others published are no finding about the cluster."""
_UNRANKED = ("published",)


class Verdict(NamedTuple):
    """What the trace comes to: the sentence, and whether it is good news (True), bad news (False) or neither."""

    text: str
    is_good: bool | None = None


def verdict(analysis: Analysis) -> Verdict:
    """Return how long work waits and how full the cluster is; the first finding where neither is known."""
    waits, held = _waits(analysis), _held(analysis)
    said = [text for text in (waits.text, held) if text]
    if held and not waits.text:
        said.insert(0, "The trace does not say how long tasks waited.")
    if not said:
        first = next((t.remarks[0].text for t in analysis.topics if t.remarks), "")
        if not first and analysis.topics:
            first = "The trace does not say how long work waited or how full its cluster was."
        return Verdict(first or "The trace has nothing that could be analysed.")
    return Verdict(" ".join(said), waits.is_good)


def main_findings(analysis: Analysis, most: int = MOST_FINDINGS) -> tuple[Remark, ...]:
    """Return the findings that matter most: those that call for a change, then those worth knowing, by topic."""
    topics = [t for t in analysis.topics if t.name not in _UNRANKED]
    topics.sort(key=lambda t: _RANKED.index(t.name) if t.name in _RANKED else len(_RANKED))
    said = verdict(analysis).text
    found = [r for t in topics for r in t.remarks if r.matters and r.text not in said]
    return tuple(sorted(found, key=lambda r: -r.matters)[:most])


def _waits(analysis: Analysis) -> Verdict:
    table = analysis.table("delays", "wait")
    if table is None or table.is_empty():
        return Verdict("")
    w = table.row(0, named=True)
    if w["max"] == 0:
        return Verdict("No task waited.", True)
    late_most = format_duration(w["p95"])
    late = f"one in twenty waits longer than {late_most}"
    soon = (
        f"{share(w['zero_share'])} of tasks start at once"
        if w["zero_share"] >= 0.5
        else f"Half of the tasks start within {format_duration(w['p50'])}"
    )
    if w["p95"] <= _SHORT_WAIT:
        return Verdict(
            f"Tasks hardly wait: 95 % start {f'within {late_most}' if w['p95'] > 0 else 'at once'}; the longest waited "
            f"{format_duration(w['max'])}.",
            True,
        )
    if w["p95"] >= _LONG_WAIT:
        return Verdict(f"Waiting is a problem for some: {soon[:1].lower()}{soon[1:]}, but {late}.", False)
    return Verdict(f"{soon}; {late}.")


def _held(analysis: Analysis) -> str:
    """Return how many GPUs work holds, and how often work queues."""
    series = analysis.table("cluster", "over_time")
    if series is None or series.is_empty() or float(series["gpus"].sum()) <= 0:
        return ""
    if "gpus_share" in series.columns:
        text = f"On average {share(time_mean(series, 'gpus_share'))} of the GPUs are allocated"
    else:
        peak = float(series["gpus"].max())  # type: ignore[arg-type]
        text = f"Tasks hold {time_mean(series, 'gpus'):,.0f} GPUs on average and {peak:,.0f} in the fullest "
        text += bin_words(series)
    if "queued" in series.columns and float(series["queued"].sum()) > 0:
        seconds = pl.col("seconds")
        busy = series.select((seconds * (pl.col("queued") >= 1)).sum() / seconds.sum()).item()
        # Means over bins: with short queues none may reach one task though some wait.
        if busy > 0:
            queues = "at least one task queues"
            text += f"; {queues} all the time" if busy == 1 else f"; {share(busy)} of the time {queues}"
    return f"{text}."
