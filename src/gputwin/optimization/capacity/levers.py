"""What else could be done: other rules and faster GPUs, at the same capacity."""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

from gputwin.optimization.capacity.evaluate import Point, Setting, evaluate, setting_of, spread
from gputwin.traces.dataset import Trace

FASTER = 1.25


@dataclass(frozen=True)
class Lever:
    """One change of the rules, and the target's figure it gives at the planned capacity."""

    name: str
    what: str
    value: float
    """s."""
    change: float | None
    """Relative to the plan's own; None where that is 0 or one of the two has no value."""

    def to_json(self) -> dict[str, Any]:
        """Return the lever as plain data."""
        value = self.value if math.isfinite(self.value) else None
        return {"name": self.name, "what": self.what, "value_seconds": value, "change": self.change}


def pull(trace: Trace, setting: Setting, at: Point, growth: float, pool: Executor | None) -> tuple[Lever, ...]:
    """Return each lever's figure on the plan's nodes, everything else as planned."""
    rules, seed = setting.scheduler, setting.seed
    changed: list[tuple[str, str, Setting]] = [
        ("predictive ordering", "shortest job first, durations known", _with(setting, order="sjf")),
        ("strict order", "nobody overtakes", _with(setting, backfill="strict")),
        ("backfill", "EASY: who delays nobody may overtake", _with(setting, backfill="easy")),
        ("consolidation", "gangs on as few nodes as possible", _with(setting, placement="consolidate")),
        (
            "no GPU sharing",
            "shares rounded up to whole GPUs",
            setting_of(trace, setting.cluster, rules, setting.target, share="exclusive", growth=growth, seed=seed),
        ),
        (
            "faster GPUs",
            f"jobs run {FASTER:g} times as fast",
            setting_of(trace, setting.cluster, rules, setting.target, speed=FASTER, growth=growth, seed=seed),
        ),
    ]
    changed = [c for c in changed if c[2].scheduler != rules or c[0] in ("no GPU sharing", "faster GPUs")]
    points = spread(pool, evaluate, [(s, at.counts) for _, _, s in changed])
    return tuple(
        Lever(name, what, point.value, _change(at.value, point.value))
        for (name, what, _), point in zip(changed, points, strict=True)
    )


def _with(setting: Setting, **rules: str) -> Setting:
    return replace(setting, scheduler=replace(setting.scheduler, **rules))  # type: ignore[arg-type]


def _change(before: float, after: float) -> float | None:
    if before <= 0 or not (math.isfinite(before) and math.isfinite(after)):
        return None
    return after / before - 1
