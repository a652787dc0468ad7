"""A finished study as a page: which scenario to choose, why, and every scenario's figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from gputwin.analysis import analyze
from gputwin.analysis.topic import Remark
from gputwin.analysis.words import duration, share
from gputwin.core.atomic import atomic_file
from gputwin.core.errors import UserError
from gputwin.report.axes import duration_unit
from gputwin.report.figures import blank, plain
from gputwin.report.page import Bullets, Cards, FigurePart, Findings, Kind, Part, Section, Statement, TablePart, Tone
from gputwin.report.sections.comparison import comparison, shown_metric, side_by_side
from gputwin.report.timeline import Timeline
from gputwin.report.write import write_report
from gputwin.simulation.load import check_load
from gputwin.studies.comparison import Comparison
from gputwin.studies.comparison.by_job import by_job
from gputwin.studies.comparison.compare import DURATIONS, with_keys
from gputwin.studies.comparison.verdict import remarks
from gputwin.studies.study.run import StudyOutcome
from gputwin.studies.study.verdict import Verdict, verdict_of

PAGE_FILE, DATA_FILE = "report.html", "comparison.json"
MOST_SHOWN = 10
"""Scenarios in the figures; the table has all."""
_FIRST = ("scenario", "mean wait", "p95 wait", "mean JCT", "fairness", "fragmentation", "stops", "cost", "energy (kWh)")
"""Columns that stand first, since a terminal leaves out the last."""
_NEAR = (0.2, 0.08)
"""Shares of the figure's width and height within which two names would overlap."""
_NOTE = (
    "Differences are paired twice. By seed: the same jobs under both scenarios, one difference per replicate, Student's "
    "interval over replicates; it says what other traces of this kind would give. By job: each job against itself, a "
    "circular block bootstrap over arrival time within replicates; it says what other times of these traces would give. "
    "Each interval holds with 95 % for itself: of twenty scenarios that change nothing, one seems to."
)


def shown_labels(compared: Comparison, verdict: Verdict, most: int = MOST_SHOWN) -> tuple[str, ...]:
    """Return the scenarios worth a figure: the baseline, the choice, the Pareto front, then the shortest mean waits."""
    rows = [row for row in compared.means().to_dicts() if row["mean wait"] is not None]
    ranked = [row["scenario"] for row in sorted(rows, key=lambda row: row["mean wait"])]
    first = [compared.baseline, *([verdict.choice] if verdict.choice else [])]
    wanted = dict.fromkeys([*first, *(label for label in ranked if label in verdict.front), *ranked])
    kept = set(list(wanted)[:most])
    return tuple(label for label in compared.labels if label in kept)


def study_section(outcome: StudyOutcome, timeline: Timeline) -> Section:
    """Return the section of a study: its conclusion first."""
    study, compared = outcome.planned.study, outcome.compared
    verdict = verdict_of(compared, study.limits)
    shown = compared.only(shown_labels(compared, verdict))
    section = comparison(shown, timeline)
    _, *others = section.parts
    tone = Tone.WARNING if study.limits and verdict.choice is None else _tone(section)
    said = tuple(Remark(text) for text in (verdict.front_text, *remarks(shown)) if text)
    kept = [_of_all(part, len(compared.labels)) for part in others if not _is_side_by_side(part)]
    parts: list[Part] = [Statement(verdict.text, tone), *kept]
    if said:
        parts.append(Findings(said))
    if len(compared.labels) > 1:
        parts.insert(3, job_table(shown))
        if len(verdict.objectives) > 1:
            parts.insert(3, _front_figure(compared, verdict))
    parts.insert(3, all_table(compared, verdict, bool(study.limits)))
    return replace(
        section,
        id="study",
        title=f"Study {study.name}",
        parts=tuple(part for part in parts if not isinstance(part, Bullets)),
        notes=(*section.notes, _NOTE),
        question="Which of these scenarios should the cluster use?",
        next_steps=_next_steps(section, verdict, bool(study.limits)),
    )


def _next_steps(section: Section, verdict: Verdict, has_targets: bool) -> tuple[str, ...]:
    """Return what to do about the verdict; where no scenario meets the targets, how to find what would."""
    if not has_targets or verdict.choice is not None:
        return section.next_steps
    return (
        "See how many nodes would meet the target: `gputwin plan TRACE --target p95_wait=10m`.",
        "Or loosen the target, or give the study other rules to try.",
    )


def _of_all(part: Part, count: int) -> Part:
    """Return the part; key figures of the best scenario say of how many it is the best."""
    if not isinstance(part, Cards):
        return part
    return Cards((replace(part.cards[0], note=f"of {count}, by mean wait and stops"), *part.cards[1:]))


def _is_side_by_side(part: Part) -> bool:
    return isinstance(part, TablePart) and part.title == "Scenarios side by side"


def _tone(section: Section) -> Tone:
    first = section.parts[0]
    return first.tone if isinstance(first, Statement) else Tone.NEUTRAL


def all_table(compared: Comparison, verdict: Verdict, has_targets: bool) -> TablePart:
    """Return every scenario's figures, whether it meets the targets and is on the Pareto front."""
    table = side_by_side(compared)
    marks = {**({"meets targets": verdict.meets} if has_targets else {}), "Pareto front": verdict.front}
    names = list(table.columns)
    first = [n for n in names if n in _FIRST]
    order = [names.index(n) for n in (*first, *(n for n in names if n not in first))]
    columns = {names[0]: Kind.TEXT, **dict.fromkeys(marks, Kind.TEXT)} | {names[k]: Kind.NUMBER for k in order[1:]}
    rows = tuple(
        (row[0], *("yes" if row[0] in labels else "no" for labels in marks.values()), *(row[k] for k in order[1:]))
        for row in table.rows
    )
    return replace(table, columns=columns, rows=rows)


def job_table(compared: Comparison) -> TablePart:
    """Return how single jobs fare under each scenario against the baseline."""
    rows = []
    for row in by_job(compared).to_dicts():
        if row["difference"] is None:
            continue
        interval = f"[{_signed(row['low'])}, {_signed(row['high'])}]"
        change = f"{_signed(row['difference'])} {interval}"
        rows.append((row["scenario"], f"{row['jobs']:,}", share(row["shorter"]), share(row["longer"]), change))
    kinds = {"scenario": Kind.TEXT} | dict.fromkeys(("jobs", "wait less", "wait longer", "mean change"), Kind.NUMBER)
    note = "Each job against itself on the same replicate; 95 % intervals over arrival time in brackets."
    return TablePart(f"Job by job against {compared.baseline}", kinds, tuple(rows), note)


def _signed(seconds: float) -> str:
    """Return a difference with its sign; none has no sign."""
    return f"{'−' if seconds < 0 else '+' if seconds > 0 else ''}{duration(abs(seconds))}"


def _front_figure(compared: Comparison, verdict: Verdict) -> FigurePart:
    """Return mean wait against the objective that trades off with it most, by scenario."""
    means = compared.means()
    x = "mean wait" if "mean wait" in verdict.objectives else verdict.objectives[0]
    others = [name for name in ("cost", "energy", "fairness", *verdict.objectives) if name in verdict.objectives]
    y = next(name for name in others if name != x)
    frame = means.select("scenario", x, y).with_columns(
        pl.col("scenario").is_in(list(verdict.front)).alias("is_on_front")
    )
    size, unit = duration_unit(frame[x]) if x in DURATIONS else (1.0, "")
    figure = blank(xaxis={"title": f"{x}, {unit}" if unit else x}, yaxis={"title": y}, showlegend=True)
    named = _apart(frame, x, y)
    for is_on, name in ((True, "on the Pareto front"), (False, "beaten by another")):
        part = frame.filter(pl.col("is_on_front") == is_on).sort(x)
        figure.add_scatter(
            x=(part[x] / size).to_list(),
            y=part[y].to_list(),
            mode="markers+text",
            textposition="top center",
            cliponaxis=False,
            name=name,
            marker={"size": 10, "symbol": "circle" if is_on else "circle-open"},
            text=[plain(label, 60) if label in named else "" for label in part["scenario"]],
            customdata=[plain(label, 60) for label in part["scenario"]],
            hovertemplate="%{customdata}<br>%{x:,.4g}, %{y:,.4g}<extra></extra>",
        )
    of = ", ".join(verdict.objectives)
    best = shown_metric(x, float(frame[x].min()))  # type: ignore[arg-type]
    caption = (
        f"Each point is a scenario. Filled ones are on the Pareto front of {of}: no other is as good in all of "
        f"them and better in one. The shortest {x} is {best}."
        if "wait" in x
        else f"Each point is a scenario; the front is that of {of}."
    )
    return FigurePart("study-front", "What no other scenario beats", figure, caption, frame)


def _apart(frame: pl.DataFrame, x: str, y: str) -> set[str]:
    """Return the scenarios whose points have room for a name: the first of those close together."""
    spans = [max(float(frame[c].max()) - float(frame[c].min()), 1e-12) for c in (x, y)]  # type: ignore[arg-type]
    named: list[tuple[str, float, float]] = []
    for label, *at in frame.select("scenario", x, y).drop_nulls().iter_rows():
        here = (at[0] / spans[0], at[1] / spans[1])
        if all(abs(here[0] - a) > _NEAR[0] or abs(here[1] - b) > _NEAR[1] for _, a, b in named):
            named.append((label, *here))
    return {label for label, _, _ in named}


def study_data(outcome: StudyOutcome) -> dict[str, Any]:
    """Return the study's conclusion and tables as plain data; the same runs give the same data."""
    study, compared = outcome.planned.study, outcome.compared
    verdict = verdict_of(compared, study.limits)
    keys = {pair: task.key for pair, task in outcome.planned.tasks.items()}
    return {
        "study": study.name,
        "recommendation": verdict.text,
        "choice": verdict.choice,
        "baseline": compared.baseline,
        "targets": dict(study.targets),
        "meets_targets": list(verdict.meets) if study.limits else None,
        "pareto_front": list(verdict.front),
        "objectives": list(verdict.objectives),
        "replicates": compared.replicates,
        **compared.to_json(),
        "by_job": by_job(compared).to_dicts(),
        "runs": [
            {**with_keys(row), "key": keys[row["scenario"], row["replicate"]]} for row in compared.figures.to_dicts()
        ],
    }


def write_study(
    folder: Path, outcome: StudyOutcome, progress: Callable[[str], None] = lambda step: None
) -> tuple[Path, dict[str, Any]]:
    """Write the study's tables and report into the folder; return the report's path and the tables as plain data."""
    study, trace = outcome.planned.study, outcome.planned.first_trace
    folder.mkdir(parents=True, exist_ok=True)
    data = study_data(outcome)
    with atomic_file(folder / DATA_FILE) as fresh:
        fresh.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    asked = [study_section(outcome, Timeline.of(trace))]
    if study.forecast is not None:
        asked.append(_forecast(outcome, progress))
    cluster = next(iter(outcome.planned.tasks.values())).cluster
    analysis, check = None, None
    if study.analyses:
        progress("analysing the trace")
        analysis = analyze(trace)
        if study.analyses != "all":
            analysis = replace(analysis, topics=tuple(t for t in analysis.topics if t.name in study.analyses))
        check = None if trace.tasks.is_empty() else check_load(trace, cluster)
    progress("writing the report")
    title = f"Study {study.name}"
    page = folder / PAGE_FILE
    return write_report(page, trace, asked=asked, analysis=analysis, cluster=cluster, check=check, title=title), data


def _forecast(outcome: StudyOutcome, progress: Callable[[str], None]) -> Section:
    from gputwin.forecasting.study import forecast
    from gputwin.report.sections.forecast import forecast_section

    asked, trace = outcome.planned.study.forecast, outcome.planned.first_trace
    assert asked is not None
    try:
        made = forecast(
            trace,
            asked.target,
            horizon_seconds=asked.horizon,
            bin_seconds=asked.bin,
            models=asked.models,
            progress=progress,
        )
    except UserError as error:
        # The runs are done: what they say is not held up by this.
        return Section("forecast", "Forecast", (Statement(f"No forecast: {error}.", Tone.WARNING),))
    return forecast_section(made, Timeline.of(trace))
