"""`gputwin autoscale`: scaling rules side by side on a serving trace, or node pools on a batch trace (`--cluster`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gputwin.cli.console import Format, Json, Quiet, Seed, emit, progress, say, table
from gputwin.cli.options import TraceArgument, given_options
from gputwin.core.errors import UserError

if TYPE_CHECKING:
    from gputwin.autoscaling.compare import Comparison


def run(
    context: typer.Context,
    trace: TraceArgument,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            "--rule",
            help="threshold, hpa, knative, predictive, hybrid, keda (default: all but keda); "
            "with --cluster: cluster-autoscaler, karpenter (default: both). Repeatable.",
        ),
    ] = None,
    policy: Annotated[
        list[Path] | None,
        typer.Option(
            "--policy",
            help="Manifest of your own (HPA, ScaledObject, Knative Service) to compare too, repeatable; "
            "with --cluster: the NodePool whose settings Karpenter has.",
        ),
    ] = None,
    sla: Annotated[
        str | None,
        typer.Option("--sla", help="Longest response, as in 2s: to the first token, or whole where no tokens."),
    ] = None,
    load: Annotated[
        float, typer.Option("--load", help="Requests against the trace's: 2 doubles, 0.1 is a sample.")
    ] = 1.0,
    engine: Annotated[
        str, typer.Option("--engine", help="Whose step times serve tokens: llama-3.1-8b.")
    ] = "llama-3.1-8b",
    service: Annotated[
        str, typer.Option("--service", help="Mean service time where the trace has none, as in 10s.")
    ] = "10s",
    service_cv: Annotated[float, typer.Option("--service-cv", help="Its coefficient of variation.")] = 1.0,
    slots: Annotated[int, typer.Option("--slots", help="Requests a replica serves at once, without tokens.")] = 1,
    adapters: Annotated[
        bool, typer.Option("--adapters/--no-adapters", help="Whether models and adapters are loaded.")
    ] = True,
    boot: Annotated[str, typer.Option("--boot", help="Time a replica takes to start, as in 60s.")] = "60s",
    period: Annotated[
        str | None, typer.Option("--period", help="Time between decisions; default 15s, 60s for traces above two days.")
    ] = None,
    minimum: Annotated[int, typer.Option("--min", help="Fewest replicas.")] = 1,
    maximum: Annotated[int, typer.Option("--max", help="Most replicas.")] = 100,
    price: Annotated[float, typer.Option("--price", help="Of a replica, per hour.")] = 1.0,
    penalty: Annotated[
        float | None,
        typer.Option(
            "--penalty", help="Per request and second beyond the SLA; default: what a replica costs per second."
        ),
    ] = None,
    first_part: Annotated[
        float, typer.Option("--first-part", help="Share of the trace on which settings are chosen.")
    ] = 0.5,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster", help="Node pools for a batch trace: a YAML file with limits and prices, or a cluster."
        ),
    ] = None,
    spot: Annotated[
        list[float] | None,
        typer.Option("--spot", help="Largest share of spot nodes, as in 0.3, with --cluster; repeatable; default 0."),
    ] = None,
    availability: Annotated[
        Path | None, typer.Option("--availability", help="CSV of when spot nodes can be had; see docs/autoscaling.md.")
    ] = None,
    zone: Annotated[
        list[str] | None, typer.Option("--zone", help="Part of the names of zones to take from it; repeatable.")
    ] = None,
    hazard: Annotated[
        str,
        typer.Option(
            "--hazard", help="Losses of a running spot node per hour, or a CSV of preemptions to take them from."
        ),
    ] = "0",
    spot_prices: Annotated[
        Path | None,
        typer.Option(
            "--spot-prices", help="CSV (time_seconds, price_per_hour): cost and hazard of spot nodes move with it."
        ),
    ] = None,
    price_power: Annotated[
        float, typer.Option("--price-power", help="The hazard follows the spot price to this power; 0: it does not.")
    ] = 1.0,
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", help="interval=30m,save=1m,restart=2m of jobs on spot nodes; interval=best too."),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", help="Runs with spot nodes, each with its own luck.")] = 3,
    placement: Annotated[
        str, typer.Option("--placement", help="Which node that is on a job goes to, with --cluster, as in first-fit.")
    ] = "best-fit",
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            help="As in p95_wait=10m, with --cluster: choose rule, settings and spot share on the first part of the trace.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Directory for the tables and a report.")
    ] = None,
    format: Format = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare scaling rules on a trace of requests: cost, SLA, latency, capacity, compared with perfect foresight.

    Examples:

        gputwin autoscale AzureLLMInferenceTrace_conv.csv.gz --load 4

        gputwin autoscale language_m-large_client_rates.csv.gz --load 0.005 --service 10s -o scaling

        gputwin autoscale genai --rule hpa --rule hybrid --sla 3m --json

        gputwin autoscale "synthetic:pai2020?jobs=100000" --cluster pai2020 --spot 0 --spot 0.3
    """
    given = given_options(context)
    _check_acts(given, with_cluster=cluster is not None)
    if target is None and not any(spot or ()):
        _check_needs(given, _OF_SPOT, "--spot above 0")
    _check_needs(given, ("zone",), "--availability")
    _check_needs(given, ("price_power",), "--spot-prices")
    if not 0 <= minimum <= maximum or maximum < 1:
        raise UserError(f"--min {minimum} --max {maximum}: give 0 ≤ min ≤ max, and at least one replica at most")
    if maximum > _MOST_REPLICAS:
        raise UserError(f"--max {maximum}: at most {_MOST_REPLICAS:,} replicas can be simulated")
    if cluster is not None:
        from gputwin.cli.node_pools import PoolArguments, run_pools

        run_pools(
            PoolArguments(
                trace,
                cluster,
                rule,
                policy,
                spot,
                availability,
                zone,
                hazard,
                spot_prices,
                price_power,
                checkpoint,
                seeds,
                placement,
                target,
                first_part,
                output,
                format,
                seed,
                json,
                quiet,
            )
        )
        return
    from gputwin.autoscaling.candidates import COMPARED
    from gputwin.autoscaling.compare import Options, compare
    from gputwin.autoscaling.manifests.files import given_rules
    from gputwin.autoscaling.serving.workload import service_of
    from gputwin.core.units import parse_duration
    from gputwin.traces.locate import open_trace

    options = Options(
        tuple(rule or COMPARED),
        None if sla is None else parse_duration(sla),
        None if period is None else parse_duration(period),
        parse_duration(boot),
        minimum,
        maximum,
        price,
        penalty,
        first_part,
        given=given_rules(policy or ()),
    )
    with progress(quiet or json) as step:
        opened = open_trace(trace, format, step)
        served = service_of(
            opened,
            engine=engine,
            service_seconds=parse_duration(service),
            service_cv=service_cv,
            slots=slots,
            load_factor=load,
            adapters=adapters,
            seed=seed,
        )
        if idle := [given[name] for name in served.without_effect if name in given]:
            raise UserError(f"{', '.join(idle)}: no effect on these requests ({served.notes[0]}); leave out")
        result = compare(served, options, step)
        if output is not None:
            from gputwin.report.autoscale import write_autoscale_report

            step("writing the report")
            write_autoscale_report(output, opened, result)
    data = {**result.to_json(), "directory": None if output is None else str(output)}
    emit(data, json, lambda: _render(result, output))


_MOST_REPLICAS = 100_000
_OF_POOLS = (
    *("spot", "availability", "zone", "hazard", "spot_prices", "price_power", "checkpoint", "seeds", "placement"),
    "target",
)
_OF_SPOT = ("availability", "zone", "hazard", "spot_prices", "price_power", "checkpoint")
_OF_REPLICAS = (
    *("sla", "load", "engine", "service", "service_cv", "slots", "adapters", "boot", "period", "minimum", "maximum"),
    *("price", "penalty"),
)


def _check_acts(given: dict[str, str], *, with_cluster: bool) -> None:
    """Raise a user error for an option of node pools beside a trace of requests, or of replicas beside node pools."""
    idle = [given[name] for name in (_OF_REPLICAS if with_cluster else _OF_POOLS) if name in given]
    if idle and with_cluster:
        raise UserError(
            f"{', '.join(idle)}: no effect on node pools; leave out, or give a trace of requests without --cluster"
        )
    if idle:
        raise UserError(f"{', '.join(idle)}: no effect without --cluster, which says what node pools there are")


def _check_needs(given: dict[str, str], names: tuple[str, ...], needed: str) -> None:
    """Raise a user error for options that say something of another one, which was not given."""
    idle = [given[name] for name in names if name in given]
    if idle and needed not in given.values():
        raise UserError(f"{', '.join(idle)}: no effect without {needed}")


def _render(result: Comparison, output: Path | None) -> None:
    from gputwin.core.units import format_duration

    what = "first token" if result.is_first_token else "response"
    # The last three sentences say how it was found.
    *answers, chosen_on, paid, forecast = result.verdicts()
    for sentence in answers:
        say(sentence)
    say(
        f"{result.requests[1]:,} requests in {format_duration(result.shown.span)}; SLA: {what} within "
        f"{format_duration(result.target_seconds)}; a replica starts in {format_duration(result.shown.boot_seconds)}"
    )
    rows = [
        [
            r.rule,
            f"{s.cost.total:,.2f}",
            f"{s.cost.compute:,.2f}",
            f"{s.cost.penalty:,.2f}",
            f"{s.violation_minutes:,}",
            format_duration(s.p95_response),
            format_duration(s.p99_response),
            f"{s.mean_replicas:,.2f}",
            f"{s.over_replica_hours:,.1f}",
            f"{s.under_replica_hours:,.1f}",
            f"{s.scale_events:,}",
            f"{s.cold_starts:,}",
        ]
        for r in result.rows
        for s in (r.shown_on,)
    ]
    bound = result.bound
    rows.append(["bound", f"{bound.total:,.2f}", f"{bound.compute:,.2f}", f"{bound.penalty:,.2f}", *["–"] * 8])
    columns = [
        "rule",
        "cost",
        "compute",
        "penalty",
        "SLA min",
        "p95",
        "p99",
        "replicas",
        "over",
        "under",
        "changes",
        "starts",
    ]
    table("Scaling rules on the rest of the trace (over and under in replica-hours)", columns, rows)
    table("Settings chosen on the first part", ["rule", "setting"], [[r.rule, r.setting] for r in result.rows])
    for sentence in (chosen_on, paid, forecast, *(f"{n[:1].upper()}{n[1:]}." for n in result.notes)):
        say(f"- {sentence}")
    if output is not None:
        say(f"report: {output / 'autoscale.html'}")
