"""Placement rules: waits under each, and whether the rule itself makes the difference."""

from __future__ import annotations

import polars as pl

from gputwin.analysis.dimensions import BY_NAME
from gputwin.analysis.topic import Topic
from gputwin.analysis.words import duration
from gputwin.core.units import percent, signed_duration
from gputwin.report import charts
from gputwin.report.axes import duration_unit
from gputwin.report.page import FigurePart, Findings, Kind, Part, Section, TablePart
from gputwin.report.report_input import ReportInput

_MOST_ROLES = 6


def placement(subject: ReportInput) -> Section | None:
    """Return the section on placement rules; None where the trace has none to compare."""
    topic = subject.analysis.topic("placement")
    if topic is None:
        return None
    parts: list[Part] = []
    for name in topic.tables["rules"]["dimension"].unique(maintain_order=True):
        parts += _rule(topic, name)
    parts.append(Findings(topic.remarks))
    return Section("placement", "Placement rules", tuple(parts), topic.notes)


def _rule(topic: Topic, name: str) -> list[Part]:
    title = BY_NAME[name].title
    rules = topic.tables["rules"].filter(pl.col("dimension") == name)
    by_role = topic.table("rules_by_role")
    shown, columns = rules.select("group", pl.col("mean").alias("all")), {"all": "all"}
    if by_role is not None:
        own = by_role.filter(pl.col("dimension") == name)
        largest = own.group_by("role").agg(pl.col("count").sum()).sort(["count", "role"], descending=[True, False])
        for role in largest["role"].head(_MOST_ROLES):
            part = own.filter(pl.col("role") == role).select("group", pl.col("mean").alias(f"role {role}"))
            shown = shown.join(part, on="group", how="left", maintain_order="left")
            columns[f"role {role}"] = f"role {role}"
    size, unit = duration_unit(pl.concat([shown[column].cast(pl.Float64) for column in columns]).drop_nulls())
    scaled = shown.with_columns(pl.col(list(columns)) / size)
    figure = charts.bars(scaled, "group", columns, f"mean wait, {unit}", title=title)
    top = rules.sort("mean").row(-1, named=True)
    caption = (
        f"The longest mean wait is at {top['group']}: {duration(top['mean'])}, with a median of {duration(top['p50'])}."
    )
    id_ = name.replace("_", "-")
    parts: list[Part] = [FigurePart(f"rule-{id_}", f"Mean wait by {title}", figure, caption, shown, half=True)]
    effects = topic.tables["effects"].filter((pl.col("rule") == name) & (pl.col("outcome") == "wait"))
    if effects["estimate"].null_count() < effects.height:
        figure = charts.forest(effects, f"mean wait against {effects['reference'][0]}")
        caption = (
            f"Difference of mean waits to {effects['reference'][0]}, as it stands and among tasks alike in what "
            "is held fixed; bars "
            "are 95 % intervals. A bar across zero shows no effect; a mark without a bar has too few tasks for one."
        )
        parts.append(FigurePart(f"effect-{id_}", f"Effect of {title} on waits", figure, caption, effects, half=True))
    return [*parts, _table(name, rules, effects)]


def _table(name: str, rules: pl.DataFrame, effects: pl.DataFrame) -> TablePart:
    controls = effects["control"].unique(maintain_order=True).to_list()
    found = {(r["level"], r["control"]): r for r in effects.to_dicts()}
    rows = [
        (
            r["group"],
            f"{r['count']:,}",
            *(duration(r[c]) for c in ("mean", "p50")),
            percent(r["waited_share"], 1),
            duration(r["runtime_mean"]),
            duration(r["runtime_p50"]),
            *(_effect(found.get((r["group"], control))) for control in controls),
        )
        for r in rules.to_dicts()
    ]
    names = ("tasks", "mean wait", "median wait", "waited", "mean runtime", "median runtime")
    kinds = {BY_NAME[name].title: Kind.TEXT} | dict.fromkeys(names, Kind.NUMBER)
    kinds |= {f"effect, {c} held fixed": Kind.TEXT for c in controls}
    return TablePart(f"By {BY_NAME[name].title}", kinds, tuple(rows))


def _effect(row: dict[str, float | None] | None) -> str:
    if row is None:
        return "reference"
    if row["estimate"] is None:
        return "nothing to compare"
    text = signed_duration(row["estimate"])
    if row["low"] is None or row["high"] is None:
        return f"{text} (too few)"
    return f"{text} ({signed_duration(row['low'])} to {signed_duration(row['high'])})"
