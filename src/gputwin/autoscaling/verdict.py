"""What a comparison of scaling rules says: sentences, and plain data for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gputwin.core.units import format_duration, percent, short_duration

if TYPE_CHECKING:
    from gputwin.autoscaling.compare import Comparison
    from gputwin.autoscaling.score import Score


_SAME = 0.0005
"""Costs that differ by less than this share read the same."""


def verdicts(c: Comparison) -> tuple[str, ...]:
    """Return the sentences below the table."""
    from gputwin.autoscaling.compare import FORESIGHT

    said = []
    names = [r.rule for r in c.rows if r.rule != FORESIGHT]
    best = min(names, key=lambda n: c.row(n).shown_on.cost.total)
    oracle = c.row(FORESIGHT).shown_on
    lowest = c.row(best).shown_on
    alike = [n for n in names if c.row(n).shown_on.cost.total <= (1 + _SAME) * lowest.cost.total]
    which = (
        f"The cheapest rule is {best}"
        if len(alike) == 1
        else f"The cheapest rules are {', '.join(alike[:-1])} and {alike[-1]}"
    )
    said.append(
        f"{which}: {lowest.cost.total:,.2f} ({cost_unit(c)}), with "
        f"{lowest.violation_minutes:,} of {lowest.active_minutes:,} minutes over the target. That is "
        f"{_against(lowest.cost.total, oracle.cost.total)} {_plan_words(c, lowest)}; no plan can cost less than "
        f"{c.bound.total:,.2f}."
    )
    if "hybrid" in names and "hpa" in names:
        ours, theirs = c.row("hybrid").shown_on, c.row("hpa").shown_on
        cost = f"Hybrid costs {_against(ours.cost.total, theirs.cost.total)} HPA"
        said.append(f"{cost}, and {_minutes_against(ours.violation_minutes, theirs.violation_minutes)}.")
    said.append(
        f"Settings were chosen on the first {short_duration(c.split_seconds)} ({c.requests[0]:,} requests, {c.tried} runs) "
        f"and are shown on the remaining {format_duration(c.shown.span)} ({c.requests[1]:,} requests)."
    )
    said.append(_paid_over(c))
    said.append(f"The forecast is {c.outlook.model}, in bins of {short_duration(c.outlook.bin_seconds)}.")
    return tuple(said)


def _plan_words(c: Comparison, lowest: Score) -> str:
    """Return the plan in hindsight with its cost; where a rule is cheaper, also what the plan is the best at."""
    from gputwin.autoscaling.compare import FORESIGHT

    plan, budget = c.row(FORESIGHT).shown_on, c.options.violation_budget
    if plan.cost.total <= (1 + _SAME) * lowest.cost.total:
        return f"the best plan in hindsight ({plan.cost.total:,.2f})"
    kept = plan.violation_minutes <= budget * max(plan.active_minutes, 1)
    by = f"the cheapest with at most {percent(budget, 1)} of minutes" if kept else "the one with the fewest minutes"
    return f"the plan in hindsight ({by} over the target: {plan.cost.total:,.2f}, {plan.violation_minutes:,} minutes)"


def _paid_over(c: Comparison) -> str:
    """Return over what time replicas are paid for, with which compute can be worked out from mean replicas."""
    times = [r.shown_on.paid_seconds for r in c.rows]
    shortest, longest = short_duration(min(times)), short_duration(max(times))
    until = longest if shortest == longest else f"{shortest} to {longest}, depending on the rule"
    return (
        f"Replicas are paid for until the last request is done, in whole periods of {short_duration(c.shown.period)}: "
        f"{until}. Compute is mean replicas × this time × price."
    )


def cost_unit(c: Comparison) -> str:
    """Return what a cost is counted in: the price of a replica."""
    return f"a replica costs {c.options.price_per_hour:g} an hour"


def _minutes_against(hybrid: int, hpa: int) -> str:
    """Return in how many minutes each misses the target."""
    if hybrid == hpa:
        minutes = "minute" if hpa == 1 else "minutes"
        return f"both violate the SLA in {hpa:,} {minutes}" if hpa else "neither violates the SLA"
    return f"violates the SLA in {hybrid:,} {'minute' if hybrid == 1 else 'minutes'} against {hpa:,}"


def _against(ours: float, theirs: float) -> str:
    if theirs <= 0:
        return "more than"
    if abs(ours / theirs - 1) < _SAME:
        return "as much as"
    return f"{percent(abs(ours / theirs - 1), 1)} {'less than' if ours < theirs else 'more than'}"


def to_json(c: Comparison) -> dict[str, Any]:
    """Return the comparison as plain data."""
    from gputwin.autoscaling.compare import plain_score

    return {
        "requests_first_part": c.requests[0],
        "requests_shown": c.requests[1],
        "first_part_seconds": c.split_seconds,
        "shown_seconds": c.shown.span,
        "target_seconds": c.target_seconds,
        "response": "first token" if c.is_first_token else "whole latency",
        "period_seconds": c.shown.period,
        "boot_seconds": c.shown.boot_seconds,
        "price_per_hour": c.options.price_per_hour,
        "penalty_per_second": c.options.penalty_rate,
        "policies": [
            {
                "policy": r.rule,
                "setting": r.setting,
                "parameters": r.parameters,
                **plain_score(r.shown_on),
                "first_part": plain_score(r.chosen_on),
            }
            for r in c.rows
        ],
        "foresight_bound": {"cost": c.bound.total, "compute_cost": c.bound.compute, "sla_penalty": c.bound.penalty},
        "forecast_model": c.outlook.model,
        "verdicts": list(verdicts(c)),
        "notes": list(c.notes),
    }
