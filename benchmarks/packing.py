"""The 120 published one-dimensional packing instances: on how many the optimum is proven, and how long it takes.

    python -m benchmarks.packing ../shared/reference

Fails where a bound is above the published optimum, a packing below it, or an instance is not proven.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path


def main() -> int:
    from gputwin.optimization.placement.problem import InstanceGroup, NodeType, Problem
    from gputwin.optimization.placement.solve import place

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", default="", help="part of the names to run")
    arguments = parser.parse_args()
    path = arguments.reference / "oracles" / "packing" / "bpp_1d_optima.json"
    chosen = [i for i in json.loads(path.read_text())["instances"] if arguments.only in i["name"]]
    unproven, wrong, seconds = [], [], 0.0
    for instance in chosen:
        items = Counter(instance["items"])
        groups = tuple(InstanceGroup(str(size), ((size,),), n) for size, n in sorted(items.items(), reverse=True))
        problem = Problem(("size",), groups, (NodeType("bin", (instance["capacity"],)),))
        result = place(problem, method="columns", seconds=arguments.seconds)
        found, best = result.objective, instance["optimum"]
        seconds += sum(a.cpu_seconds for a in result.attempts)
        if found is None or not result.bound <= best <= found:
            wrong.append(instance["name"])
        elif not result.is_optimal:
            unproven.append(f"{instance['name']} (between {result.bound} and {found}, optimum {best})")
    proven = len(chosen) - len(unproven) - len(wrong)
    print(f"{proven} of {len(chosen)} proven optimal, {len(wrong)} wrong, {seconds:.0f} CPU s")
    for label, names in (("not proven", unproven), ("wrong", wrong)):
        for name in names:
            print(f"{label}: {name}")
    return 0 if proven == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
