"""Jobs with deadlines on real spot availability: `python -m benchmarks.spot_deadlines FILE [ZONE…]`.

Each zone is entered every so many hours; costs are shares of what the job costs on demand. The spread over entries is the
risk: the same policy, another day or zone.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from gputwin.autoscaling.nodes.supply import read_zones
from gputwin.autoscaling.spot.deadline import POLICIES, DeadlineJob, follow, least_cost

TICK = 300.0
WORK_HOURS, CHANGEOVER_TICKS, SPOT_PRICE = 24, 2, 0.33
SLACKS = (1.25, 1.5, 2.0)
EVERY_HOURS = 24


def main(path: Path, like: tuple[str, ...]) -> None:
    """Print a table of costs against on demand: mean, and the 5th and 95th percentile over entries."""
    zones = read_zones(path, like=like or ("aws-02-15-2023",))
    print(
        f"{len(zones)} zones; work {WORK_HOURS} h, changeover {CHANGEOVER_TICKS * TICK / 60:g} min, spot at {SPOT_PRICE}"
    )
    print(f"{'deadline':>9} {'policy':>17} {'mean':>6} {'p5':>6} {'p95':>6} {'missed':>6} {'entries':>7}")
    for slack in SLACKS:
        work = round(WORK_HOURS * 3600 / TICK)
        job = DeadlineJob(work, round(work * slack), CHANGEOVER_TICKS, 1.0, SPOT_PRICE)
        costs: dict[str, list[float]] = {name: [] for name in (*POLICIES, "optimum")}
        missed = dict.fromkeys(costs, 0)
        for zone in zones:
            for start in np.arange(0.0, zone.span_seconds - job.deadline * TICK, EVERY_HOURS * 3600.0):
                available = np.array([zone.share_at(start + TICK * t) > 0 for t in range(job.deadline)])
                for name, policy in POLICIES.items():
                    run = follow(job, available, policy)
                    costs[name].append(run.cost / job.work)
                    missed[name] += run.end is None
                costs["optimum"].append(least_cost(job, available) / job.work)
        for name, found in costs.items():
            low, high = np.quantile(found, [0.05, 0.95])
            print(
                f"{slack:>8.2f}× {name:>17} {np.mean(found):6.3f} {low:6.3f} {high:6.3f} {missed[name]:6} {len(found):7}"
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]), tuple(sys.argv[2:]))
