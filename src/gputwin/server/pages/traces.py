"""Pages of one trace: what it shows, its forecast, its capacity plan, theory, and scaling rules."""

from __future__ import annotations

from typing import Any

from gputwin.server.answers import settled
from gputwin.server.pages import blocks as b
from gputwin.server.pages.home import runs_table
from gputwin.server.requests import ForecastRequest, PlanRequest
from gputwin.server.service import Service
from gputwin.simulation.policy import BACKFILLS, ORDERINGS, PLACEMENTS

_SOON = 0.3
CLUSTERS = ("pai2020", "openb2023", "homogeneous:10x8", "homogeneous:100x8")


def _page(service: Service, id_: str, view: str, title: str = "") -> b.Page:
    record = service.workspace.trace_record(id_)
    base = f"/traces/{id_}"
    page = b.Page(f"{base}/{view}" if view else base, title or record["title"], crumbs=[b.link("Traces and runs", "/")])
    tabs = [("", "What it shows"), ("forecast", "Forecast")]
    tabs += (
        [("scaling", "Scaling rules")]
        if record["is_serving"]
        else [("plan", "Capacity plan"), ("queueing", "Queueing theory")]
    )
    page.tabs = [b.link(text, f"{base}/{name}" if name else base) for name, text in tabs]
    if title:
        page.crumbs.append(b.link(record["title"], base))
    return page


async def trace(service: Service, id_: str) -> b.Page:
    """Return what a trace shows, and its runs."""
    page = _page(service, id_, "")
    record = service.workspace.trace_record(id_)
    page.lead = f"{record['source']}: {record['rows_kept']:,} rows kept, {record['rows_dropped']:,} dropped"
    page.lead += f", {record['findings']} finding{'s' * (record['findings'] != 1)}."
    buttons = [] if record["is_serving"] else [b.link("New run", b.address("/new", trace=id_), primary=True)]
    page.blocks.append(
        b.links(
            *buttons,
            b.link("Download", f"/api/traces/{id_}/download", download=True),
            b.remove("Remove", f"/api/traces/{id_}", "Remove this trace? Its runs stay."),
        )
    )
    runs = [r for r in service.workspace.runs() if r["trace"] == id_]
    page.blocks.append(b.shown(await settled(lambda: service.trace_document(id_), _SOON)))
    if runs:
        page.blocks.append(runs_table(runs, "Runs of this trace"))
    return page


async def forecast(service: Service, id_: str, request: ForecastRequest | None) -> b.Page:
    """Return a form for a forecast, and the forecast where one is asked for."""
    page = _page(service, id_, "forecast", "Forecast")
    asked = request or ForecastRequest()
    is_serving = service.workspace.trace_record(id_)["is_serving"]
    targets = [
        ("arrivals", "arrivals: what new jobs ask for"),
        ("in-force", "in force: what running and waiting jobs ask for"),
    ]
    if is_serving:
        targets = [("requests", "requests")]
    widths = [(60, "1 minute"), (300, "5 minutes"), (900, "15 minutes"), (3600, "1 hour"), (86400, "1 day")]
    ahead = [(1800, "30 minutes"), (3600, "1 hour"), (6 * 3600, "6 hours"), (86400, "1 day"), (7 * 86400, "1 week")]
    fields = [
        b.select("target", "Demand", targets, targets[0][0] if request is None else asked.target),
        b.select("horizon_seconds", "How far ahead", [(str(s), t) for s, t in ahead], _plain(asked.horizon_seconds)),
        b.select("bin_seconds", "Width of a bin", [(str(s), t) for s, t in widths], _plain(asked.bin_seconds)),
    ]
    page.blocks.append(b.form("forecast", "", page.path, "Forecast", [b.group(fields)], "get"))
    if request is not None:
        page.blocks.append(b.shown(await settled(lambda: service.forecast_document(id_, request), _SOON)))
    return page


async def plan(service: Service, id_: str, request: PlanRequest | None) -> b.Page:
    """Return sliders for a target, and the plan where one is asked for."""
    page = _page(service, id_, "plan", "Capacity plan")
    asked = request or PlanRequest()
    measures = [
        ("mean_wait", "mean wait"),
        ("p50_wait", "median wait"),
        ("p95_wait", "95th percentile of waits"),
        ("p99_wait", "99th percentile of waits"),
    ]
    fields = [
        b.select("measure", "Keep the", measures, asked.measure),
        b.input_field("minutes", "under", "range", _plain(asked.seconds / 60), min=1, max=240, step=1, unit=" min"),
        b.input_field("growth", "Demand, times the trace's", "range", _plain(asked.growth), min=0.5, max=3, step=0.1),
        b.input_field("confidence", "Confidence", "range", _plain(asked.confidence), min=0.5, max=0.99, step=0.01),
        cluster_field(service, id_, asked.cluster or ""),
    ]
    rules = [
        b.select("order", "Who goes next", [(n, n) for n in ORDERINGS.names()], asked.order),
        b.select("backfill", "Who may overtake", [(n, n) for n in BACKFILLS.names()], asked.backfill),
        b.select("placement", "Where it goes", [(n, n) for n in PLACEMENTS.names()], asked.placement),
    ]
    groups = [b.group(fields), b.group(rules, "Rules")]
    page.blocks.append(b.form("plan", "", page.path, "Plan", groups, "get"))
    if request is not None:
        page.blocks.append(b.shown(await settled(lambda: service.plan_document(id_, request), _SOON)))
    return page


def cluster_field(service: Service, id_: str, value: str) -> b.Block:
    """Return the field for a cluster; a trace without nodes needs one."""
    has_nodes = service.workspace.trace_record(id_)["tables"].get("nodes", 0) > 0
    help_ = "The trace's own nodes unless given." if has_nodes else "The trace names no nodes."
    return b.input_field(
        "cluster",
        "Cluster",
        value=value,
        help=f"{help_} pai2020, openb2023, or homogeneous:NODESxGPUS.",
        suggest=list(CLUSTERS),
        required=not has_nodes,
        placeholder="homogeneous:10x8",
    )


async def queueing(service: Service, id_: str, cluster: str | None) -> b.Page:
    """Return theory, simulation and trace together."""
    page = _page(service, id_, "queueing", "Queueing theory")
    page.blocks.append(
        b.form("queueing", "", page.path, "Compare", [b.group([cluster_field(service, id_, cluster or "")])], "get")
    )
    if cluster is not None:
        page.blocks.append(b.shown(await settled(lambda: service.queueing_document(id_, cluster), _SOON)))
    return page


async def scaling(service: Service, id_: str, load: float | None) -> b.Page:
    """Return scaling rules side by side on a trace of requests, with a timeline of what each decided."""
    page = _page(service, id_, "scaling", "Scaling rules")
    field = b.input_field("load", "Load, times the trace's", "number", _plain(load or 1.0), min=0.001, max=1000)
    page.blocks.append(b.form("scaling", "", page.path, "Compare rules", [b.group([field])], "get"))
    if load is not None:
        page.blocks.append(b.shown(await settled(lambda: service.autoscale_document(id_, load), _SOON)))
    return page


def _plain(value: float) -> Any:
    return f"{value:g}"
