"""`gputwin reproduce`: published results, ours beside theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gputwin.cli.console import Json, Quiet, Seed, emit, progress, say, table
from gputwin.core.units import percent

app = typer.Typer(help="Reproduce a published result.", no_args_is_help=True)


@app.command("fgd2023")
def fgd2023(
    nodes: Annotated[Path, typer.Option("--nodes", help="openb node list.")] = Path("openb_node_list_gpu_node.csv"),
    pods: Annotated[Path, typer.Option("--pods", help="openb pod list.")] = Path("openb_pod_list_default.csv"),
    order: Annotated[
        list[Path] | None, typer.Option("--order", help="File with an arrival order (seedNN…); repeatable.")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Orders to draw where none is given.")] = 10,
    policy: Annotated[list[str] | None, typer.Option("--policy", help="Only these policies; repeatable.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Six placement policies on the openb cluster (Weng et al., ATC'23, section 6).

    Get the files with `gputwin traces fetch openb2023`.

    Examples:

        gputwin reproduce fgd2023 --nodes openb_node_list_gpu_node.csv --pods openb_pod_list_default.csv

        gputwin reproduce fgd2023 --pods openb_pod_list_gpushare40.csv --seeds 30 --json
    """
    from gputwin.studies.reproduce.fgd2023 import ALL_LOADS, COLUMNS, METRICS, POLICIES, reproduce

    with progress(quiet or json) as step:
        result = reproduce(nodes, pods, order or (), seeds=seeds, policies=policy or POLICIES, progress=step)

    def render() -> None:
        deviation = result.largest_deviation()
        if deviation is not None:
            say(
                "largest deviation of our mean allocation from the published one at loads 100 and 130: "
                f"{deviation:.2f} standard errors of the difference"
            )
        gap = result.largest_difference()
        if gap is not None:
            everywhere = result.largest_difference(ALL_LOADS)
            say(
                "largest difference to the published figures of the same orders, deterministic policies: "
                f"{gap:.4f} points at the loads above, {everywhere:.4f} at any of 131 loads"
            )
        means = result.means()
        for metric in METRICS:
            rows = []
            for name in policy or POLICIES:
                at = {r["load"]: r for r in means.filter(policy=name, metric=metric).to_dicts()}
                rows.append([name, "ours", *(f"{at[c]['ours']:.2f}" if c in at else "–" for c in COLUMNS)])
                known = any(c in at and at[c]["published"] is not None for c in COLUMNS)
                if known:
                    rows.append(["", "published", *(f"{at[c]['published']:.2f}" for c in COLUMNS)])
            table(
                f"GPU {metric}, % of capacity, at arrived load in %, mean of seeds (published: of ten seeds)",
                ["policy", "", *map(str, COLUMNS)],
                rows,
            )

    emit(result.to_json(), json, render)


@app.command("queueing-models")
def queueing_models(
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Only models with this text in their name; repeatable.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE.md", help="Also write the table as Markdown.")
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Every queueing model compared with a simulation of that very model: the table of docs/queueing-models.md.

    Takes about three minutes.

    Examples:

        gputwin reproduce queueing-models -o docs/queueing-models.md

        gputwin reproduce queueing-models --only gang --json
    """
    from gputwin.core.atomic import atomic_file
    from gputwin.studies.validation.models import COLUMNS, validate_models

    with progress(quiet or json) as step:
        result = validate_models(only or (), seed=seed, progress=step)
    if output is not None:
        with atomic_file(output) as fresh:
            fresh.write_text(result.page(), encoding="utf-8")

    def render() -> None:
        say(result.verdict())
        table("Queueing models and simulation, 99.9 % intervals", COLUMNS, result.cells())

    emit(result.to_json(), json, render)


@app.command("pai2020-sjf")
def pai2020_sjf(
    jobs: Annotated[int, typer.Option("--jobs", min=100, help="Jobs scheduled.")] = 20_000,
    past: Annotated[int, typer.Option("--past", min=100, help="Earlier jobs that models learn from.")] = 180_000,
    model: Annotated[list[str] | None, typer.Option("--model", help="Only these models; repeatable.")] = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Shortest-job-first with predicted durations (Weng et al., NSDI'22, section 5.2): 6,500 GPUs, 1,000 jobs a minute.

    Examples:

        gputwin reproduce pai2020-sjf

        gputwin reproduce pai2020-sjf --model forest --seed 1 --json
    """
    from gputwin.cli.profile import value_table
    from gputwin.studies.reproduce.pai2020_sjf import MODELS, PUBLISHED, reproduce

    with progress(quiet or json) as step:
        result = reproduce(jobs=jobs, past_jobs=past, seed=seed, models=tuple(model or MODELS), progress=step)

    def render() -> None:
        value_table(result.ours)
        table(
            "Published, on the original jobs",
            ["rule", "mean wait s", "mean JCT s", "oracle's gain kept"],
            [
                [p.rule, f"{p.mean_wait_seconds:,.1f}", f"{p.mean_jct_seconds:,.1f}", percent(p.gain_kept, 1)]
                for p in PUBLISHED
            ],
        )

    emit(result.to_json(), json, render)


@app.command("dlrm2025-forecast")
def dlrm2025_forecast(
    trace: Annotated[
        Path, typer.Option("--trace", help="The publisher's file, or a trace directory made of it.")
    ] = Path("disaggregated_DLRM_trace.csv"),
    target: Annotated[
        list[str] | None, typer.Option("--target", help="Only arrivals, or only in-force; both when not given.")
    ] = None,
    neural: Annotated[bool, typer.Option("--neural", help="Also the neural models; a few minutes more.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Forecasts of the DLRM 2025 trace's demand compared with reference figures.

    Get the file with `gputwin traces fetch dlrm2025`.

    Examples:

        gputwin reproduce dlrm2025-forecast --trace disaggregated_DLRM_trace.csv

        gputwin reproduce dlrm2025-forecast --trace dlrm --neural --json
    """
    from gputwin.core.errors import UserError
    from gputwin.studies.reproduce.dlrm2025_forecast import LEADS, RESOURCES, TARGETS, reproduce, worst_gap

    if unknown := set(target or ()) - set(TARGETS):
        raise UserError(f"unknown target '{min(unknown)}'; known: {', '.join(TARGETS)}")
    with progress(quiet or json) as step:
        result = reproduce(trace, neural=neural, targets=target or TARGETS, progress=step)

    def render() -> None:
        if result.arrivals.height:
            rows = []
            for method in result.arrivals["method"].unique(maintain_order=True):
                at = {r["resource"]: r for r in result.arrivals.filter(method=method).to_dicts()}
                rows.append([method, "ours", *(f"{at[r]['ours']:.2f}" for r in RESOURCES)])
                if at[RESOURCES[0]]["published"] is not None:
                    rows.append(["", "reference", *(f"{at[r]['published']:.2f}" for r in RESOURCES)])
            table("Arrivals per 5 min, one step ahead, last 20 %: RMSE over mean", ["method", "", *RESOURCES], rows)
            for method in ("auto", "ensemble-stack"):
                gap, more = (worst_gap(result.arrivals, method, singles=s) for s in (True, False))
                say(
                    f"{method}: at worst {percent(gap, 1, signed=True)} from the best single reference, "
                    f"{percent(more, 1, signed=True)} with its ensemble"
                )
            _coverage(result.arrivals.filter(method="auto")["coverage"].to_list())
        if result.in_force.height:
            rows = []
            for lead, span in LEADS.items():
                for model in result.in_force["model"].unique(maintain_order=True):
                    at = {r["series"]: r for r in result.in_force.filter(model=model, lead=lead).to_dicts()}
                    rows.append([span, model, *(f"{at[r]['ratio']:.3f}" for r in RESOURCES)])
            table("In force, last 20 %: RMSE over the last value's", ["ahead", "model", *RESOURCES], rows)
            for lead, span in LEADS.items():
                _coverage(result.in_force.filter(model="auto", lead=lead)["coverage"].to_list(), f" {span} ahead")
        rows = [[c["target"], c["series"], LEADS[c["lead"]], c["model"], c["best"]] for c in result.chosen.to_dicts()]
        table("What auto took", ["target", "series", "ahead", "model", "best on the past"], rows)
        say(f"CPU of the backtests: {sum(result.cpu_seconds.values()):.0f} s")

    emit(result.to_json(), json, render)


def _coverage(shares: list[float], when: str = "") -> None:
    say(f"80 % intervals of auto{when} cover {percent(min(shares))} to {percent(max(shares))}")
