"""Requests to model-serving systems in a terminal: rate, tokens, clients, time to serve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gputwin.cli.console import say, table
from gputwin.core.units import format_count, format_duration, percent

if TYPE_CHECKING:
    from gputwin.traces.dataset import Trace


def serving_of(trace: Trace) -> dict[str, Any] | None:
    """Return rate, tokens, clients and time to serve as plain data; None for a trace without requests or client rates."""
    from gputwin.analysis.requests import client_rates, tokens, totals

    found: dict[str, Any] = {}
    if trace.meta.tables.get("requests"):
        frame = trace.requests
        found |= next(iter(totals(frame).to_dicts()), {})
        found["tokens_per_request"] = tokens(frame).to_dicts()
        served = frame["duration_seconds"].drop_nulls()
        if served.len():
            quantiles = {name: served.quantile(q, "linear") for name, q in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))}
            found["duration_seconds"] = {"count": served.len(), "mean": served.mean(), **quantiles}
    elif trace.meta.tables.get("series"):
        rates = client_rates(trace.series)
        if rates.height:
            found |= {"clients": rates.height, "rate_per_s": float(rates["rate_per_s"].sum())}
    return found or None


def show_serving(found: dict[str, Any] | None) -> None:
    """Print requests in one table; nothing where there are none."""
    if not found:
        return
    rows = [
        [name, format_count(found[key])]
        for key, name in (("clients", "clients"), ("models", "models"), ("services", "services"))
        if found.get(key)
    ]
    rate, peak = found.get("rate_per_s"), found.get("peak_rate_per_s")
    if rate:
        rows.append(["requests per second", f"{rate:,.2f}" + (f", {peak:,.2f} in the fullest minute" if peak else "")])
    for r in found.get("tokens_per_request", ()):
        spread = f"mean {r['mean']:,.0f}, p50 {r['p50']:,.0f}, p99 {r['p99']:,.0f}"
        rows.append([f"{r['what'].replace('_', ' ')} per request", spread])
    if served := found.get("duration_seconds"):
        spread = ", ".join(f"{name} {format_duration(served[name])}" for name in ("mean", "p50", "p95", "p99"))
        rows.append(["time to serve", spread])
    if found.get("failed_share") is not None:
        rows.append(["failed", percent(found["failed_share"], 1)])
    if rows:
        table("Requests", ["what", "value"], rows)
    else:
        say("Requests without times, tokens or clients.")
