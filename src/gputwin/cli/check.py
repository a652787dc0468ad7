"""`gputwin check`: does this trace fit this cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gputwin.cli.console import Format, Json, Quiet, emit, progress
from gputwin.cli.options import ClusterOption, TraceArgument
from gputwin.cli.show import check_json, show_check

if TYPE_CHECKING:
    import polars as pl

    from gputwin.simulation.load import LoadCheck


def run(
    trace: TraceArgument,
    cluster: ClusterOption = None,
    format: Format = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare offered load with capacity, over time and per GPU model, and list tasks that can never fit.

    Examples:

        gputwin check "synthetic:pai2020?jobs=100000" --cluster pai2020

        gputwin check dlrm --cluster homogeneous:200x8
    """
    from gputwin.simulation.cluster import cluster_for
    from gputwin.simulation.load import check_load
    from gputwin.traces.locate import open_trace

    with progress(quiet or json) as step:
        opened = open_trace(trace, format, step)
        target = cluster_for(opened, cluster)
        step("comparing load with capacity")
        result = check_load(opened, target)

    emit(check_json(target, result), json, lambda: show_check(target, result), lambda: _frame(result))


def _frame(check: LoadCheck) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(check.to_json()["loads"])
