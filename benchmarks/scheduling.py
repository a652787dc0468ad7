"""All published project-scheduling instances within ten seconds each: how many are proven optimal.

    python -m benchmarks.scheduling ../shared/reference   # 340 instances, some minutes

Fails below 95 %, or where a bound is above the published optimum.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from pathlib import Path

from gputwin.optimization.schedule.project import Project, least_makespan

LEAST_PROVEN = 0.95
SECONDS = 10.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--every", type=int, default=1, help="only every so manieth instance")
    arguments = parser.parse_args()
    path = arguments.reference / "oracles" / "packing" / "psplib_j30.json.gz"
    cases = json.loads(gzip.decompress(path.read_bytes()))["instances"][:: arguments.every]
    proven = wrong = 0
    seconds = 0.0
    for case in cases:
        project = Project(
            tuple(case["duration"]),
            tuple(map(tuple, case["demand"])),
            tuple(case["capacity"]),
            tuple(map(tuple, case["successors"])),
        )
        found = least_makespan(project, seconds=SECONDS)
        proven += found.is_optimal
        wrong += not found.bound <= case["optimum"] <= found.makespan
        seconds += found.cpu_seconds
    print(f"{proven} of {len(cases)} proven optimal, {wrong} wrong, {seconds:.1f} CPU s")
    return 0 if proven >= LEAST_PROVEN * len(cases) and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
