"""Placement rules: what waits under them, and whether it is the rule that makes it wait."""

from __future__ import annotations

from collections.abc import Sequence

import narwhals as nw
import polars as pl

from gputwin.analysis.dimensions import BY_NAME, Dimension, labelled
from gputwin.analysis.effects import Effect, rule_effects, rule_means
from gputwin.analysis.frames import Frame, aggregate
from gputwin.analysis.tasks import NO_LIMIT, TaskFacts
from gputwin.analysis.topic import Remark, Topic
from gputwin.analysis.words import duration, share, size_class

RULES = ("max_per_node", "gpu_constraint", "gang_size")
_OWNERS = ("application", "user", "tenant")
_FEWEST_TASKS = 30
_NOTES = (
    "The effect of a rule is the difference of mean waits between tasks under it and tasks under the reference, within "
    "strata: of the same role, then of the same role and application (user, tenant). Strata are weighted by n₁n₀/(n₁+n₀), "
    "which makes it the coefficient of a least-squares regression with one fixed effect per stratum.",
    "Intervals of effects are 95 % cluster bootstrap intervals: whole applications (users, tenants) are drawn with "
    "replacement, 400 times; none is given where fewer than five know both levels.",
)


def placement(frame: Frame, facts: TaskFacts, dimensions: Sequence[Dimension], seed: int = 0) -> Topic | None:
    """Return waits and runtimes by placement rule and the effect of each; None where there is no rule to compare."""
    if not facts.knows("wait"):
        return None
    owner = next((name for name in _OWNERS if facts.knows(name)), None)
    has_roles = _levels(frame, "role") > 1
    controls: list[list[str]] = [[]]
    controls += [["role"]] if has_roles else []
    controls += [["role", owner] if has_roles else [owner]] if owner else []
    means, by_role, effects = [], [], []
    for name in RULES:
        dimension = BY_NAME[name]
        if dimension not in dimensions:
            continue
        found = rule_means(frame, dimension.column)
        if found.height < 2:
            continue
        means.append(labelled(found, dimension))
        if has_roles:
            by_role.append(labelled(rule_means(frame, dimension.column, ["role"]), dimension))
        reference = _reference(found, dimension.column)
        effects += [
            effect._replace(rule=name, level=dimension.label(effect.level), reference=dimension.label(effect.reference))
            for effect in rule_effects(frame, dimension.column, reference, controls, owner, seed=seed)
        ]
    if not means:
        return None
    tables = {"rules": pl.concat(means), "effects": pl.DataFrame(effects, infer_schema_length=None)}
    if by_role:
        tables["rules_by_role"] = pl.concat(by_role)
    return Topic("placement", "Placement rules", tables, _remarks(tables, effects, owner), _NOTES)


def _levels(frame: Frame, column: str) -> int:
    return int(aggregate(frame.filter(~nw.col("wait").is_null()), (), nw.col(column).n_unique().alias("n"))["n"][0])


def _reference(found: pl.DataFrame, column: str) -> int:
    """Return the level others are compared with: no rule where tasks are free of it, else the most frequent."""
    free = {"limit": NO_LIMIT, "is_constrained": 0, "gang_class": 0}[column]
    return free if free in found[column] else int(found.sort("count")[column][-1])


def _remarks(tables: dict[str, pl.DataFrame], effects: list[Effect], owner: str | None) -> tuple[Remark, ...]:
    remarks = []
    for name in tables["rules"]["dimension"].unique(maintain_order=True):
        rows = tables["rules"].filter((pl.col("dimension") == name) & (pl.col("count") >= _FEWEST_TASKS))
        if rows.height < 2:
            continue
        high, low = rows.sort("mean").row(-1, named=True), rows.sort("mean").row(0, named=True)
        title = BY_NAME[name].title
        remarks.append(
            Remark(
                f"By {title}: the mean wait is longest for {size_class(high['group'])} ({duration(high['mean'])}, median "
                f"{duration(high['p50'])}) and shortest for {size_class(low['group'])} ({duration(low['mean'])}, median "
                f"{duration(low['p50'])})." + _across_roles(tables, name, high["group"]),
                matters=0,
            )
        )
        mine = [e for e in effects if e.rule == name and e.outcome == "wait"]
        # Where the longest waits are those of the reference itself, the question is what the shortest gain.
        level = high["group"] if any(e.level == high["group"] for e in mine) else low["group"]
        remarks += _verdict([e for e in mine if e.level == level], title, owner)
    return tuple(remarks)


def _across_roles(tables: dict[str, pl.DataFrame], rule: str, group: str) -> str:
    """Return how the same rule looks in each role; empty where there is one role."""
    if "rules_by_role" not in tables:
        return ""
    rows = tables["rules_by_role"].filter(
        (pl.col("dimension") == rule) & (pl.col("group") == group) & (pl.col("count") >= _FEWEST_TASKS)
    )
    if rows.height < 2:
        return ""
    parts = ", ".join(
        f"{r['role']} {duration(r['mean'])}" for r in rows.sort("mean", descending=True).head(4).to_dicts()
    )
    return f" For {size_class(group)}, by role: {parts}."


def _verdict(effects: list[Effect], title: str, owner: str | None) -> list[Remark]:
    """Return whether a level makes tasks wait by itself, once role and owner are held fixed."""
    if len(effects) < 2 or effects[0].estimate is None:
        return []
    raw, *controlled = effects
    strongest = controlled[-1]
    firm = next((e for e in reversed(controlled) if e.low is not None), None)
    level, reference = size_class(raw.level), size_class(raw.reference)
    text = f"{title[:1].upper()}{title[1:]}, {level} against {reference}: waits are {_signed(raw.estimate)}"
    if firm is not None and firm.low is not None and firm.high is not None:
        compared = firm.tasks_compared / firm.tasks
        few = f"; {share(compared)} of these tasks have somebody to be compared with" if compared < 0.995 else ""
        text += (
            f" and {_signed(firm.estimate)} among tasks of the same {firm.control} (95 % interval {_range(firm)}{few})"
        )
    if firm is not strongest:
        few = f"only {strongest.clusters:,}" if strongest.clusters else "no"
        noun = f"{owner} has" if strongest.clusters == 1 else f"{owner}s have"
        text += f"; {few} {noun} tasks of both kinds in one role, too few to hold the {owner} fixed as well"
    if firm is None or firm.low is None or firm.high is None or firm.low <= 0 <= firm.high:
        return [Remark(f"{text}. That the rule itself causes delay is not shown.", True, 0)]
    if firm is not strongest:
        return [Remark(f"{text}. The rule and the {owner} cannot be separated.", True, 0)]
    return [Remark(f"{text}: by itself the rule goes with {'longer' if firm.low > 0 else 'shorter'} waits.")]


def _range(effect: Effect) -> str:
    return f"{_signed(effect.low)} to {_signed(effect.high)}"


def _signed(seconds: float | None) -> str:
    if not seconds:
        return "as long"
    return f"{duration(abs(seconds))} {'longer' if seconds > 0 else 'shorter'}"
