"""What one scaling decision costs, by rule, in CPU microseconds.

    python -m benchmarks.scaling

Each rule decides on the same 20,000 observations, 15 s apart, on a load that goes up and down; the best of five passes
counts. Fails if a rule takes longer than its bound: 20 µs, or 60 µs for rules that solve a queueing model.
"""

from __future__ import annotations

import math
import sys
import time
from typing import Any

from gputwin.autoscaling.decisions.interface import Autoscaler, Forecast, Observation
from gputwin.autoscaling.decisions.registry import RULES, make_rule

OBSERVATIONS = 20_000
MOST_US, MOST_COMBINED_US = 20.0, 60.0
COMBINED = ("predictive", "hybrid")


def observations() -> list[Observation]:
    seen = []
    for i in range(OBSERVATIONS):
        load = 20.0 + 15.0 * math.sin(i / 200)
        rates = (load, load * 1.1, load * 1.2)
        forecast = Forecast(15.0 * i, 300.0, {0.5: rates, 0.95: tuple(1.3 * rate for rate in rates)})
        metrics = {"cpu": load / 30, "gpu": load / 30}
        seen.append(
            Observation(
                15.0 * i,
                30,
                30,
                metrics=metrics,
                queue_length=load / 2,
                in_flight=load,
                arrival_rate_per_s=load,
                service_time_s=1.0,
                forecast=forecast,
            )
        )
    return seen


def settings(name: str) -> dict[str, Any]:
    if name in ("velocity", "cooldown", "backoff", "bounds"):
        return {"inner": make_rule("threshold")}
    return {"maximum": 100} if name == "hpa" else {}


def main() -> int:
    seen, slow = observations(), []
    for kind in RULES:
        best = math.inf
        for _ in range(5):
            autoscaler = Autoscaler(make_rule(kind.name, **settings(kind.name)))
            start = time.process_time()
            for observation in seen:
                autoscaler.decide(observation)
            best = min(best, (time.process_time() - start) / len(seen) * 1e6)
        most = MOST_COMBINED_US if kind.name in COMBINED else MOST_US
        print(f"{kind.name:12} {best:6.1f} µs a decision (at most {most:g})")
        if best > most:
            slow.append(kind.name)
    if slow:
        print(f"too slow: {', '.join(slow)}", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
