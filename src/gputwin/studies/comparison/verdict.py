"""What a comparison says, in words: every number stands in its tables."""

from __future__ import annotations

import polars as pl

from gputwin.core.units import format_duration, percent
from gputwin.simulation.cause_words import cause_words, have_rounds
from gputwin.simulation.waits_by_tenant import owner_of
from gputwin.studies.comparison.compare import Comparison

_ALIKE = 0.02
"""Scenarios whose mean waits differ by less than this share of the baseline's are named together."""

_MOST_NAMED = 4


def recommendation(comparison: Comparison) -> str:
    """Return which scenario to choose and what it costs others, or that the choice does not matter."""
    means = comparison.means()
    base = means.row(0, named=True)
    if means.height < 2 or base["mean wait"] is None:
        return "Give two runs or more of the same jobs to compare."
    if (running := _running_most(comparison)) != comparison.labels:
        return _between(comparison, running)
    ranked = _ranked(comparison)
    best = choice(comparison)
    if ranked[0]["mean wait"] == ranked[-1]["mean wait"]:
        return (
            f"All scenarios let jobs wait alike, {format_duration(best['mean wait'])} on average: choose the simplest."
        )
    if str(best["scenario"]) == comparison.baseline:
        if best["mean wait"] > ranked[0]["mean wait"]:
            return (
                f"Stay with {best['scenario']}: its mean wait, {format_duration(best['mean wait'])}, is within "
                f"{percent(_ALIKE)} of the shortest, {format_duration(ranked[0]['mean wait'])} under "
                f"{ranked[0]['scenario']}."
            )
        return (
            f"Stay with {best['scenario']}: no other scenario has a shorter mean wait than its "
            f"{format_duration(best['mean wait'])}."
        )
    alike = [str(r["scenario"]) for r in _alike(comparison) if r["scenario"] != best["scenario"]]
    if not _is_sure(comparison, best):
        return (
            f"No set of rules is proven better than {comparison.baseline}: the shortest mean wait is "
            f"{format_duration(best['mean wait'])} under {best['scenario']}, {_against(comparison, best)}."
            + _doubt(comparison, best)
        )
    text = f"Choose {best['scenario']}: the mean wait is {format_duration(best['mean wait'])}, {_against(comparison, best)}."
    if alike:
        who = _listed(alike) if len(alike) <= _MOST_NAMED else f"{alike[0]}, {alike[1]} and {len(alike) - 2} others"
        text += f" {who} {'does' if len(alike) == 1 else 'do'} about as well"
        if alike == [str(ranked[0]["scenario"])]:
            return f"{text}{_why_not_shortest(ranked[0], best, ' and')}{_price(comparison, base, best)}"
        text += "."
    return text + _why_not_shortest(ranked[0], best) + _price(comparison, base, best)


def _running_most(comparison: Comparison) -> tuple[str, ...]:
    """Return the scenarios under which as many jobs run as under any."""
    not_run = comparison.not_run
    return tuple(label for label in comparison.labels if not_run[label] == min(not_run.values()))


def _between(comparison: Comparison, running: tuple[str, ...]) -> str:
    """Return what to choose of the scenarios under which most jobs run, and how many jobs do not under the others."""
    base, best = comparison.baseline, choice(comparison)
    if base not in running:
        text = f"Choose {best['scenario']}: more jobs run than under {base}."
    elif len(running) == 1:
        text = f"Stay with {base}: under no other scenario as many jobs run."
    else:
        text = recommendation(comparison.only(running))
    lost = [f"{n:,} under {label}" for label, n in comparison.not_run.items() if n]
    ids = comparison.runs[0].run_by_all
    over = "" if ids is None else f" Waits are compared over the {ids.height:,} jobs that run under all."
    return f"{text} Jobs that never run: {_listed(lost)}.{over}"


def choice(comparison: Comparison) -> dict[str, float]:
    """Return the row of the scenario to choose: of those that do about as well as the shortest mean wait, the one that
    stops the fewest jobs, and of those the one given first, which its author thinks the simplest. The baseline, if it is
    one of them; none under which fewer jobs run than under another."""
    running = _running_most(comparison)
    if comparison.baseline not in running:
        return next(r for r in _ranked(comparison) if str(r["scenario"]) in running)
    if running != comparison.labels:
        comparison = comparison.only(running)
    ranked = _ranked(comparison)
    if str(ranked[0]["scenario"]) == comparison.baseline or not _is_sure(comparison, ranked[0]):
        return ranked[0]
    order = {label: k for k, label in enumerate(comparison.labels)}
    alike = _alike(comparison)
    if stay := [r for r in alike if str(r["scenario"]) == comparison.baseline]:
        return stay[0]
    sure = [r for r in alike if _is_sure(comparison, r)]
    return min(sure, key=lambda r: (r["stops"] or 0.0, order[str(r["scenario"])]))


def _ranked(comparison: Comparison) -> list[dict[str, float]]:
    """Return the rows of all scenarios with a mean wait, the shortest first."""
    means = comparison.means().filter(pl.col("mean wait").is_not_null())
    return means.sort("mean wait", maintain_order=True).to_dicts()


def _alike(comparison: Comparison) -> list[dict[str, float]]:
    """Return the rows that do about as well as the shortest mean wait, in mean and 99th percentile, that one first."""
    base, ranked = comparison.means().row(0, named=True), _ranked(comparison)

    def is_near(row: dict[str, float], name: str) -> bool:
        return (row[name] or 0.0) - (ranked[0][name] or 0.0) <= _ALIKE * (base[name] or 0.0)

    return [r for r in ranked if is_near(r, "mean wait") and is_near(r, "p99 wait")]


def _why_not_shortest(shortest: dict[str, float], best: dict[str, float], after: str = "") -> str:
    """Return what speaks against the scenario with the shortest mean wait, where it is not the choice.

    `after`: the word that joins it to a sentence that begins with the scenario's name.
    """
    if shortest["scenario"] == best["scenario"]:
        return ""
    text = after or f" {shortest['scenario']}"
    text += f" has the shortest mean wait, {format_duration(shortest['mean wait'])}"
    if (shortest["stops"] or 0.0) > (best["stops"] or 0.0):
        return f"{text}, but stops jobs {shortest['stops']:,.0f} times."
    return f"{text}: too little shorter to change more for it."


def remarks(comparison: Comparison) -> tuple[str, ...]:
    """Return which differences may be chance, and what most waiting is for where it is longest."""
    rows = []
    gaps = [comparison.difference(label, "mean wait") for label in comparison.labels[1:]]
    unsure = [
        str(g["scenario"])
        for g in gaps
        if g["low"] is not None and g["high"] is not None and g["low"] <= 0 <= g["high"]
    ]
    if unsure:
        count = f"all {len(gaps)}" if len(unsure) == len(gaps) else f"{len(unsure)} of the {len(gaps)}"
        who = _listed(unsure) if len(unsure) <= _MOST_NAMED else f"{count} other scenarios"
        rows.append(
            f"Under {who} the mean wait differs from that under {comparison.baseline} by no more than chance "
            "explains (95 %)."
        )
    worst = max(comparison.means().to_dicts(), key=lambda r: r["mean wait"] or 0.0)
    causes = comparison.causes().filter(pl.col("scenario") == worst["scenario"]).sort("seconds", descending=True)
    if causes.height and causes["seconds"][0] > 0:
        total = float(causes["seconds"].sum())
        rounds = have_rounds(comparison.of(str(worst["scenario"])))
        rows.append(
            f"The mean wait is longest under {worst['scenario']}: {percent(causes['seconds'][0] / total)} of it is "
            f"{cause_words(causes['cause'][0], rounds)}."
        )
    return tuple(rows)


def _against(comparison: Comparison, best: dict[str, float]) -> str:
    gap = comparison.difference(str(best["scenario"]), "mean wait")
    base = gap["baseline"] or 0.0
    text = f"against {format_duration(base)} under {comparison.baseline}"
    if gap["difference"] is None:
        return text
    part = f"{percent(abs(gap['difference']) / base)} " if base and abs(gap["difference"]) <= base else ""
    text += f": {part}{'shorter' if gap['difference'] < 0 else 'longer'}"
    if gap["low"] is not None and gap["high"] is not None:
        text += f" (95 %: {_range(gap['low'], gap['high'])})"
    return text


def _is_sure(comparison: Comparison, best: dict[str, float]) -> bool:
    """Return whether the best scenario's mean wait is shorter than the baseline's beyond chance."""
    high = comparison.difference(str(best["scenario"]), "mean wait")["high"]
    return high is not None and high < 0


def _range(low: float, high: float) -> str:
    """Return a range of changes in words: "7 min 17 s to 22 min 50 s shorter"."""
    if low < 0 and high < 0:
        return f"{format_duration(-high)} to {_change(low)}"
    return (
        f"{format_duration(low)} to {_change(high)}" if low >= 0 and high >= 0 else f"{_change(low)} to {_change(high)}"
    )


def _change(seconds: float) -> str:
    """Return a change of the wait in words: "5 min 10 s shorter"."""
    return f"{format_duration(abs(seconds))} {'shorter' if seconds < 0 else 'longer'}"


def _doubt(comparison: Comparison, best: dict[str, float]) -> str:
    """Return that the gain may be chance, where its interval holds zero or there is none."""
    gap = comparison.difference(str(best["scenario"]), "mean wait")
    if gap["low"] is None or gap["high"] is None:
        return " One pair of runs does not show how much of that is chance."
    if gap["low"] <= 0 <= gap["high"]:
        runs = "With one replicate" if comparison.replicates == 1 else f"Over {comparison.replicates} replicates"
        return f" {runs} that may be chance: run more, or a longer trace."
    return ""


def _price(comparison: Comparison, base: dict[str, float], best: dict[str, float]) -> str:
    """Return what gets worse with the best scenario, or what was looked at where nothing does."""
    worse, looked = [], []
    for name, words in (("mean JCT", "mean completion time"), ("p99 wait", "p99 wait"), ("makespan", "makespan")):
        if base.get(name) and best.get(name) is not None:
            looked.append(words)
            if best[name] > 1.02 * base[name]:
                worse.append(f"the {words} rises from {format_duration(base[name])} to {format_duration(best[name])}")
    if base["fairness"] is not None and best["fairness"] is not None:
        looked.append("fairness")
        if best["fairness"] < base["fairness"] - 0.005:
            who = owner_of(comparison.runs[0].result)
            worse.append(f"fairness between {who}s falls from {base['fairness']:.3f} to {best['fairness']:.3f}")
    for name, unit in (("cost", ""), ("energy", " kWh")):
        if base[name] and best[name] is not None:
            looked.append(name)
            if best[name] > 1.02 * base[name]:
                worse.append(f"the {name} rises from {base[name]:,.0f}{unit} to {best[name]:,.0f}{unit}")
    if (best["stops"] or 0.0) > 1.02 * (base["stops"] or 0.0):
        worse.append(f"jobs are stopped {best['stops']:,.0f} times, against {base['stops'] or 0.0:,.0f}")
    if worse:
        return f" The price: {_listed(worse)}."
    return f" Nothing gets worse by more than 2 %: looked at {_listed([*looked, 'stopped jobs'])}."


def _listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
