"""`gputwin eta`: when each pending job starts, and what it waits for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gputwin.cli.console import Format, Json, Quiet, Seed, announce_compilation, emit, progress, say, table, warn
from gputwin.cli.options import Backfill, ClusterOption, Order, Placement, Policies, TraceArgument, scenario_from
from gputwin.core.units import percent

if TYPE_CHECKING:
    import polars as pl

    from gputwin.studies.eta.backtest import Backtest
    from gputwin.studies.eta.estimate import Estimate


def run(
    context: typer.Context,
    trace: TraceArgument,
    cluster: ClusterOption = None,
    at: Annotated[
        str | None,
        typer.Option("--at", help="A date, or a time after the first job (2d); the trace's end when not given."),
    ] = None,
    order: Order = "fifo",
    placement: Placement = "first-fit",
    backfill: Backfill = "easy",
    fairness: Annotated[
        str, typer.Option("--fairness", help="Whose turn it is; NAME or NAME:parameter=value; see `gputwin policies`.")
    ] = "",
    share: Annotated[
        str, typer.Option("--share", help="GPU shares: fraction, or exclusive (rounded up).")
    ] = "fraction",
    profile: Annotated[
        Path | None, typer.Option("--profile", help="Saved duration model; learned from the trace when not given.")
    ] = None,
    draws: Annotated[int, typer.Option("--draws", min=10, max=10_000, help="Futures simulated.")] = 100,
    no_arrivals: Annotated[bool, typer.Option("--no-arrivals", help="Nobody else comes.")] = False,
    calibrate: Annotated[
        int, typer.Option("--calibrate", min=0, max=100_000, help="Earlier moments to calibrate intervals on; 0: none.")
    ] = 200,
    backtest: Annotated[bool, typer.Option("--backtest", help="Test predicted starts in time order.")] = False,
    moments: Annotated[int, typer.Option("--moments", min=10, max=100_000, help="Moments of the back-test.")] = 800,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Take the waits of a simulated run of the trace under these rules.")
    ] = False,
    policies: Policies = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="File for the table: .csv, .parquet, .jsonl.")
    ] = None,
    format: Format = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say when each pending job starts, with an 80 % interval, and what it waits for.

    Running and pending jobs come from a trace cut at a time, `sacct` text or `kubectl get pods,nodes -o json`. Remaining
    run times are drawn from a duration model given how long each job has run, and the cluster is simulated ahead many
    times. Intervals are calibrated on earlier waits of the same trace, where it has any. `--backtest` measures how often
    they hold, beside the obvious answers.

    Examples:

        gputwin eta theta --cluster homogeneous:24x1 --at 2023-03-01

        gputwin eta sacct-now.txt --cluster cluster.yaml --backfill easy --json

        gputwin eta pods.json --profile profile/model

        gputwin eta theta --cluster homogeneous:24x1 --backtest
    """
    from gputwin.simulation.simulate import cluster_of_scenario, trace_of
    from gputwin.studies.eta.ahead import check
    from gputwin.studies.eta.backtest import backtest as run_backtest
    from gputwin.studies.eta.estimate import BACKTEST_DRAWS, estimate, rules_of, with_simulated_waits
    from gputwin.studies.eta.record import Record
    from gputwin.traces.framefile import check_extension, write_frame
    from gputwin.traces.locate import open_trace
    from gputwin.traces.slicing import instant

    if output is not None:
        check_extension(output)
    fields = {
        "format": format,
        "cluster": cluster,
        "order": order,
        "backfill": backfill,
        "placement": placement,
        "fairness": fairness or None,
        "sharing": share,
        "seed": seed,
    }
    beside = ("at", "profile", "draws", "no_arrivals", "calibrate", "backtest", "moments", "simulated")
    scenario = scenario_from(context, trace, policies, fields, beside)
    check(scenario)
    saved = None
    if profile is not None:
        from gputwin.profiling.store import load

        saved = load(profile)
    announce_compilation(quiet)
    with progress(quiet or json) as step:
        opened = trace_of(scenario, open_trace(scenario.trace, scenario.format, step))
        target = cluster_of_scenario(scenario, opened)
        if simulated:
            step("simulating the trace")
            opened = with_simulated_waits(opened, scenario, target)
        if backtest:
            record = Record.of(opened, target, scenario.share)
            rules = rules_of(record, scenario, target, BACKTEST_DRAWS, moments * BACKTEST_DRAWS, not no_arrivals)
            tested = run_backtest(record, rules, moments, step)
            frame, data, render = tested.frame, tested.to_json(), lambda: _render_test(tested)
        else:
            found = estimate(
                opened,
                scenario,
                target,
                None if at is None else instant(opened, at),
                draws=draws,
                calibrate=calibrate,
                arrivals=not no_arrivals,
                profile=saved,
                progress=step,
            )
            frame, data, render = found.frame, found.to_json(), lambda: _render(found)
            for note in found.notes:
                warn(note)
        if output is not None:
            write_frame(_flat(frame), output)
    emit({**data, "table": None if output is None else str(output)}, json, render, lambda: _flat(frame))


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the table without lists, which CSV has no form for."""
    import polars as pl

    if "holders" not in frame.columns:
        return frame
    names = pl.col("holders").list.eval(pl.element().struct.field("job_id")).list.join(" ")
    return frame.with_columns(names.alias("holders"))


def _render(found: Estimate) -> None:
    from gputwin.core.units import format_duration
    from gputwin.studies.eta.estimate import verdict

    say(verdict(found))
    rows = [
        [
            r["job_id"],
            format_duration(r["median_seconds"]),
            f"{format_duration(r['low_seconds'])} – {format_duration(r['high_seconds'])}",
            r["why"],
            f"{r['gpus']:g}",
            format_duration(r["waited_seconds"]),
            format_duration(r["simulated_median_seconds"]),
        ]
        for r in found.frame.to_dicts()
    ]
    if rows:
        columns = ["job", "starts in", "80 % interval", "why it waits", "GPUs", "has waited", "simulated"]
        table(f"{len(rows):,} pending jobs, in order of submission", columns, rows)
    basis = f"calibrated on {found.calibration_points:,} earlier points" if found.calibration_points else "simulated"
    later = f"for {format_duration(found.arrivals_seconds)} others arrive as on earlier days"
    say(f"intervals: {basis}; {later if found.arrivals_seconds else 'nobody else arrives'}")


def _render_test(tested: Backtest) -> None:
    from gputwin.core.units import format_duration
    from gputwin.studies.eta.backtest import verdict

    say(verdict(tested))
    rows = [
        [
            s.state,
            s.method,
            f"{s.points:,}",
            percent(s.coverage, 1),
            percent(s.below, 1),
            percent(s.above, 1),
            format_duration(s.median_width_seconds),
            format_duration(s.median_error_seconds),
            f"× {s.off_by:.2f}",
            f"{s.interval_score:.2f}",
        ]
        for s in tested.scores
    ]
    columns = ["jobs", "predicted by", "points", "80 % interval holds", "earlier", "later"]
    columns += ["median width", "median error", "off by", "interval score"]
    table(f"Predicted starts at {tested.moments:,} moments in time order", columns, rows)
    if tested.not_started:
        say(f"{tested.not_started:,} points left out: the job did not start within the trace")
