"""The schedulers that are compared: one line each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ORDER, BACKFILL, FAIRNESS, PLACEMENT, PREEMPTION, PLANNER = FAMILIES = (
    "order",
    "backfill",
    "fairness",
    "placement",
    "preemption",
    "planner",
)
BASELINE = "fifo"
CHECKPOINTS = {"save_seconds": 30.0, "restart_seconds": 60.0}
"""What every stop of a running job costs it: it saves before it yields and loads again when it goes on."""


@dataclass(frozen=True)
class Contender:
    """A scheduler by the fields of a scenario in which it differs from the baseline, and the question it answers."""

    name: str
    family: str
    fields: Mapping[str, Any] = field(default_factory=dict)


CONTENDERS = (
    # The baseline: first come first served, whoever fits may start (greedy), on the first node that has room.
    Contender(BASELINE, ORDER),
    Contender("priority", ORDER, {"order": "priority"}),
    Contender("sjf", ORDER, {"order": "sjf"}),
    Contender("gpu-time", ORDER, {"order": "gpu-time"}),
    Contender("strict", BACKFILL, {"backfill": "strict"}),
    Contender("easy", BACKFILL, {"backfill": "easy"}),
    Contender("conservative", BACKFILL, {"backfill": "conservative"}),
    Contender("sjf+easy", BACKFILL, {"order": "sjf", "backfill": "easy"}),
    Contender("drf", FAIRNESS, {"fairness": "drf"}),
    Contender("wfq", FAIRNESS, {"fairness": "wfq"}),
    Contender("fair-share", FAIRNESS, {"fairness": "fair-share"}),
    Contender("easy+drf", FAIRNESS, {"backfill": "easy", "fairness": "drf"}),
    # Limits that bind: few tenants of PAI ever reach a quarter of its GPUs, on Philly a tenth is less than five of them use.
    Contender("quota-25", FAIRNESS, {"fairness": "quota:share=0.25"}),
    Contender("quota-10", FAIRNESS, {"fairness": "quota:share=0.1"}),
    Contender("best-fit", PLACEMENT, {"placement": "best-fit"}),
    Contender("worst-fit", PLACEMENT, {"placement": "worst-fit"}),
    Contender("dot-product", PLACEMENT, {"placement": "dot-product"}),
    Contender("gpu-packing", PLACEMENT, {"placement": "gpu-packing"}),
    Contender("fgd", PLACEMENT, {"placement": "fgd"}),
    Contender("random", PLACEMENT, {"placement": "random"}),
    Contender("consolidate", PLACEMENT, {"placement": "consolidate"}),
    Contender("srtf", PREEMPTION, {"order": "srtf"}),
    Contender("las", PREEMPTION, {"order": "las"}),
    # Slices and steps must be much longer than a stop costs: in slices of a minute nobody would get anywhere.
    Contender("gittins", PREEMPTION, {"order": "gittins:least=3600"}),
    Contender("round-robin", PREEMPTION, {"order": "round-robin:quantum=3600"}),
    Contender("priority+preempt", PREEMPTION, {"order": "priority:aging=0", "preemption": "priority"}),
    Contender("max-min", PLANNER, {"planner": "max-min"}),
    Contender("finish-time", PLANNER, {"planner": "finish-time"}),
)
"""A new policy is added by one line here; a published direction about it by one line in `directions.py`."""
