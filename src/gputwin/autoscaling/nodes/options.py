"""What a user gives for a study of node pools, as text and files: rules, spot supply, checkpoints, placement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gputwin.autoscaling.nodes.spec import RULES
from gputwin.autoscaling.nodes.study import PoolOptions
from gputwin.autoscaling.nodes.supply import SpotSupply, read_record, read_zones
from gputwin.autoscaling.spot.hazard import read_prices
from gputwin.core.errors import UserError
from gputwin.core.units import HOUR, parse_duration
from gputwin.simulation.checkpointing import exact
from gputwin.simulation.interruptions import Checkpoints
from gputwin.simulation.rules import Scheduler

PLACEMENT = "best-fit"
"""Which of the nodes that are on a job goes to, unless given otherwise."""


def supply_of(
    availability: Path | None,
    zones: Sequence[str],
    hazard: str = "0",
    prices: Path | None = None,
    price_power: float = 1.0,
) -> SpotSupply:
    """Return when spot nodes can be had and are lost: availability, a hazard or a record of it, prices."""
    found = () if availability is None else read_zones(availability, like=tuple(zones))
    series = None if prices is None else read_prices(prices)
    supply = SpotSupply(found, prices=series, price_power=price_power)
    try:
        per_hour = float(hazard)
    except ValueError:
        return replace(supply, record=read_record(Path(hazard), zones))
    return replace(supply, hazard_per_hour=per_hour)


def checkpoints_of(text: str | None, supply: SpotSupply) -> Checkpoints:
    """Return checkpoints of `interval=30m,save=1m,restart=2m`; `interval=best` follows from the hazard."""
    if text is None:
        return Checkpoints()
    values: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if key not in ("interval", "save", "restart") or not equals:
            raise UserError(f"--checkpoint: '{part}' is not one of interval=…, save=…, restart=…")
        values[key] = value
    save = parse_duration(values.get("save", "0s"))
    if values.get("interval") == "best":
        if supply.hazard is None or not supply.hazard.per_hour.mean > 0 or save == 0:
            raise UserError("--checkpoint interval=best follows from --hazard and save=…; give both")
        interval = exact(save, HOUR / supply.hazard.per_hour.mean)
    else:
        interval = parse_duration(values["interval"]) if "interval" in values else math.inf
    return Checkpoints(interval, save, parse_duration(values.get("restart", "0s")))


def checked_rules(rules: Sequence[str] | None) -> tuple[str, ...]:
    """Return the rules to compare: those named, or all."""
    chosen = tuple(rules or RULES)
    unknown = [rule for rule in chosen if rule not in RULES]
    if unknown:
        raise UserError(f"unknown rule for node pools '{unknown[0]}'; known: {', '.join(RULES)}")
    return chosen


def options_of(supply: SpotSupply, checkpoints: Checkpoints, seed: int = 0, placement: str = PLACEMENT) -> PoolOptions:
    """Return what all runs have in common; jobs start in the order they came, with backfilling."""
    return PoolOptions(Scheduler("fifo", "greedy", placement), checkpoints, supply, seed)
