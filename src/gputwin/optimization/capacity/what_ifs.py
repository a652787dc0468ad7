"""What else could be done: other rules and faster GPUs, at the same capacity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from gputwin.core.errors import UserError
from gputwin.optimization.capacity.evaluate import Point, Setting, evaluate, setting_of
from gputwin.simulation.batch import Batch
from gputwin.traces.dataset import Trace

FASTER = 1.25


@dataclass(frozen=True)
class WhatIf:
    """One change of the rules, and the target's figure it gives at the planned capacity."""

    name: str
    what: str
    value: float
    """s."""
    change: float | None
    """Relative to the plan's own; None where that is 0 or one of the two has no value."""

    def to_json(self) -> dict[str, Any]:
        """Return the what-if as plain data."""
        value = self.value if math.isfinite(self.value) else None
        return {"name": self.name, "what": self.what, "value_seconds": value, "change": self.change}


def simulate_what_ifs(trace: Trace, setting: Setting, at: Point, batch: Batch) -> tuple[WhatIf, ...]:
    """Return each what-if's figure on the plan's nodes, everything else as planned.

    What is as planned already, and what does not go with the plan's other rules, is left out.
    """
    changed = []
    models = {g.gpu_model or "" for g in setting.cluster.groups if g.gpus}
    what_ifs: list[tuple[str, str, dict[str, Any]]] = [
        ("predictive ordering", "shortest job first, durations known", {"order": "sjf"}),
        ("strict order", "nobody overtakes", {"backfill": "strict"}),
        ("backfill", "EASY: who delays nobody may overtake", {"backfill": "easy"}),
        ("consolidation", "gangs on as few nodes as possible", {"placement": "consolidate"}),
        ("no GPU sharing", "shares rounded up to whole GPUs", {"sharing": "exclusive"}),
        (
            "faster GPUs",
            f"jobs with GPUs run {FASTER:g} times as fast",
            {"speed": {"by_model": dict.fromkeys(models, FASTER)}},
        ),
    ]
    for name, what, fields in what_ifs:
        scenario = setting.scenario.with_(**fields)
        if scenario == setting.scenario:
            continue
        try:
            scenario.check()
        except UserError:
            continue
        changed.append((name, what, batch.share(setting_of(trace, setting.cluster, scenario, setting.target))))
    points = batch.map(evaluate, [(s, at.counts) for _, _, s in changed])
    return tuple(
        WhatIf(name, what, point.value, _change(at.value, point.value))
        for (name, what, _), point in zip(changed, points, strict=True)
    )


def _change(before: float, after: float) -> float | None:
    if before <= 0 or not (math.isfinite(before) and math.isfinite(after)):
        return None
    return after / before - 1
