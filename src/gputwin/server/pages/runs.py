"""Pages of one run: what it comes to, the cluster over time, a node, jobs, one job; and runs side by side."""

from __future__ import annotations

from typing import Any

from gputwin.server.answers import settled
from gputwin.server.pages import blocks as b
from gputwin.server.pages.home import runs_table
from gputwin.server.service import Service
from gputwin.server.tasks import State
from gputwin.server.views import busiest_time, cluster_view, node_view
from gputwin.server.workspace import MissingError, check_id
from gputwin.simulation.cause_words import cause_words, has_rounds
from gputwin.simulation.engine.attribution.causes import CAUSE_NAMES
from gputwin.simulation.job_selection import JobQuery
from gputwin.simulation.result import OUTCOMES
from gputwin.simulation.waits_by_tenant import owner_of

_SOON = 0.3
_PAGE_ROWS = 50


def _page(service: Service, id_: str, view: str, title: str) -> b.Page:
    record = service.workspace.run_record(id_)
    base = f"/runs/{id_}"
    page = b.Page(f"{base}/{view}" if view else base, title, crumbs=[b.link("Traces and runs", "/")])
    if service.workspace.trace_of_run(id_):
        page.crumbs.append(b.link(record["trace"], f"/traces/{record['trace']}"))
    tabs = [("", "Summary"), ("cluster", "Cluster"), ("jobs", "Jobs")]
    page.tabs = [b.link(text, f"{base}/{name}" if name else base) for name, text in tabs]
    page.lead = f"{record['jobs']:,} jobs on {record['cluster']} ({record['nodes']:,} nodes, {record['gpus']:,} GPUs)"
    page.lead += f": {record['rules']}." if view else "."
    return page


async def run(service: Service, id_: str) -> b.Page:
    """Return what a run comes to; while it is being made, how far it is."""
    under_way = service.tasks.under_way(f"run-{check_id(id_, 'run')}")
    if under_way is not None and under_way.state != State.DONE:
        page = b.Page(f"/runs/{id_}", under_way.work.title, crumbs=[b.link("Traces and runs", "/")])
        page.blocks.append(b.shown(under_way))
        if under_way.state in (State.FAILED, State.CANCELLED):
            page.blocks.append(b.links(b.link("New run", "/new", primary=True)))
        return page
    page = _page(service, id_, "", f"Run: {service.workspace.run_record(id_)['rules']}")
    record = service.workspace.run_record(id_)
    others = [r for r in service.workspace.runs() if r["trace"] == record["trace"] and r["id"] != id_]
    page.blocks.append(b.shown(await settled(lambda: service.run_document(id_), _SOON)))
    page.blocks.append(
        b.links(
            b.link("Other rules", b.address("/new", trace=record["trace"]), primary=True),
            b.link("Download all (zip)", f"/api/runs/{id_}/download", download=True),
            b.link("Jobs (Parquet)", f"/api/runs/{id_}/tables/jobs", download=True),
            b.link("Jobs (CSV)", f"/api/runs/{id_}/tables/jobs?format=csv", download=True),
            b.remove("Remove", f"/api/runs/{id_}", "Remove this run?"),
        )
    )
    if others:
        columns = [
            b.column("compare with"),
            b.column("cluster"),
            b.column("mean wait", "number"),
            b.column("p95 wait", "number"),
        ]
        rows = [
            [
                b.link(r["rules"], b.address("/compare", runs=f"{id_},{r['id']}")),
                r["cluster"],
                b.duration(r["mean_wait_seconds"]),
                b.duration(r["p95_wait_seconds"]),
            ]
            for r in others[:20]
        ]
        page.blocks.append(b.table("Other runs of this trace", columns, rows))
    return page


def cluster(service: Service, id_: str, at: float | None) -> b.Page:
    """Return the cluster at a share of the run's span; None: when most GPUs are held."""
    page = _page(service, id_, "cluster", "Cluster over time")
    result = service.workspace.run(id_)
    view = cluster_view(result, 0.5 if at is None else at, busiest_time(result) if at is None else None)
    page.blocks.append({"kind": "tiles", "run": id_, "view": view})
    return page


def node(service: Service, id_: str, number: int) -> b.Page:
    """Return a node and its jobs."""
    result = service.workspace.run(id_)
    found = node_view(result, number)
    resources = found["resources"]
    page = _page(service, id_, f"nodes/{number}", _node_title(str(resources["node_id"])))
    page.crumbs.append(b.link("Cluster", f"/runs/{id_}/cluster"))
    asked = [
        ("GPUs", f"{resources['gpu_count']}", resources.get("gpu_model", "")),
        ("GPUs allocated", b.percent(found["gpu_allocation"]), "over the run"),
        ("Jobs", f"{found['total_jobs']:,}", "ran here"),
    ]
    if "cpu_milli" in resources:
        asked.append(("CPU cores", f"{resources['cpu_milli'] / 1000:g}", ""))
    if "memory_mib" in resources:
        asked.append(("Memory", f"{resources['memory_mib'] / 1024:,.0f} GiB", ""))
    page.blocks.append(b.cards(*asked))
    first = found["jobs"][0]["start_time"] if found["jobs"] else 0.0
    rows = [
        [
            b.link(j["job_id"], f"/runs/{id_}/jobs/{j['row']}"),
            j["tenant"] or "unknown",
            f"{j['gpus']:g}",
            str(j["instances"]),
            b.duration(j["start_time"] - first),
            b.duration(max(j["end_time"] - j["start_time"], 0.0)),
            j["why"].replace("_", " "),
        ]
        for j in found["jobs"]
    ]
    columns = [
        b.column("job", "code"),
        b.column(owner_of(result), "code"),
        b.column("GPUs", "number"),
        b.column("instances", "number"),
    ]
    columns += [b.column("began after", "number"), b.column("ran for", "number"), b.column("then")]
    left = found["total_jobs"] - len(rows)
    note = (
        f"The latest {len(rows):,}; {left:,} earlier ones are in the API."
        if left > 0
        else "Times count from the first job listed."
    )
    page.blocks.append(b.table("Jobs on this node", columns, rows, note=note, empty="No job ran here."))
    return page


def jobs(service: Service, id_: str, query: JobQuery) -> b.Page:
    """Return the jobs of a run, filtered, sorted, a page at a time; the address says which."""
    page = _page(service, id_, "jobs", "Jobs")
    total, found = service.workspace.jobs(id_, query)
    who = owner_of(service.workspace.run(id_))
    outcomes = [("", "any"), *((o, o.replace("_", " ")) for o in OUTCOMES)]
    rounds = has_rounds(service.workspace.run(id_))
    causes = [("", "any"), *((c, cause_words(c, rounds)) for c in CAUSE_NAMES)]
    fields = [
        b.input_field("text", "Id contains", "search", query.text),
        b.input_field("tenant", who.capitalize(), "text", query.tenant),
        b.select("outcome", "Outcome", outcomes, query.outcome),
        b.select("cause", "Waited most", causes, query.cause),
        b.input_field(
            "least_wait", "Waited at least (s)", "number", f"{query.least_wait:g}" if query.least_wait else "", min=0
        ),
    ]
    page.blocks.append(b.form("jobs", "", page.path, "Show", [b.group(fields)], "get", narrow=True))
    rows = [
        [
            b.link(j["job_id"], f"{page.path}/{j['row']}"),
            b.duration(j["wait_seconds"]),
            cause_words(j["main_cause"], rounds) if j["main_cause"] else "–",
            j["tenant"] or "unknown",
            j["outcome"].replace("_", " "),
            f"{j['gpus']:g}",
            str(j["instances"]),
            b.duration(j["duration_seconds"]),
            "–" if j["bounded_slowdown"] is None else f"{j['bounded_slowdown']:,.2f}",
        ]
        for j in found.to_dicts()
    ]
    page.blocks.append(b.table(f"{total:,} jobs", _columns(page.path, query, who), rows, empty="No job is like that."))
    last = min(query.offset + _PAGE_ROWS, total)
    page.blocks.append(
        {
            "kind": "pager",
            "text": f"{min(query.offset + 1, total):,} to {last:,} of {total:,}",
            "before": _address(page.path, query, offset=max(query.offset - _PAGE_ROWS, 0)) if query.offset else "",
            "after": _address(page.path, query, offset=last) if last < total else "",
        }
    )
    return page


def _columns(path: str, query: JobQuery, who: str) -> list[dict[str, Any]]:
    # The wait and its cause stand first: a phone shows no more than that.
    shown = (
        ("job", "code", "job_id"),
        ("wait", "number", "wait_seconds"),
        ("mostly", "text", ""),
        (who, "code", "tenant"),
        ("outcome", "text", ""),
        ("GPUs", "number", "gpus"),
        ("instances", "number", ""),
        ("runs for", "number", "duration_seconds"),
        ("slowdown", "number", "bounded_slowdown"),
    )
    made = []
    for name, kind, sort in shown:
        is_sorted = sort == query.sort
        down = not query.descending if is_sorted else sort not in ("job_id", "tenant")
        more: dict[str, Any] = {}
        if sort:
            more["href"] = _address(path, query, sort=sort, descending=down, offset=0)
        if is_sorted:
            more["sort"] = "descending" if query.descending else "ascending"
        made.append(b.column(name, kind, **more))
    return made


def _address(path: str, query: JobQuery, **changed: Any) -> str:
    values = {**vars(query), **changed}
    values["order"] = "" if values.pop("descending") else "up"
    values.pop("limit")
    values["least_wait"] = values["least_wait"] or ""
    values["offset"] = values["offset"] or ""
    return b.address(path, **values)


async def job(service: Service, id_: str, row: int) -> b.Page:
    """Return why one job waited."""
    result = service.workspace.run(id_)
    if not 0 <= row < result.jobs.height:
        raise MissingError(f"the run has no job in row {row}")
    name = str(result.jobs["job_id"][row])
    page = _page(service, id_, f"jobs/{row}", f"Job {name}")
    page.crumbs.append(b.link("Jobs", f"/runs/{id_}/jobs"))
    page.blocks.append(b.shown(await settled(lambda: service.explain_document(id_, name), 2.0)))
    page.blocks.append(b.links(b.link("Predicted start", f"/runs/{id_}/jobs/{row}/start")))
    return page


def _node_title(name: str) -> str:
    return name if name.lower().startswith("node") else f"Node {name}"


async def start(service: Service, id_: str, row: int) -> b.Page:
    """Return when one job was expected to start."""
    page = await job(service, id_, row)
    page.path, page.blocks = f"/runs/{id_}/jobs/{row}/start", []
    page.crumbs.append(b.link(page.title, f"/runs/{id_}/jobs/{row}"))
    name = str(service.workspace.run(id_).jobs["job_id"][row])
    page.blocks.append(b.shown(await settled(lambda: service.start_document(id_, name), _SOON)))
    return page


async def compare(service: Service, ids: list[str]) -> b.Page:
    """Return runs side by side; without runs, those that can be chosen."""
    page = b.Page("/compare", "Runs compared", crumbs=[b.link("Traces and runs", "/")])
    if len(ids) < 2:
        page.blocks.append(b.statement("Choose two runs or more of the same trace."))
        page.blocks.append(runs_table(service.workspace.runs(), "Runs"))
        return page
    records = [service.workspace.run_record(id_) for id_ in ids]
    page.lead = f"{len(ids)} runs; differences are to the first."
    page.blocks.append(b.shown(await settled(lambda: service.compare_document(ids), _SOON)))
    page.blocks.append(runs_table(records, "The runs", choose=False))
    return page
