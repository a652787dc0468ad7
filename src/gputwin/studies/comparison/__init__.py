"""Scenarios side by side: the same jobs under several sets of rules, their differences, and what to make of them."""

from gputwin.studies.comparison.compare import (
    Comparison,
    check_same_trace,
    compare,
)
from gputwin.studies.comparison.labels import label_runs, rules_in_words
from gputwin.studies.comparison.scenario_run import ScenarioRun
from gputwin.studies.comparison.scenarios import STANDARD, Variants, run_scenarios

__all__ = [
    "STANDARD",
    "Comparison",
    "ScenarioRun",
    "Variants",
    "check_same_trace",
    "compare",
    "label_runs",
    "rules_in_words",
    "run_scenarios",
]
