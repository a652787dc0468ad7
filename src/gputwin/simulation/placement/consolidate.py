"""Consolidation and topology for gangs."""

from __future__ import annotations

from gputwin.simulation.placement.best_fit import score as best_fit
from gputwin.simulation.policy import placement

placement(
    "consolidate",
    "the instances of a gang on as few nodes as possible; single instances by best fit",
    source="Jeon et al., Philly, ATC'19, section 2.3 (locality)",
    gang="consolidate",
)(best_fit)

placement(
    "topology",
    "the instances of a gang on one node, else one rack, else one network domain; single instances by best fit",
    source="Amaral et al., Topology-Aware GPU Scheduling, SC'17",
    gang="topology",
)(best_fit)
