"""What a capacity plan says, in sentences."""

from __future__ import annotations

import math

from gputwin.core.units import DAY, format_duration, percent
from gputwin.optimization.capacity.evaluate import Point
from gputwin.optimization.capacity.plan import Plan

_YEAR_HOURS = 8766


def sentences(plan: Plan) -> list[str]:
    """Return the answer, its grounds, how much of it is the record's luck, and what follows for the cluster."""
    if plan.record is None:
        return [_impossible(plan)]
    if plan.answer is None:
        return [_unsure(plan), _luck(plan)]
    said = [_answer(plan, plan.answer), _record(plan, plan.record), _luck(plan)]
    have, answer = plan.cluster.node_count, plan.answer
    if have >= answer.nodes:
        said.append(
            f"The cluster's {have:,} nodes leave {have - answer.nodes:,} to spare ({percent(plan.headroom, 1)})."
        )
    else:
        said.append(f"The cluster's {have:,} nodes are {answer.nodes - have:,} too few.")
    lasts = plan.lasting_growth
    if lasts is not None and lasts > 1:
        said.append(f"They last until demand has grown {lasts:.2f} times, by square-root staffing.")
    if plan.cost_per_hour is not None:
        said.append(
            f"The plan costs {plan.cost_per_hour:,.2f} an hour, {plan.cost_per_hour * _YEAR_HOURS:,.0f} a year."
        )
    return said


def _answer(plan: Plan, answer: Point) -> str:
    assert plan.luck is not None
    demand = "" if plan.growth == 1 else f" at {plan.growth:g} times the demand"
    luck, larger = plan.luck, plan.larger
    text = (
        f"{answer.nodes:,} nodes ({answer.gpus:,} GPUs) meet {plan.target}{demand} with "
        f"{percent(luck.confidence)} confidence: "
        f"{plan.target.words} is {_seconds(answer.value)} on the record, and {luck.records_met} of {luck.records} records "
        f"made of its {_blocks(luck.block_seconds)} drawn with replacement meet the target."
    )
    if larger and all(plan.target.met(p.value) for p in larger):
        most = max(p.nodes for p in larger)
        sizes = {1: "the one larger size", 2: "both larger sizes"}.get(len(larger), f"all {len(larger)} larger sizes")
        text += f" So does the record on {sizes} tried, up to {most:,} nodes."
    return text


def _record(plan: Plan, record: Point) -> str:
    """Return what the record alone would ask for, and that sizes below are no guide where they are not."""
    misses = plan.misses
    if misses is None:
        return "The record alone is served by the smallest cluster, one node of each type."
    text = (
        f"On the record alone every size tried from {record.nodes:,} nodes on meets it; {misses.nodes:,} nodes "
        f"miss it with {_seconds(misses.value)}."
    )
    lucky = [p for p in plan.points if p.nodes < misses.nodes and plan.target.met(p.value)]
    if lucky:
        example = max(lucky, key=lambda p: p.nodes)
        text += f" Some smaller sizes meet it too, as {example.nodes:,} does: waits do not fall with every node added."
    return text


def _luck(plan: Plan) -> str:
    assert plan.luck is not None
    luck = plan.luck
    return (
        f"Other records like this one would need {luck.low:,} to {luck.high:,} nodes (90 %): the spread of the drawn "
        f"records, widened because {luck.blocks:,} {_blocks(luck.block_seconds)} show too little of it."
    )


def _unsure(plan: Plan) -> str:
    """Return that the record meets the target but too few records like it do."""
    assert plan.luck is not None
    assert plan.record is not None
    luck = plan.luck
    return (
        f"No number of such nodes tried meets {plan.target} with {percent(luck.confidence)} confidence: "
        f"{plan.record.nodes:,} "
        f"nodes do on the record itself, but only {luck.records_met} of {luck.records} records made of its "
        f"{_blocks(luck.block_seconds)} drawn with replacement do on the largest size tried. More nodes no longer help: "
        "jobs' own run times decide, or jobs that no node can hold."
    )


def _impossible(plan: Plan) -> str:
    most = max(plan.points, key=lambda p: p.nodes)
    if most.never_run:
        return (
            f"No number of such nodes meets {plan.target}: {most.never_run:,} of {plan.jobs:,} jobs never run even on "
            f"{most.nodes:,} nodes, since they ask for more than such a node has."
        )
    return (
        f"No number of such nodes meets {plan.target}: on {most.nodes:,} nodes, "
        f"{most.nodes / plan.cluster.node_count:.0f} times the cluster, {plan.target.words} is still "
        f"{_seconds(most.value)}."
    )


def _blocks(seconds: float) -> str:
    """Return what is drawn: days, or stretches of another length."""
    return "days" if abs(seconds / DAY - 1) < 0.1 else f"stretches of {format_duration(seconds)}"


def _seconds(value: float) -> str:
    return format_duration(value) if math.isfinite(value) else "without end, since jobs never run"
