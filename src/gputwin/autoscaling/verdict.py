"""What a comparison of scaling rules says: sentences, and plain data for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gputwin.autoscaling.score import preference
from gputwin.core.units import format_duration, percent, short_duration

if TYPE_CHECKING:
    from gputwin.autoscaling.compare import Comparison


_SAME = 0.0005
"""Costs that differ by less than this share read the same."""


def verdicts(c: Comparison) -> tuple[str, ...]:
    """Return the sentences below the table."""
    from gputwin.autoscaling.compare import FORESIGHT

    names = [r.rule for r in c.rows if r.rule != FORESIGHT]
    said = [_answer(c, names)]
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


def best_rule(c: Comparison) -> str:
    """Return the cheapest rule of those that keep the target; where none does, the one with the fewest minutes over it."""
    from gputwin.autoscaling.compare import FORESIGHT

    rows = [r for r in c.rows if r.rule != FORESIGHT]
    return min(rows, key=lambda r: preference(r.shown_on, c.options.violation_budget)).rule


def keeps_target(c: Comparison, rule: str) -> bool:
    """Return whether a rule is over the target in no more minutes than may be."""
    is_over, *_ = preference(c.row(rule).shown_on, c.options.violation_budget)
    return not is_over


def _answer(c: Comparison, names: list[str]) -> str:
    """Return which rule to take, how far it is from the best plan, and which is cheaper but keeps the target less."""
    from gputwin.autoscaling.compare import FORESIGHT

    best = best_rule(c)
    found, plan, budget = c.row(best).shown_on, c.row(FORESIGHT).shown_on, percent(c.options.violation_budget)
    cost = f"{found.cost.total:,.2f} ({cost_unit(c)})"
    over = f"{found.violation_minutes:,} of {found.active_minutes:,} minutes over"
    if keeps_target(c, best):
        kept = [n for n in names if keeps_target(c, n)]
        alike = [n for n in kept if c.row(n).shown_on.cost.total <= (1 + _SAME) * found.cost.total]
        who = (
            f"The cheapest rule that keeps the target is {best}"
            if len(alike) == 1
            else f"The cheapest rules that keep the target are {', '.join(alike[:-1])} and {alike[-1]}"
        )
        answer = f"{who}: {cost}, with {over} the target (at most {budget} may be)."
    else:
        answer = (
            f"No rule keeps the target: {best} comes closest, with {over} it (at most {budget} may be), for {cost}."
        )
    against = (
        f"That is {_against(found.cost.total, plan.cost.total)} the best plan in hindsight ({plan.cost.total:,.2f}, "
        f"{_minutes(plan.violation_minutes)} over it); no plan can cost less than {c.bound.total:,.2f}."
    )
    cheapest = min((c.row(n) for n in names), key=lambda r: r.shown_on.cost.total)
    if cheapest.shown_on.cost.total >= (1 - _SAME) * found.cost.total:
        return f"{answer} {against}"
    late = f"{cheapest.rule} ({cheapest.shown_on.cost.total:,.2f}, {_minutes(cheapest.shown_on.violation_minutes)})"
    return f"{answer} {against} Cheaper, but over the target for longer: {late}."


def _minutes(count: int) -> str:
    return f"{count:,} {'minute' if count == 1 else 'minutes'}"


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
        return f"both violate the SLA in {_minutes(hpa)}" if hpa else "neither violates the SLA"
    return f"violates the SLA in {_minutes(hybrid)} against {hpa:,}"


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
