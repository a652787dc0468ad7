"""The first page: traces and runs, and how to add a trace; and the page of a task."""

from __future__ import annotations

from typing import Any

from gputwin.server.pages import blocks as b
from gputwin.server.service import ENDINGS, PACKED, Service
from gputwin.server.tasks import Task
from gputwin.traces.reader import READERS

_MOST_RUNS = 200


def home(service: Service) -> b.Page:
    """Return the page of all traces and runs."""
    space = service.workspace
    traces = [space.trace_record(id_) for id_ in space.trace_ids()]
    runs = space.runs()
    page = b.Page("/", "Traces and runs")
    page.lead = "What a cluster did, and what it would have done under other rules."
    if not traces:
        page.blocks.append(
            b.statement("Start with a trace: upload what your cluster logged, or generate one like a published trace.")
        )
    elif not runs:
        first = b.link("New run", b.address("/new", trace=traces[0]["id"]), primary=True)
        page.blocks += [
            b.statement("Now ask what if: run a trace on a cluster, under rules of your choice."),
            b.links(first),
        ]
    else:
        page.blocks.append(b.links(b.link("New run", "/new", primary=True)))
    if traces:
        page.blocks.append(_traces(traces))
    if runs:
        page.blocks.append(runs_table(runs[:_MOST_RUNS], "Runs", left=len(runs) - _MOST_RUNS))
    page.blocks.append({"kind": "two", "blocks": [_upload(service), _generate()]})
    return page


def _traces(traces: list[dict[str, Any]]) -> b.Block:
    rows = []
    for t in traces:
        size = ", ".join(
            f"{rows:,} {name if rows > 1 else name.removesuffix('s')}" for name, rows in t["tables"].items() if rows
        )
        dropped = f"{t['rows_dropped']:,}"
        rows.append(
            [
                b.link(t["title"], f"/traces/{t['id']}"),
                t["source"],
                size,
                dropped,
                str(t["findings"]),
                b.when(t["added"]),
            ]
        )
    columns = [b.column("trace"), b.column("from"), b.column("rows")]
    columns += [b.column("rows dropped", "number"), b.column("findings", "number"), b.column("added (UTC)", "number")]
    return b.table("Traces", columns, rows)


def runs_table(runs: list[dict[str, Any]], title: str, left: int = 0, *, choose: bool = True) -> b.Block:
    """Return runs as a table, from which some can be chosen to compare."""
    # What a run comes to stands first: a phone shows no more than that.
    numbers = [b.column(name, "number") for name in ("mean wait", "p95 wait", "GPUs allocated")]
    columns = [b.column("run"), *numbers, b.column("trace"), b.column("cluster")]
    columns += [b.column(name, "number") for name in ("jobs", "made (UTC)")]
    rows = [
        [
            b.link(r["rules"], f"/runs/{r['id']}"),
            b.duration(r["mean_wait_seconds"]),
            b.duration(r["p95_wait_seconds"]),
            b.percent(r["gpu_allocation"]),
            b.link(r["trace"], f"/traces/{r['trace']}"),
            r["cluster"],
            f"{r['jobs']:,}",
            b.when(r["made"]),
        ]
        for r in runs
    ]
    chosen = {"href": "/compare?runs=", "ids": [r["id"] for r in runs], "text": "Compare the chosen runs"}
    note = f"{left:,} more runs are not listed." if left > 0 else ""
    return b.table(title, columns, rows, choose=chosen if choose else None, note=note, empty="No runs yet.")


def _upload(service: Service) -> b.Block:
    formats = [("", "find out"), *((name, name) for name in READERS.names())]
    kinds = ",".join((*ENDINGS, *PACKED))
    most = service.settings.limits.upload_bytes >> 20
    fields = [
        b.input_field(
            "files",
            "Files",
            "file",
            multiple=True,
            required=True,
            accept=kinds,
            help=f"At most {most:,} MiB.",
            wide=True,
        ),
        b.select("format", "Format", formats),
        b.input_field("name", "Name", placeholder="from the file"),
        b.input_field(
            "lenient",
            "Accept cells that do not parse",
            "checkbox",
            value=False,
            help="They become unknown, and the quality report counts them.",
        ),
    ]
    own = [
        b.input_field(
            "map",
            "What columns mean",
            placeholder="job_id=id,tenant=team,submit=at,duration=took,gpus=gpus",
            wide=True,
            help="For a table of your own.",
        ),
        b.input_field("guess", "Guess what columns mean", "checkbox", value=False),
        b.input_field("zone", "Time zone", placeholder="UTC"),
    ]
    groups = [b.group(fields), b.group(own, "A table of your own", closed=True, text="Say what its columns mean")]
    return b.form("upload", "Upload a trace", "/api/traces", "Upload", groups, "upload")


def _generate() -> b.Block:
    known = [
        ("pai2020", "Alibaba PAI 2020: training and inference, shared GPUs"),
        ("openb2023", "Alibaba openb 2023: pods on 1,500 nodes"),
        ("dlrm2025", "Alibaba DLRM 2025: disaggregated recommendation"),
        ("philly", "Microsoft Philly: training jobs"),
    ]
    fields = [
        b.select("name", "Like", known, "pai2020", wide=True),
        b.input_field("jobs", "Jobs", "number", 10000, min=1, max=2_000_000, step=1),
        b.input_field("seed", "Seed", "number", 0, min=0, step=1),
    ]
    return b.form("generate", "Generate a trace", "/api/traces/generate", "Generate", [b.group(fields)])


def task_page(task: Task) -> b.Page:
    """Return the page of work under way."""
    page = b.Page(f"/tasks/{task.id}", task.work.title, crumbs=[b.link("Traces and runs", "/")])
    page.blocks.append(b.shown(task))
    return page
