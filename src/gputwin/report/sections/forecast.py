"""The forecast: what is expected, how it did on the past, and whether anything beats the obvious."""

from __future__ import annotations

import polars as pl

from gputwin.analysis.words import metric
from gputwin.core.units import format_duration, percent, short_duration
from gputwin.forecasting.combine import AUTO
from gputwin.forecasting.frame import column
from gputwin.forecasting.series import Target
from gputwin.forecasting.study import ForecastStudy, span_words
from gputwin.report import forecast_figures as figures
from gputwin.report.page import (
    Bullets,
    Card,
    Cards,
    FigurePart,
    Kind,
    Part,
    Prose,
    Section,
    Statement,
    TablePart,
    Tone,
    number,
)
from gputwin.report.timeline import Timeline

_LEAST_HISTORY, _TIMES_HORIZON = 72, 8
"""Bins of history beside a forecast: few enough that the forecast itself can be seen."""
_MOST_SERIES = 8
_MANY_ZEROS = 0.05
_COMPARED = 6
_MUCH_WORSE = -0.02
"""Skill against the last value below which the forecast is bad news."""
_SAID = {"gpu": "GPUs", "cpu": "CPU", "rdma": "RDMA"}


def forecast_section(study: ForecastStudy, timeline: Timeline) -> Section:
    """Return the section on one forecast."""
    parts: list[Part] = [
        Statement(*headline(study)),
        _tiles(study),
        _fan(study, timeline),
        expected(study),
        Bullets(tuple(f"{verdict}." for verdict in study.verdicts[:40])),
        _skill(study),
        _table(study),
        _calibration(study),
        *_curves(study),
        *_tuning(study),
    ]
    if study.tested.skipped:
        left = "; ".join(f"{model}: {why}" for model, why in study.tested.skipped.items())
        parts.append(Prose(f"Models left out: {left}."))
    conclusion = _skill_words(study)[0]
    question = f"What will {_what(study)} be?"
    return Section(
        "forecast", "Forecast", tuple(parts), _notes(study), question, _next_steps(study), conclusion=conclusion
    )


def _next_steps(study: ForecastStudy) -> tuple[str, ...]:
    if study.series.target is Target.METRIC:
        asked = f"`gputwin forecast TRACE --target metric --metric {study.series.names[0]} --horizon 2d`"
        return (f"Look further ahead: {asked}.",)
    if study.series.target is Target.REQUESTS:
        return (
            "Compare scaling rules on these requests: `gputwin autoscale TRACE`.",
            "Look further ahead: `gputwin forecast TRACE --target requests --horizon 1d`.",
        )
    return (
        "Place what is expected, not what is there now: `gputwin place TRACE --quantile 0.9 --ahead 6h`.",
        "Look further ahead, or at another quantity: `gputwin forecast TRACE --horizon 1d --target arrivals`.",
    )


def _what(study: ForecastStudy) -> str:
    if study.series.target is Target.METRIC:
        return metric(study.series.names[0])
    return {"in-force": "demand", "arrivals": "the demand of new tasks", "requests": "the request rate"}[
        str(study.series.target)
    ]


def expected(study: ForecastStudy) -> TablePart:
    """Return what is expected of each series at the tested horizons, with the 80 % interval and the model behind it."""
    rows = []
    for name in study.series.names:
        for lead, span in study.spans().items():
            r = study.forecast.frame.filter((pl.col("series") == name) & (pl.col("step") == lead)).row(0, named=True)
            interval = f"{amount(r['q0.1'])} to {amount(r['q0.9'])}" if "q0.1" in r and "q0.9" in r else "–"
            score = study.scores.filter(series=name, lead=lead, model=AUTO).row(0, named=True)
            rows.append(
                (
                    name,
                    span,
                    amount(r["mean"]),
                    interval,
                    r["unit"],
                    _choice(study, name, lead),
                    percent(score["skill_naive"], 1, signed=True),
                )
            )
    kinds = {"series": Kind.TEXT, "in": Kind.TEXT, "expected": Kind.NUMBER, "80 % interval": Kind.NUMBER}
    kinds |= {"unit": Kind.TEXT, "model": Kind.TEXT, "gain on last value": Kind.NUMBER}
    note = "The model is chosen anew at each bin by the errors before it (auto): one model's own gain differs."
    return TablePart("What is expected", kinds, tuple(rows), note)


def main_series(study: ForecastStudy) -> str:
    """Return the series a reader asks for first: GPUs where they are among them."""
    return next((n for n in study.series.names if n == "gpu"), study.series.names[0])


def expected_words(study: ForecastStudy) -> str:
    """Return the forecast at the horizon in a sentence: of GPUs where they are among the series, else of the first."""
    lead, span = list(study.spans().items())[-1]
    name = main_series(study)
    r = study.forecast.frame.filter((pl.col("series") == name) & (pl.col("step") == lead)).row(0, named=True)
    text = f"In {span}: {in_unit(r['mean'], r['unit'])}"
    if study.series.target is Target.REQUESTS:
        text = f"In {span}: {amount(r['mean'])} requests per second"
    if study.series.target is Target.ARRIVALS:
        text += f" newly asked for in {short_duration(study.series.bin_seconds)}"
    elif study.series.target is Target.IN_FORCE:
        text += " for tasks that run or wait"
    if "q0.1" in r and "q0.9" in r:
        text += f" (80 %: {amount(r['q0.1'])} to {amount(r['q0.9'])})"
    return f"{text}."


def _choice(study: ForecastStudy, series: str, lead: int) -> str:
    """Return the model the forecast goes by at a horizon."""
    choice = next((c for c in study.choices if c.series == series and c.lead == lead), None)
    return "last value" if choice is None or choice.share <= 0 else choice.model


def amount(value: float) -> str:
    """Return an expected amount: whole from a hundred on, else to three digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def in_unit(value: float, unit: str) -> str:
    """Return an expected amount with its unit: "17 GPUs", "1 GPU", "3.8/s"."""
    shown = amount(value)
    if unit.startswith("1/"):
        return f"{shown}{unit[1:]}"
    return f"{shown} {unit.removesuffix('s') if shown == '1' and unit.isalpha() else unit}".rstrip()


def _tiles(study: ForecastStudy) -> Cards:
    """Return the expected amounts at the horizon, GPUs first; of a single series the last value and every horizon."""
    spans = list(study.spans().items())
    names = sorted(study.series.names, key=lambda n: n != "gpu")[:5]
    cards = []
    if len(names) == 1:
        cards.append(Card("Last value", in_unit(float(study.series.values[-1, 0]), study.series.units[0])))
    for name, (lead, span) in [(n, s) for n in names for s in (spans if len(names) == 1 else spans[-1:])]:
        r = study.forecast.frame.filter((pl.col("series") == name) & (pl.col("step") == lead)).row(0, named=True)
        note = f"80 %: {amount(r['q0.1'])} to {amount(r['q0.9'])}" if "q0.1" in r and "q0.9" in r else ""
        if len(names) == 1:
            cards.append(Card(f"In {span}", in_unit(r["mean"], r["unit"]), note))
        else:
            said = _SAID.get(name, f"{name[:1].upper()}{name[1:]}")
            unit = "" if r["unit"] == said else f", {r['unit']}"
            cards.append(Card(f"{said} in {span}{unit}", amount(r["mean"]), note))
    return Cards(tuple(cards[:5]))


def headline(study: ForecastStudy) -> tuple[str, Tone]:
    """Return what is expected and whether the forecast beats the last value, and whether that is good news."""
    text, tone = _skill_words(study)
    return f"{expected_words(study)} {text}", tone


def _skill_words(study: ForecastStudy) -> tuple[str, Tone]:
    auto = study.scores.filter(model=AUTO)
    sure = auto.filter(pl.col("skill_naive_low") > 0)
    worst = float(auto["skill_naive"].min())  # type: ignore[arg-type]
    if sure.is_empty():
        return (
            "On the test part the forecast was not surely better than the last value, and it stays close to it"
            + (f" (at worst {percent(-worst, 1)} worse)." if worst < 0 else "."),
            Tone.NEUTRAL,
        )
    return (
        f"On the test part the forecast is surely better than the last value in {sure.height} of {auto.height} cases "
        "(series and horizons)" + (f", and at worst {percent(-worst, 1)} worse." if worst < 0 else "."),
        Tone.WARNING if worst <= _MUCH_WORSE else Tone.GOOD if 2 * sure.height >= auto.height else Tone.NEUTRAL,
    )


def _fan(study: ForecastStudy, timeline: Timeline) -> FigurePart:
    series, made = study.series, study.forecast
    names = series.names[:_MOST_SERIES]
    horizon = int(made.frame["step"].max())  # type: ignore[arg-type]
    back = min(len(series), max(_LEAST_HISTORY, _TIMES_HORIZON * horizon))
    times = series.times()[-back:]
    last = float(times[-1]) + (horizon + 1) * series.bin_seconds
    shown = timeline.until(last)
    # A level is meant at the bin's end.
    shift = series.bin_seconds if series.is_level else 0.0
    history = pl.concat(
        pl.DataFrame({"series": name, "time": times + shift, "value": series.values[-back:, j]})
        for j, name in enumerate(names)
    ).with_columns(shown.shown(pl.col("time")).alias("at"))
    ahead = made.frame.filter(pl.col("series").is_in(names)).with_columns(
        shown.shown(pl.col("time") + shift).alias("at")
    )
    wide = [(a, b) for a, b in ((0.05, 0.95), (0.1, 0.9), (0.25, 0.75)) if a in made.levels and b in made.levels]
    figure = figures.fan(history, ahead, shown.axis, [(column(a), column(b)) for a, b in wide])
    first = ahead.filter(pl.col("step") == horizon)
    words = "; ".join(
        f"{r['series']} {number(r['mean'])}" + (f" ({number(r['q0.1'])} to {number(r['q0.9'])})" if "q0.1" in r else "")
        for r in first.to_dicts()
    )
    bands = ", ".join(percent(b - a) for a, b in wide)
    caption = (
        f"The last {back:,} bins of {span_words(series.bin_seconds)} and the next {horizon:,}, with bands of {bands}. "
        f"At the end of the horizon: {words}."
    )
    return FigurePart("forecast-fan", "History and forecast", figure, caption, ahead.drop("at"))


def _skill(study: ForecastStudy) -> FigurePart:
    spans = study.spans()
    label = pl.concat_str(
        pl.col("series"), pl.lit(", "), pl.col("lead").replace_strict(spans, return_dtype=pl.String)
    ).alias("label")
    order = (
        study.scores.filter(~pl.col("model").is_in([AUTO, "naive"]))
        .group_by("model")
        .agg(pl.col("skill_naive").median())
        .sort("skill_naive", "model", descending=[True, False])["model"]
        .to_list()[:_COMPARED]
    )
    names = [AUTO, *order]
    frame = study.scores.filter(
        pl.col("model").is_in(names) & pl.col("series").is_in(study.series.names[:_MOST_SERIES])
    )
    frame = frame.select(
        label,
        "model",
        pl.col("skill_naive").clip(-1, 1).alias("skill"),
        pl.col("skill_naive_low").clip(-1, 1).alias("low"),
        pl.col("skill_naive_high").clip(-1, 1).alias("high"),
        pl.col("model").replace_strict({n: i for i, n in enumerate(names)}, return_dtype=pl.Int32).alias("rank"),
    ).sort("rank", maintain_order=True)
    caption = (
        f"One minus RMSE over that of the last value, on the test part: auto with its 95 % block-bootstrap interval, and "
        f"the {len(order)} models with the highest median. Below −100 % points are cut off."
    )
    return FigurePart(
        "forecast-skill", "Skill by horizon", figures.skill_by_horizon(frame), caption, frame.drop("rank")
    )


def _table(study: ForecastStudy) -> TablePart:
    spans = study.spans()
    rows = []
    shown = study.scores.filter(pl.col("series").is_in(study.series.names[:_MOST_SERIES]))
    rank = pl.col("rmse").rank("ordinal").over("series", "lead")
    shown = shown.filter(pl.col("model").is_in([AUTO, "naive", "mean", "zero"]) | (rank <= _COMPARED))
    for row in shown.sort("series", "lead", "rmse", maintain_order=True).to_dicts():
        rows.append(
            (
                *((row["series"],) if len(study.series.names) > 1 else ()),
                spans[row["lead"]],
                row["model"],
                number(row["relative_rmse"]),
                number(row["mase"]),
                number(row["pinball"]),
                percent(row["coverage"]),
                percent(row["skill_naive"], 1, signed=True),
                f"{percent(row['skill_naive_low'], 1, signed=True)} … {percent(row['skill_naive_high'], 1, signed=True)}",
                percent(row["skill_mean"], 1, signed=True),
                percent(row["skill_zero"], 1, signed=True),
                f"{row['p_naive']:.2g}",
                percent(row["worst_share"]),
            )
        )
    text = dict.fromkeys(("series", "horizon", "model")[len(study.series.names) == 1 :], Kind.TEXT)
    names = (
        *("RMSE/mean", "MASE", "pinball", "80 % band covers", "skill: naive", "95 %", "skill: mean", "skill: zero"),
        *("p (DM)", "worst 1 %"),
    )
    note = (
        f"The best {_COMPARED} and the obvious ones, best first. Skill is one minus RMSE over the reference's; p is Diebold "
        "and Mariano's against the last value; the last column is the share of the squared error in the worst 1 % of bins."
    )
    return TablePart("Backtest", text | dict.fromkeys(names, Kind.NUMBER), tuple(rows), note)


def _calibration(study: ForecastStudy) -> FigurePart:
    spans = study.spans()
    names = study.series.names[:_MOST_SERIES]
    longest = max(study.tested.leads)
    frame = study.calibration.filter(pl.col("series").is_in(names) & (pl.col("lead") == longest)).with_columns(
        pl.concat_str(pl.col("series"), pl.lit(f", {spans[longest]}")).alias("label")
    )
    gap = float((frame["level"] - frame["share"]).abs().max())  # type: ignore[arg-type]
    caption = (
        f"Quantiles of auto {spans[longest]} ahead against how often values stayed at or below them on the test part; on "
        f"the dashed line they hold what they promise. Largest difference: {percent(gap)}."
    )
    if (study.series.values == 0).mean() > _MANY_ZEROS:
        caption += " Many values are exactly zero, so low quantiles are zero and hold more than they promise."
    return FigurePart("forecast-calibration", "Calibration", figures.calibration(frame), caption, frame, half=True)


def _curves(study: ForecastStudy) -> list[Part]:
    if not study.curves:
        return []
    rows, words = [], []
    for model, curve in study.curves.items():
        for part, losses in (("training", curve.train), ("validation", curve.validation)):
            rows += [{"model": model, "epoch": e + 1, "part": part, "loss": x} for e, x in enumerate(losses)]
        words.append(
            f"{model}: kept epoch {curve.kept + 1} of {len(curve.train)}, validation {curve.validation[curve.kept]:.4g}, "
            f"at the end {curve.validation[-1]:.4g}"
        )
    frame = pl.DataFrame(rows)
    caption = f"Loss after each epoch; the validation part is the latest of the history. {'; '.join(words)}."
    return [FigurePart("forecast-curves", "Learning curves", figures.learning_curves(frame), caption, frame, half=True)]


def _tuning(study: ForecastStudy) -> list[Part]:
    parts: list[Part] = []
    for tuning in study.tunings:
        rows = tuple(
            (
                ", ".join(f"{k} {v}" for k, v in trial.parameters.items()) or "as it is",
                f"{trial.score:.4f}",
                format_duration(trial.cpu_seconds),
            )
            for trial in sorted(tuning.trials, key=lambda t: t.score)
        )
        kinds = {"setting": Kind.TEXT, "RMSE over the last value's": Kind.NUMBER, "CPU": Kind.NUMBER}
        parts.append(TablePart(f"Settings tried for {tuning.model}", kinds, rows, "Scored inside the training window."))
    return parts


def _notes(study: ForecastStudy) -> tuple[str, ...]:
    plan = study.tested.schedule
    return (
        f"The forecast's test part is the last {plan.end - plan.test:,} of {plan.end:,} bins. Models are fitted at "
        f"{len(plan.refits)} origins on what lay before each; weights of ensembles come from what was known at "
        "each. Auto goes from the last value towards a model by the share that errors known at the time prove, and back "
        "when that loses.",
        "Intervals are conformal: quantiles of each model's own past errors at the same lead, steered by recent coverage.",
        *(f"{note[:1].upper()}{note[1:]}." for note in study.series.notes),
    )
