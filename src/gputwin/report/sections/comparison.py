"""Scenarios side by side: what each does to waits, use and fairness, why jobs wait under it, and which to choose."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from gputwin.analysis.words import duration, share
from gputwin.core.units import short_duration
from gputwin.report import charts
from gputwin.report.axes import duration_unit
from gputwin.report.page import Bullets, Card, Cards, FigurePart, Kind, Part, Section, Statement, TablePart, Tone
from gputwin.report.sections.tenants import compared_tenants
from gputwin.report.timeline import Timeline
from gputwin.simulation.cause_words import cause_words, have_rounds
from gputwin.simulation.engine.attribution.causes import CAUSE_NAMES
from gputwin.studies.comparison.compare import DURATIONS, Comparison
from gputwin.studies.comparison.verdict import choice, recommendation, remarks

_POINTS = 160
_BINS = 200
_MOST_SUMMARY = 6
"""Scenarios in the table of the answer."""
_CHANGES = ("mean wait", "mean slowdown", "GPU allocation", "fairness")
_SHARES = ("GPU allocation", "fragmentation")
_AMOUNTS = ("stops", "cost", "energy")
_RATIOS = ("mean slowdown",)
_UNITS = {"energy": "energy (kWh)"}
_NOTES = (
    "All scenarios were given the same jobs. A difference is taken per replicate, so that what all scenarios have in "
    "common cancels out; its interval is Student's over replicates, and with a single replicate a circular block "
    "bootstrap over 100 bins of arrival time (means over jobs only).",
    "Waits, completion times and slowdowns are over the jobs that run under every scenario.",
    "Slowdown is bounded: completion time over the longer of runtime and ten seconds. Fairness is Jain's index over "
    "tenants (users, where the trace names no tenants) of time served over time in the system; 1 is equal treatment. "
    "Allocation and fragmentation are means over the time in which jobs were submitted; fragmentation is Weng et al.'s "
    "(ATC'23). Stops are preemptions, failures and resizes; the cost is that of all nodes, at their price an hour, until "
    "the last job ends.",
    "Curves over time are those of the first replicate, averaged into at most 200 bins; distribution functions are of "
    "all replicates together.",
)


def comparison(compared: Comparison, timeline: Timeline) -> Section:
    """Return the section that puts scenarios side by side."""
    parts: list[Part] = [Statement(recommendation(compared), _tone(compared)), _tiles(compared)]
    if compared.differences.height:
        parts += [_difference_figure(compared), differences(compared)]
    parts.append(side_by_side(compared))
    parts += compared_tenants(compared)
    parts += [part for part in (_causes(compared), _waits(compared)) if part is not None]
    parts += _over_time(compared, timeline)
    said = remarks(compared)
    if said:
        parts.append(Bullets(said))
    question = "Which of these rules should the cluster use?"
    steps, summary = next_steps(compared), summary_table(compared)
    return Section("comparison", "Scenarios compared", tuple(parts), _NOTES, question, steps, summary)


def _best(compared: Comparison) -> dict[str, float]:
    means = compared.means()
    is_known = means["mean wait"].is_not_null().any()
    return choice(compared) if is_known and means.height > 1 else means.row(0, named=True)


def is_proven(compared: Comparison) -> bool:
    """Return whether the best scenario's mean wait is shorter than the baseline's beyond chance."""
    best = str(_best(compared)["scenario"])
    if best == compared.baseline or len(compared.labels) < 2:
        return False
    high = compared.difference(best, "mean wait")["high"]
    return high is not None and high < 0


def _tone(compared: Comparison) -> Tone:
    return Tone.GOOD if is_proven(compared) else Tone.NEUTRAL


def _tiles(compared: Comparison) -> Cards:
    """Return what the best scenario does to waits, allocation and fairness, against the baseline."""
    base, best = compared.means().row(0, named=True), _best(compared)
    against = "" if best["scenario"] == base["scenario"] else f"under {compared.baseline}: "
    first = "None is better than" if not against else "Best" if is_proven(compared) else "Shortest waits, not proven"
    cards = [Card(first, str(best["scenario"]), f"of {len(compared.labels)}, by mean wait and stops")]
    for metric in ("mean wait", "p95 wait", "GPU allocation", "fairness"):
        note = f"{against}{shown_metric(metric, base[metric])}" if against else ""
        cards.append(Card(metric[:1].upper() + metric[1:], shown_metric(metric, best[metric]), note))
    return Cards(tuple(cards))


def next_steps(compared: Comparison) -> tuple[str, ...]:
    """Return what to do about the verdict."""
    best = str(_best(compared)["scenario"])
    if len(compared.labels) < 2:
        return ("Run the trace under other rules and compare: `gputwin simulate TRACE --order sjf -o other`.",)
    if best == compared.baseline:
        nobody_waits = _best(compared)["p95 wait"] == 0
        asked = "how few nodes would do" if nobody_waits else "how many nodes would shorten waits"
        return (f"Keep the baseline: {best}.", f"Or ask {asked}: `gputwin plan TRACE --target p95_wait=10m`.")
    if not is_proven(compared):
        return ("Compare over more seeds, or a longer trace, before changing anything: the difference may be chance.",)
    return (
        f"Use {best}, first for a part of the jobs, and watch waits and fairness.",
        "See how many nodes it saves: `gputwin plan TRACE --target p95_wait=10m` with and without it.",
    )


def shown_metric(metric: str, value: float | None) -> str:
    """Return the value of a metric as people read it."""
    if value is None:
        return "–"
    if metric in DURATIONS:
        return duration(value)
    if metric in _AMOUNTS:
        return f"{value:,.0f}"
    if metric in _RATIOS:
        return f"{value:,.2f}"
    return share(value) if metric in _SHARES else _plain(value)


def _plain(value: float) -> str:
    """Return a ratio or an index: to a thousandth where it is small."""
    return f"{value:,.3f}" if abs(value) < 10 else f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}"


def side_by_side(compared: Comparison) -> TablePart:
    """Return what each scenario does to each figure."""
    metrics = compared.shown_metrics()
    rows = tuple(
        (row["scenario"], *(shown_metric(metric, row[metric]) for metric in metrics))
        for row in compared.means().to_dicts()
    )
    kinds = {"scenario": Kind.TEXT} | {_UNITS.get(metric, metric): Kind.NUMBER for metric in metrics}
    count = compared.replicates
    note = f"Means over {count} replicates." if count > 1 else "One replicate."
    return TablePart("Scenarios side by side", kinds, rows, note)


def summary_table(compared: Comparison) -> TablePart | None:
    """Return the baseline and the shortest mean waits, each with its difference and interval; None for one scenario."""
    if not compared.differences.height:
        return None
    best, rows = str(_best(compared)["scenario"]), compared.means().to_dicts()
    ranked = sorted(rows[1:], key=lambda r: (r["scenario"] != best, r["mean wait"] is None, r["mean wait"]))
    shown = []
    for row in [rows[0], *ranked[: _MOST_SUMMARY - 1]]:
        name = row["scenario"]
        change = "–" if name == compared.baseline else _change("mean wait", compared.difference(name, "mean wait"))
        shown.append((name, *(shown_metric(m, row[m]) for m in ("mean wait", "p95 wait", "fairness")), change))
    others = f" {len(rows) - len(shown)} more below." if len(rows) > len(shown) else ""
    kinds = {"scenario": Kind.TEXT} | dict.fromkeys(
        ("mean wait", "p95 wait", "fairness", f"mean wait against {compared.baseline}"), Kind.NUMBER
    )
    return TablePart("Waits under each scenario", kinds, tuple(shown), f"95 % intervals in brackets.{others}")


def differences(compared: Comparison) -> TablePart:
    """Return by how much each scenario differs from the baseline, with 95 % intervals."""
    rows = []
    for label in compared.labels[1:]:
        cells = []
        for metric in _CHANGES:
            found = compared.differences.filter((pl.col("scenario") == label) & (pl.col("metric") == metric))
            cells.append(_change(metric, found.row(0, named=True)) if found.height else "–")
        rows.append((label, *cells))
    kinds = {"scenario": Kind.TEXT} | dict.fromkeys(_CHANGES, Kind.NUMBER)
    note = "95 % intervals in brackets, where there is one."
    return TablePart(f"Difference to {compared.baseline}", kinds, tuple(rows), note)


def _change(metric: str, row: Mapping[str, float | None]) -> str:
    if row["difference"] is None:
        return "–"
    text = _signed(metric, row["difference"])
    if row["low"] is not None and row["high"] is not None:
        text += f" [{_signed(metric, row['low'])}, {_signed(metric, row['high'])}]"
    return text


def _signed(metric: str, value: float) -> str:
    """Return a difference with its sign; what rounds to zero has none."""
    if metric in DURATIONS:
        text, shown = duration(abs(value)), value
    else:
        shown = round(100 * value, 2) if metric in _SHARES else round(value, 2 if metric in _RATIOS else 3)
        text = f"{abs(shown):.2f} pt" if metric in _SHARES else shown_metric(metric, abs(shown))
    return f"{'−' if shown < 0 else '+' if shown > 0 else ''}{text}"


def _difference_figure(compared: Comparison) -> FigurePart:
    frame = compared.differences.filter(pl.col("metric") == "mean wait").select(
        pl.col("scenario").alias("level"), pl.lit("the jobs").alias("control"), "low", "high",
        pl.col("difference").alias("estimate"),
    )  # fmt: skip
    # Of scenarios with the same waits, the one given first.
    best = frame.sort(pl.col("estimate").round(3), maintain_order=True).row(0, named=True)
    gain = (
        f"The largest gain is under {best['level']}: jobs wait {duration(-best['estimate'])} less."
        if best["estimate"] < 0
        else f"Jobs wait longer under every other scenario, least under {best['level']}: {duration(best['estimate'])} more."
        if best["estimate"] > 0
        else "No scenario lets jobs wait less."
    )
    caption = (
        f"Mean wait of each scenario against {compared.baseline}, with its 95 % interval: left of zero jobs wait less, "
        f"right of it longer. {gain}"
    )
    figure = charts.forest(frame, "change of the mean wait")
    figure.update_layout(showlegend=False)
    return FigurePart("scenario-differences", "What each scenario changes", figure, caption, frame)


def _causes(compared: Comparison) -> FigurePart | None:
    long = compared.causes().filter(pl.col("seconds") > 0)
    if long.is_empty():
        return None
    names = [cause for cause in CAUSE_NAMES if cause in set(long["cause"])]
    rounds = have_rounds(run.result for run in compared.runs)
    wide = pl.DataFrame({"scenario": list(compared.labels)}).join(
        long.pivot("cause", index="scenario", values="seconds"), on="scenario", how="left", maintain_order="left"
    )
    wide = wide.select("scenario", *names).fill_null(0.0)
    size, unit = duration_unit(wide.select(pl.sum_horizontal(*names)).to_series())
    scaled = wide.with_columns(pl.col(names) / size)
    figure = charts.bar_rows(
        scaled, "scenario", {c: cause_words(c, rounds) for c in names}, f"mean wait, {unit}", stacked=True
    )
    top = long.sort("seconds", descending=True).row(0, named=True)
    caption = (
        f"Every waiting second is charged to one cause; bars add up to the mean wait. The largest single part is "
        f"waiting {cause_words(top['cause'], rounds)} under {top['scenario']}: {duration(top['seconds'])} a job."
    )
    return FigurePart("scenario-causes", "Why jobs wait", figure, caption, wide, half=True)


def _waits(compared: Comparison) -> FigurePart | None:
    frames, zero = [], {}
    for label in compared.labels:
        waits = np.sort(np.concatenate([r.jobs["wait_seconds"].drop_nulls().to_numpy() for r in compared.of(label)]))
        if waits.size:
            at = np.unique(np.concatenate([np.linspace(0, 1, _POINTS), 1 - np.geomspace(1e-4, 1, _POINTS)]))
            frames.append(pl.DataFrame({"scenario": label, "value": np.quantile(waits, at), "share": at}))
            zero[label] = float(np.mean(waits == 0))
    if not frames:
        return None
    frame = pl.concat(frames)
    if not (frame["value"] > 0).any():
        return None
    least, most = min(zero, key=zero.__getitem__), max(zero, key=zero.__getitem__)
    caption = (
        f"Share of jobs that wait no longer. {share(zero[most])} start at once under {most}, {share(zero[least])} under "
        f"{least}; zeros have no place on a log axis, so a curve begins at their share."
    )
    figure = charts.curves(frame, "scenario", "wait", "jobs")
    return FigurePart("scenario-waits", "How long jobs wait", figure, caption, frame, half=True)


def _over_time(compared: Comparison, timeline: Timeline) -> list[Part]:
    parts: list[Part] = []
    for column, id_, title, what, percent in (
        ("waiting_jobs", "scenario-queue", "Queue over time", "jobs waiting", False),
        ("gpu_allocation", "scenario-allocation", "GPU allocation over time", "share of GPUs allocated", True),
    ):
        frame = _binned(compared, column)
        if frame.height < 2:
            continue
        timeline = timeline.until(float(frame["time"].max()))  # type: ignore[arg-type]
        peak = {label: float(frame[label].max() or 0.0) for label in compared.labels}  # type: ignore[arg-type]
        top = max(peak, key=peak.__getitem__)
        value = share(peak[top]) if percent else f"{peak[top]:,.0f}"
        shown = frame.with_columns(timeline.shown(pl.col("time")).alias("at"))
        figure = charts.over_time(
            shown, {label: label for label in compared.labels}, timeline.axis, what, percent=percent
        )
        width = short_duration(float(frame["time"][1] - frame["time"][0]))
        of = "; of the first replicate" if compared.replicates > 1 else ""
        caption = f"Means over {width}{of}; the highest {'allocation' if percent else 'queue'} is {value}, under {top}."
        parts.append(FigurePart(id_, title, figure, caption, shown, half=True))
    return parts


def _binned(compared: Comparison, column: str) -> pl.DataFrame:
    """Return the first replicate's series of each scenario, one column per scenario, in at most `_BINS` bins."""
    frame = None
    for label in compared.labels:
        series = compared.of(label)[0].series.select("time", pl.col(column).alias(label))
        frame = series if frame is None else frame.join(series, on="time", how="left", maintain_order="left")
    assert frame is not None
    step = -(-frame.height // _BINS)
    groups = frame.with_row_index("row").group_by(pl.col("row") // step, maintain_order=True)
    return groups.agg(pl.col("time").first(), pl.col(*compared.labels).mean()).drop("row")
