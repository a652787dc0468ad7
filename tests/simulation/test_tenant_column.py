"""Who is a tenant: one column of the trace names them all, the same as in its analysis."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from gputwin.analysis.tenants import tenants
from gputwin.core.table import Table
from gputwin.report.sections.tenants import NO_TENANTS, run_tenants, tenant_tables
from gputwin.simulation.cluster import open_cluster
from gputwin.simulation.simulate import simulate
from gputwin.simulation.waits_by_tenant import TenantView, by_tenant
from gputwin.traces.dataset import Trace, TraceMeta


def trace_of(owners: list[tuple[str | None, str | None]]) -> Trace:
    """Return jobs of eight GPUs and 100 s, a second apart, of these (tenant, user)."""
    rows: list[dict[str, Any]] = [
        {"job_id": str(i), "tenant": tenant, "user": user, "gpu_count": 8, "gpu_milli": 1000}
        | {"submit_time": float(i), "start_time": 100.0 * i, "end_time": 100.0 * (i + 1)}
        for i, (tenant, user) in enumerate(owners)
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return Trace.from_frames({"tasks": frame}, TraceMeta("by hand"))


def view_of(trace: Trace) -> TenantView:
    return by_tenant(simulate(trace, open_cluster("homogeneous:1x8")))


def test_users_are_no_tenants_beside_named_ones() -> None:
    """Otherwise a run has other tenants, and fewer unknown jobs, than the analysis of its trace."""
    trace = trace_of([("vision", "ann"), ("llm", "ben"), (None, "ben"), (None, None)])
    found, analysis = view_of(trace), tenants(trace.tasks)
    assert analysis is not None
    assert found.who == "tenant"
    jobs = dict(found.tenants.select("tenant", "jobs").iter_rows())
    assert jobs == {"vision": 1, "llm": 1, "unknown": 2}
    assert jobs == dict(analysis.tables["tenants"].select("tenant", "jobs").iter_rows())


def test_where_no_tenant_is_named_users_are_told_apart_and_called_users() -> None:
    found = view_of(trace_of([(None, "ann"), (None, "ben"), (None, None)]))
    assert (found.who, sorted(found.tenants["tenant"])) == ("user", ["ann", "ben", "unknown"])
    parts = run_tenants(found)
    assert NO_TENANTS in [getattr(part, "text", "") for part in parts]
    tables = [part for part in parts if isinstance(part, Table)]
    assert [table.title for table in tables] == [
        "Users that others wait for most",
        "Who waits while whose jobs hold GPUs",
    ]
    assert "user" in tables[0].columns
    assert not any("tenant" in sentence for sentence in found.sentences())


@pytest.mark.parametrize("who", ["tenant", "user", "application"])
def test_tables_of_an_analysis_are_named_after_whom_they_list(who: str) -> None:
    a, b = ({"tenant": None, "user": None, "application": None} | {who: name} for name in "ab")
    rows = [
        {**owner, "job_id": str(i), "gpu_count": 1, "submit_time": 0.0, "start_time": float(i), "end_time": i + 9.0}
        for i, owner in enumerate((a, b))
    ]
    frame = pl.DataFrame(rows, schema_overrides={"tenant": pl.String, "user": pl.String, "application": pl.String})
    topic = tenants(Trace.from_frames({"tasks": frame}, TraceMeta("by hand")).tasks)
    assert topic is not None
    table, *_ = tenant_tables(topic.tables["tenants"], pl.DataFrame(), who=topic.title.removeprefix("Per "))
    assert who in table.columns
