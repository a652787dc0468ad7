"""What a run comes to, in words: how long jobs wait, what for, and whether the rules leave GPUs idle meanwhile."""

from __future__ import annotations

from typing import Any, NamedTuple

import polars as pl

from gputwin.analysis.tenants import UNKNOWN
from gputwin.core.units import MINUTE, format_duration, percent
from gputwin.simulation.cause_words import cause_words, has_rounds
from gputwin.simulation.policy import FAIRNESS
from gputwin.simulation.result import SimulationResult
from gputwin.simulation.scenario_parts import NO_RULE

SHORT_WAIT, LONG_WAIT = MINUTE, 10 * MINUTE
"""s; a 95th percentile below the first is good news, one above the second is not."""
IDLE_SHARE = 0.5
"""A strict queue that leaves at least so many of the GPUs idle while jobs wait is worth a warning."""


class RunVerdict(NamedTuple):
    """The sentence, and whether it is good news (True), bad news (False) or neither."""

    text: str
    is_good: bool | None = None


def run_verdict(result: SimulationResult) -> RunVerdict:
    """Return how long jobs wait and what most of it is for, and what else must be known of the run."""
    wait = result.summary["wait_seconds"]
    if not wait:
        return RunVerdict("No job started.", False)
    more = [text for text in (idle_while_waiting(result), _left(result)) if text]
    is_good: bool | None = True
    if wait["mean"] == 0:
        text = "No job waits."
    elif wait["p95"] <= SHORT_WAIT:
        soon = f"within {format_duration(wait['p95'])}" if wait["p95"] > 0 else "at once"
        text = f"Jobs hardly wait: {format_duration(wait['mean'])} on average, 95 % start {soon}."
    else:
        text = f"Jobs wait {format_duration(wait['mean'])} on average, one in twenty longer than "
        text = f"{text}{format_duration(wait['p95'])}{_cause(result)}."
        is_good = False if wait["p95"] >= LONG_WAIT else None
    return RunVerdict(" ".join([text, *more]), False if more else is_good)


def rules_words(result: SimulationResult) -> str:
    """Return the rules of the run: "order fifo, backfill greedy, placement first-fit"."""
    rules = result.manifest["scheduler"]
    if planner := (result.manifest.get("planner") or {}).get("planner"):
        return f"planner {planner}, placement {rules['placement']}"
    scenario = result.manifest.get("scenario", {})
    if elastic := (scenario.get("elasticity") or {}).get("policy"):
        return f"sizes by {elastic}, placement {rules['placement']}"
    said = f"order {rules['order']}, backfill {rules['backfill']}, placement {rules['placement']}"
    if preemption := scenario.get("preemption"):
        said += f", preemption {preemption}"
    if scenario.get("sharing", "fraction") != "fraction":
        said += f", sharing {scenario['sharing']}"
    fairness = scenario.get("fairness")
    return f"{said}, fairness {fairness['policy']}" if fairness and fairness["policy"] != NO_RULE else said


def shares_words(shares: dict[str, Any] | None, who: str = "tenant") -> str:
    """Return how far tenants were from their fair shares, in words; "" where the run has fewer than two tenants.

    `who`: what they are called, as tenant or user.
    """
    if shares is None:
        return ""
    error, above, below = shares["share_error"], shares["most_above"], shares["most_below"]
    said = (
        f"Fair shares over time: {percent(error['mean'], 1)} of the GPUs held were beyond their {who}s' fair shares on "
        f"average, at most {percent(error['max'], 1)}; Jain's index of GPUs held per GPU due {shares['jain']['mean']:.3f}"
    )
    if above["gpus"] < 0.05:
        return f"{said}."
    most, least = (f"unknown {who}s" if t["tenant"] == UNKNOWN else t["tenant"] for t in (above, below))
    return f"{said}. Most above its share: {most} ({above['gpus']:+,.1f} GPUs); most below: {least} ({below['gpus']:+,.1f})."


def idle_while_waiting(result: SimulationResult) -> str:
    """Return that a strict queue leaves half of the GPUs or more idle while jobs wait; "" where it does not."""
    if result.manifest["scheduler"]["backfill"] != "strict" or "gpu_allocation" not in result.series.columns:
        return ""
    waiting = result.series.filter(pl.col("waiting_jobs") >= 1)["gpu_allocation"]
    idle = 1 - float(waiting.mean() or 0.0) if waiting.len() else 0.0  # type: ignore[arg-type]
    behind = (result.summary["wait_causes_seconds"] or {}).get("behind_other_job", 0.0)
    if idle < IDLE_SHARE or not behind:
        return ""
    return (
        f"While jobs wait, {percent(idle)} of the GPUs are idle: in strict order one job that does not fit holds up all "
        "behind it; try --backfill greedy."
    )


def _cause(result: SimulationResult) -> str:
    causes = result.summary["wait_causes_seconds"] or {}
    total = sum(causes.values())
    if total <= 0:
        return ""
    name = max(causes, key=causes.__getitem__)
    return f"; {percent(causes[name] / total)} of the waiting is {cause_words(name, has_rounds(result))}"


def _left(result: SimulationResult) -> str:
    outcomes = result.summary["outcomes"]
    never = outcomes.get("never_fits", 0)
    if not never:
        return ""
    under = " under its quotas" if _has_quotas(result) else ""
    return f"{never:,} of {result.summary['jobs']:,} jobs can never run on this cluster{under}."


def _has_quotas(result: SimulationResult) -> bool:
    fairness = result.scenario.fairness if "scenario" in result.manifest else None
    return fairness is not None and (fairness.policy.name == "quota" or FAIRNESS.get(fairness.policy.name).queues)
