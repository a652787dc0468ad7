"""`gputwin forecast`: backtest and forecast of demand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gputwin.cli.console import Format, Json, Quiet, Seed, emit, progress, say, show, table
from gputwin.cli.options import TraceArgument
from gputwin.core.units import percent

_BEST = 5

if TYPE_CHECKING:
    from gputwin.forecasting.study import ForecastStudy


def run(
    trace: TraceArgument,
    target: Annotated[
        str, typer.Option("--target", help="arrivals, in-force, requests, or metric (with --metric).")
    ] = "arrivals",
    horizon: Annotated[str, typer.Option("--horizon", help="How far ahead, as in 1h or 1d.")] = "1h",
    bins: Annotated[str, typer.Option("--bin", help="Width of a bin, as in 5m.")] = "5m",
    resource: Annotated[
        list[str] | None, typer.Option("--resource", help="cpu, gpu, memory, rdma, disk, instances; repeatable.")
    ] = None,
    by: Annotated[str | None, typer.Option("--by", help="One series per application, role, gpu_model, …")] = None,
    metric: Annotated[str | None, typer.Option("--metric", help="Metric of the trace's own series.")] = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", help="Only these models (and naive, mean, zero); repeatable.")
    ] = None,
    neural: Annotated[bool, typer.Option("--neural", help="Also the neural models; takes minutes.")] = False,
    test: Annotated[float, typer.Option("--test", help="Share of the trace, its end, to test on.")] = 0.2,
    tune: Annotated[
        list[str] | None, typer.Option("--tune", help="Tune this model inside the training window; repeatable.")
    ] = None,
    budget: Annotated[str, typer.Option("--budget", help="CPU time for tuning each model, as in 2m.")] = "2m",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Directory for forecast, scores, models and report.")
    ] = None,
    format: Format = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Forecast demand, with every model's backtest compared with the last value, the mean and zero.

    Examples:

        gputwin forecast dlrm --target in-force --horizon 1h -o forecast

        gputwin forecast dlrm --target arrivals --horizon 5m --neural --json

        gputwin forecast servegen --target requests --bin 10m --test 0.3

        gputwin forecast spot --target metric --metric active_gpus --bin 1h --tune lightgbm-change
    """
    from gputwin.core.units import parse_duration
    from gputwin.forecasting.study import forecast
    from gputwin.traces.locate import open_trace

    with progress(quiet or json) as step:
        opened = open_trace(trace, format, step)
        study = forecast(
            opened,
            target,
            horizon_seconds=parse_duration(horizon),
            bin_seconds=parse_duration(bins),
            resources=tuple(resource or ()),
            by=by,
            metric=metric,
            models=tuple(model or ()),
            neural=neural,
            test_share=test,
            tune_models=tuple(tune or ()),
            tune_cpu_seconds=parse_duration(budget),
            seed=seed,
            progress=step,
        )
        if output is not None:
            from gputwin.report.forecast import save_study

            step("writing the forecast")
            save_study(study, opened, output)
    data = {**study.to_json(), "directory": None if output is None else str(output)}
    emit(data, json, lambda: _render(study, output), lambda: study.forecast.frame)


def _render(study: ForecastStudy, output: Path | None) -> None:
    """Print the forecast, whether it beats the last value, and the models' scores: the best few, or all with --full."""
    from gputwin.cli.settings import settings
    from gputwin.report.sections.forecast import expected, headline, main_series

    say(headline(study)[0])
    for note in study.series.notes:
        say(f"! {note[:1].upper()}{note[1:]}.")
    show(expected(study))
    lead, span = list(study.spans().items())[-1]
    tested = study.tested.schedule.end - study.tested.schedule.test
    if settings().full:
        for each, words in study.spans().items():
            for name in study.series.names:
                _scores(study, each, name, f"{name}, {words} ahead, test part of {tested:,} bins")
        for line in study.verdicts:
            say(line)
    else:
        name = main_series(study)
        _scores(study, lead, name, f"{name}, {span} ahead: the best models on {tested:,} bins", most=_BEST)
        say("All models, series and horizons: --full; as a report: -o DIR")
    for model, why in study.tested.skipped.items():
        say(f"left out {model}: {why}")
    for tuning in study.tunings:
        best = tuning.best
        setting = ", ".join(f"{k}={v}" for k, v in best.parameters.items()) or "its defaults"
        say(f"tuned {tuning.model}: {best.score:.4f} of the last value's error with {setting}")
    if output is not None:
        say(f"report: {output / 'report.html'}")


def _scores(study: ForecastStudy, lead: int, name: str, title: str, most: int | None = None) -> None:
    """Print how well each model did on the test part, the best first."""
    found = study.scores.filter(lead=lead, series=name).sort("rmse", maintain_order=True)
    rows = [
        [
            r["model"],
            f"{r['relative_rmse']:.4f}",
            percent(r["skill_naive"], 1, signed=True),
            f"{percent(r['skill_naive_low'], 1, signed=True)} … {percent(r['skill_naive_high'], 1, signed=True)}",
            percent(r["coverage"]),
            percent(r["skill_mean"], 1, signed=True),
            percent(r["skill_zero"], 1, signed=True),
            percent(r["worst_share"]),
        ]
        for r in (found if most is None else found.head(most)).to_dicts()
    ]
    columns = [
        "model",
        "RMSE/mean",
        "gain",
        "its 95 %",
        "80 % covers",
        "gain to mean",
        "gain to zero",
        "worst 1 %",
    ]
    table(title, columns, rows)
