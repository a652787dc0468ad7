"""Sentences on node pools and scaling rules give times as people say them, never as hundreds of seconds."""

from __future__ import annotations

import re
from dataclasses import replace

from gputwin.autoscaling.candidates import KNOWN, Scope, settings_of
from gputwin.autoscaling.nodes.choose import WaitTarget, choose_pools
from gputwin.autoscaling.nodes.report import mean_of, report_pools
from gputwin.autoscaling.nodes.study import PoolOptions
from gputwin.autoscaling.nodes.supply import SpotSupply
from gputwin.report.page import FigurePart, Statement
from gputwin.report.sections.node_pools import node_pools, pools_verdict
from gputwin.simulation.interruptions import Checkpoints
from tests.autoscaling.nodes.made import pools
from tests.oracles.cases import trace_of_jobs
from tests.simulation.by_hand import gpus, job

RAW = re.compile(r"\d[\d,]*\d\d s\b|[6-9]\d s\b")
"""A minute or more, in seconds."""


def crowded(number: int = 30):
    """Jobs of an hour, two GPUs each, that come faster than four nodes of two GPUs can run them."""
    return trace_of_jobs(tuple(job(300 * k, 3600, gpus(2)) for k in range(number)))


def test_notes_of_pools_say_minutes_and_hours() -> None:
    shown = report_pools(
        pools(boot_seconds=180.0), crowded(), SpotSupply(hazard_per_hour=1.0), Checkpoints(), shares=(0.5,), seeds=2
    )
    notes = [shown.headline(), *shown.notes()]
    assert "a boot takes 3 min 00 s" in notes[0]
    assert "jobs in 2 h 25 min" in notes[0]
    for subject in ("p95 wait", "saves and restarts took each", "slowest 1 %"):
        assert any(subject in note for note in notes), subject
    assert [note for note in notes if RAW.search(note)] == []
    assert any("% for free GPUs" in note for note in notes)
    caption = next(part.caption for part in node_pools(shown).parts if isinstance(part, FigurePart))
    assert "paid for over 2 h 25 min" in caption


def test_names_of_ways_to_size_a_cluster_stand_beside_their_bars() -> None:
    """Slanted below them, they leave bars of a few pixels on a phone."""
    shown = report_pools(pools(), crowded(), SpotSupply(), Checkpoints(), shares=(0.5,), seeds=1)
    figure = next(part.figure for part in node_pools(shown).parts if isinstance(part, FigurePart))
    assert [bar.orientation for bar in figure.data] == ["h", "h"]
    assert list(figure.data[0].y) == ["fixed", "cluster-autoscaler, 50 % spot", "karpenter, 50 % spot"]


def test_the_verdict_on_a_choice_says_minutes_and_hours() -> None:
    options = PoolOptions()
    choice = choose_pools(pools(), crowded(60), options, WaitTarget(95, 1800.0), rules=("karpenter",), shares=(0.0,))
    assert "at most 30 min." in choice.verdict()
    assert not RAW.search(choice.verdict())


def test_costs_say_what_they_are_counted_in() -> None:
    priced = pools()
    (group,) = priced.groups
    free = replace(priced, groups=(replace(group, group=replace(group.group, price_per_hour=None)),))
    for given, unit, note in (
        (priced, "in the currency of the prices", "Costs are in the currency of price_per_hour."),
        (free, "on-demand GPU-hours", "No prices are given, so a GPU costs 1 an hour"),
    ):
        shown = report_pools(given, crowded(), SpotSupply(), Checkpoints(), shares=(0.5,), seeds=1)
        section = node_pools(shown)
        verdict = next(part.text for part in section.parts if isinstance(part, Statement))
        assert re.search(rf"costs [\d,]+ {unit}, \d+ % of the fixed", verdict)
        assert any(text.startswith(note) for text in shown.notes())
        figure = next(part.figure for part in section.parts if isinstance(part, FigurePart))
        assert figure.layout.xaxis.title.text == f"cost, {unit}"
        choice = choose_pools(
            given, crowded(60), PoolOptions(), WaitTarget(95, 1800.0), rules=("karpenter",), shares=(0.0,)
        )
        assert unit in choice.verdict()


def test_spot_nodes_that_nothing_takes_away_are_said_to_be_an_assumption() -> None:
    safe = report_pools(pools(), crowded(), SpotSupply(), Checkpoints(), shares=(0.5,), seeds=1)
    assert any("never lost" in note for note in safe.notes())
    risky = report_pools(pools(), crowded(), SpotSupply(hazard_per_hour=1.0), Checkpoints(), shares=(0.5,), seeds=1)
    assert not any("never lost" in note for note in risky.notes())


def test_settings_of_scaling_rules_say_minutes() -> None:
    scope = Scope((2.0, 4.0), 1, 4, 15.0, 60.0, 1.0, 2.0, 1.0)
    words = [text for name in KNOWN for text, _ in settings_of(name, scope)]
    assert any("after 5 min" in text for text in words)
    assert [text for text in words if RAW.search(text)] == []


def test_a_variant_that_costs_less_and_serves_fewer_jobs_is_named_and_left_out() -> None:
    shown = report_pools(pools(), crowded(), SpotSupply(), Checkpoints(), shares=(0.5,), seeds=1)
    fixed, first, second = shown.rows
    rows = (fixed, replace(first, cost=400.0, unfinished=2.0), replace(second, cost=500.0, unfinished=0.0))
    said = pools_verdict(replace(shown, rows=rows)).text
    assert "Karpenter, 50 % spot costs 500 in " in said
    assert "Cluster-autoscaler, 50 % spot costs less (400) but leaves 2 jobs more unserved: it is left out." in said
    assert "left out" not in pools_verdict(replace(shown, rows=(fixed, second, replace(first, cost=900.0)))).text


def test_small_means_over_runs_have_a_decimal() -> None:
    """5 of 200 jobs are not 2.3 %."""
    assert [mean_of(n) for n in (4 + 2 / 3, 5.0, 0.04, 1234.5)] == ["4.7", "5", "0", "1,234"]
