"""Failure logs: when which node went down and came back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gputwin.core.errors import InputError
from gputwin.simulation.interruptions import Maintenance
from gputwin.traces.framefile import read_given_csv


def read_failure_log(path: Path, node_ids: Sequence[str]) -> tuple[Maintenance, ...]:
    """Return the windows of a CSV file with columns node, down_time, up_time, and drain_time where there was notice.

    `node` is a node's id, or its row in the cluster; times are s of the trace's clock; no up_time: it never comes back.
    """
    remedy = "give columns node, down_time, up_time, in s of the trace's clock"
    try:
        frame = read_given_csv(path, remedy=remedy, text=("node",))
        times = [
            name for name in ("drain_time", "down_time", "up_time") if name in frame.columns or name != "drain_time"
        ]
        frame = frame.select("node", pl.col(times).cast(pl.Float64))
    except pl.exceptions.PolarsError as error:
        raise InputError(f"not a failure log ({str(error).splitlines()[0]})", file=path, remedy=remedy) from None
    rows = {name: row for row, name in enumerate(node_ids)} | {str(row): row for row in range(len(node_ids))}
    windows = []
    for number, entry in enumerate(frame.iter_rows(named=True), start=2):
        node, down, up = rows.get(entry["node"] or ""), entry["down_time"], entry["up_time"]
        if node is None:
            problem = f"there is no node '{entry['node']}' in the cluster"
            raise InputError(problem, file=path, row=number, field="node", remedy="give a node's id or its row, from 0")
        if down is None or (up is not None and up <= down):
            problem = "a node must go down before it comes back"
            raise InputError(problem, file=path, row=number, field="up_time", remedy=remedy)
        drain = entry.get("drain_time")
        windows.append(Maintenance(node, math.inf if drain is None else drain, down, math.inf if up is None else up))
    return tuple(windows)
