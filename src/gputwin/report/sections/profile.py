"""What kinds of jobs there are, how well their durations can be predicted, and what that brings a scheduler."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import polars as pl

from gputwin.analysis.words import duration
from gputwin.core.units import format_duration, percent, signed_duration
from gputwin.profiling.classes.description import JobClass
from gputwin.profiling.evaluation.evaluate import QUANTILES
from gputwin.profiling.evaluation.scores import LEVELS, Scores
from gputwin.profiling.profile import Profile
from gputwin.report import profile_figures as figures
from gputwin.report.page import Card, Cards, FigurePart, Kind, Part, Section, Statement, TablePart, Tone, number
from gputwin.studies.prediction_value.study import PredictionValue
from gputwin.studies.prediction_value.verdict import short_verdict, verdict

_MOST_CLASSES = 12
_MOST_RIGHT = 0.5
"""Share of durations predicted within a factor of two from which on predictions are good news."""
_ASKED = {"CPU cores": ("cpu_milli", 1000.0), "memory GiB": ("memory_mib", 1024.0), "GPUs": ("gpu_milli", 1000.0)}
"""Column of the table → the request it shows and how many of its units make one of the column's."""
_NOTES = (
    "Job classes are clusters (HDBSCAN) of what tasks ask for and, where measured, what they used; start, end and duration "
    "are not among the features. Settings are searched by silhouette, share of tasks in clusters and stability.",
    "Duration models are tested in time order: each block of jobs is predicted from what was known before it, and jobs "
    "that still ran then count as censored. The model with the least pinball loss is kept.",
    "Intervals are of the mean difference to FIFO of the same jobs: differences are averaged over bins of arrival time and "
    "these resampled in blocks, since neighbours wait together.",
)
_VALUE = "The value of predictions"


def profile_sections(profile: Profile, value: PredictionValue | None = None) -> tuple[Section, ...]:
    """Return the sections on job classes, on durations and, where simulated, on the value of predictions."""
    sections = [_durations(profile, value), _classes(profile)]
    if value is not None:
        sections.append(_value(value))
    return tuple(sections)


def _classes(profile: Profile) -> Section:
    found = profile.classes
    noise = float((found.labels < 0).mean())
    best = found.trials[0]
    rest = "; the rest assigned" if found.rows_clustered < found.rows else ""
    cards = (
        Card("Silhouette", f"{best.silhouette:.2f}", "1: far apart, 0: touching"),
        Card("Stability", f"{best.stability:.2f}", "Rand index between samples"),
        Card("Clustered", f"{found.rows_clustered:,}", f"of {found.rows:,} tasks{rest}"),
    )
    names = {k: found.name_of(k) for k in range(-1, len(found.classes))}
    flat = found.map.with_columns(pl.col("label").replace_strict(names, return_dtype=pl.String).alias("class"))
    plane = FigurePart(
        "class-map",
        "Tasks by what they ask for and use",
        figures.class_map(flat, [c.name for c in found.classes]),
        f"{flat.height:,} tasks in the plane of their two strongest directions, by class.",
        flat.select("x", "y", "class"),
    )
    said = Statement(
        f"{len(found.classes)} classes hold {percent(1 - noise)} of {found.rows:,} tasks; "
        f"{percent(found.accuracy)} of unseen tasks get their class right at submission."
    )
    parts = (said, Cards(cards), plane, *_class_tables(profile))
    return Section("classes", "Job classes", parts, _NOTES[:1])


def _class_tables(profile: Profile) -> tuple[TablePart, TablePart]:
    """Return how the largest classes ran and how well that was predicted, and what they are."""
    found = profile.classes
    largest = sorted(found.classes, key=lambda c: -c.tasks)[:_MOST_CLASSES]
    scores, ran = profile.by_class(), profile.durations_by_class()
    ran_rows, kind_rows = [], []
    for entry in largest:
        seen = scores.get(entry.name)
        told = ("–", "–") if seen is None else (percent(seen.within_2x), percent(seen.coverage))
        times = (duration(seconds) for seconds in ran[entry.name] or (None, None, None))
        ran_rows.append((entry.name, f"{entry.tasks:,}", percent(entry.share, 1), *times, *told))
        apart = "; ".join(entry.distinguishing) or "–"
        kind_rows.append((entry.name, apart, *(_range(entry, column) for column in _ASKED), entry.medoid_job))
    note = "" if len(found.classes) <= _MOST_CLASSES else f"The largest {_MOST_CLASSES} of {len(found.classes)}."
    numbers = ("tasks", "share", "ran: 10 %", "median", "90 %", "predicted within 2×", "80 % interval holds")
    columns = {"class": Kind.TEXT} | dict.fromkeys(numbers, Kind.NUMBER)
    kinds = {"class": Kind.TEXT, "what sets it apart": Kind.TEXT} | dict.fromkeys(_ASKED, Kind.NUMBER)
    return (
        TablePart("How job classes ran", columns, tuple(ran_rows), note),
        TablePart(
            "What job classes are",
            {**kinds, "most typical job": Kind.CODE},
            tuple(kind_rows),
            "Amounts asked for by an instance: 10 % to 90 % of the class.",
        ),
    )


def _range(entry: JobClass, column: str) -> str:
    """Return from what to what the middle 80 % of a class asks for."""
    name, unit = _ASKED[column]
    if name not in entry.ranges:
        return "–"
    low, _, high = (number(round(value / unit, 2)) for value in entry.ranges[name])
    return low if low == high else f"{low} – {high}"


def _scores_table(
    title: str, first: str, tests: Mapping[str, Scores], note: str = "", without_spread: Collection[str] = ()
) -> TablePart:
    """Return scores by model, or by what jobs have in common, as a table; models without spread have no interval."""
    rows = tuple(
        (
            name,
            f"{s.jobs:,}",
            format_duration(s.mae_seconds),
            format_duration(s.median_error_seconds),
            percent(s.within_2x, 1),
            format_duration(s.pinball_seconds),
            percent(None if name in without_spread else s.coverage, 1),
            f"{s.rank_correlation:.2f}",
        )
        for name, s in tests.items()
    )
    numbers = ("tasks", "mean error", "median error", "within 2×", "pinball loss", "80 % interval holds")
    columns = {first: Kind.TEXT} | dict.fromkeys((*numbers, "rank correlation"), Kind.NUMBER)
    return TablePart(title, columns, rows, note)


def _durations(profile: Profile, value: PredictionValue | None) -> Section:
    best = profile.evaluation.scores
    ratios = pl.concat(
        e.predictions.select(pl.lit(e.model).alias("model"), (pl.col("predicted") / pl.col("actual")).alias("ratio"))
        for e in profile.evaluations
    )
    curve = figures.error_curves(ratios)
    held = _calibration(profile)
    top = profile.importance.head(12)
    parts: list[Part] = [
        Statement(headline(profile, value), Tone.GOOD if best.within_2x >= _MOST_RIGHT else Tone.NEUTRAL),
        Cards(
            (
                Card("Predicted within 2×", percent(best.within_2x), f"of {best.jobs:,} tested jobs"),
                Card("Median error", duration(best.median_error_seconds), f"by {profile.chosen}, the model chosen"),
                Card("80 % interval holds", percent(best.coverage), "80 % is as promised"),
                Card("Job classes", f"{len(profile.classes.classes)}", "by what tasks ask for and use"),
            )
        ),
        _scores_table(
            "Models, tested in time order",
            "model",
            {e.model: e.scores for e in profile.evaluations},
            without_spread=[e.model for e in profile.evaluations if e.coverage is None],
        ),
        _scores_table(
            f"{profile.chosen.capitalize()}, by how new the job is",
            "what was known of it",
            profile.evaluation.by("novelty"),
            "The finest that the job has in common with one before it: its name or group, user and request, or user.",
        ),
        FigurePart(
            "duration-errors",
            "How far off predictions are",
            figures.error_cdf(curve),
            "Share of jobs whose prediction is off by at most this factor, either way.",
            curve,
            half=True,
        ),
        FigurePart(
            "duration-calibration",
            "Do quantiles hold?",
            figures.calibration(held),
            "Share of jobs at or below the predicted quantile against its level; on the line: as promised.",
            held,
            half=True,
        ),
        FigurePart(
            "duration-reasons",
            "What predictions go by",
            figures.importance(top),
            f"By how much each feature moves a prediction, on average over {min(profile.history.size, 500)} late jobs.",
            top,
        ),
    ]
    steps: tuple[str, ...] = (
        "Predict later jobs: `gputwin predict profile/model LATER -o durations.csv`.",
        "Let the scheduler use it: `gputwin simulate LATER --order sjf --predict profile/model`.",
    )
    if value is None:
        steps = ("See whether it shortens waits: `gputwin profile TRACE --value`.", *steps)
    question = "Can it be known before a job starts how long it will run, and does that help?"
    tested = (
        f"{len(profile.evaluations)} models tested in time order"
        if len(profile.evaluations) > 1
        else "Tested in time order"
    )
    conclusion = (
        f"{tested}: half of the predictions are off by {duration(best.median_error_seconds)} or less, and "
        f"{percent(best.coverage)} of the durations lie in the 80 % interval."
    )
    return Section("durations", "Durations", tuple(parts), _NOTES[1:2], question, steps, conclusion=conclusion)


def headline(profile: Profile, value: PredictionValue | None = None) -> str:
    """Return how well durations are predicted and, where simulated, what that does to waits."""
    best = profile.evaluation.scores
    text = (
        f"{percent(best.within_2x)} of durations are predicted within a factor of two before the job starts "
        f"({profile.chosen} model, tested in time order)."
    )
    return text if value is None else f"{short_verdict(value)} {text}"


def _calibration(profile: Profile) -> pl.DataFrame:
    """Return the share of tested jobs at or below each tested quantile of the chosen model."""
    frame = profile.evaluation.predictions
    below = [float((frame["actual"] <= frame[c] * (1 + 1e-9)).to_numpy().mean()) for c in QUANTILES]
    return pl.DataFrame({"level": LEVELS, "observed": below})


def _value(value: PredictionValue) -> Section:
    rows = tuple(
        (
            o.rule,
            format_duration(o.mean_wait_seconds),
            signed_duration(o.difference_seconds),
            "–" if o.difference_low_seconds is None else signed_duration(o.difference_low_seconds),
            "–" if o.difference_high_seconds is None else signed_duration(o.difference_high_seconds),
            format_duration(o.mean_jct_seconds),
            format_duration(o.long_jobs_p99_wait_seconds),
            "–" if o.gain_kept is None else percent(o.gain_kept),
        )
        for o in value.outcomes
    )
    frame = pl.DataFrame([{"rule": o.rule, "mean_wait_seconds": o.mean_wait_seconds} for o in value.outcomes])
    columns = {"rule": Kind.TEXT} | dict.fromkeys(
        (
            "mean wait",
            "Δ to FIFO",
            "95 %: from",
            "95 %: to",
            "mean completion",
            "p99 wait of the longest tenth",
            "oracle's gain kept",
        ),
        Kind.NUMBER,
    )
    parts = (
        Statement(verdict(value)),
        FigurePart("prediction-value-waits", "Mean wait by rule", figures.waits(frame), f"{value.setting}.", frame),
        TablePart(_VALUE, columns, rows),
    )
    return Section("prediction-value", _VALUE, parts, _NOTES[2:])
