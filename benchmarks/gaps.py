"""How far online policies are from the best schedule in hindsight, on small random cases.

    python -m benchmarks.gaps   # 40 cases of eight jobs on two nodes of four GPUs

Fails where a policy beats a proven optimum.
"""

from __future__ import annotations

import argparse
import sys


def main() -> int:
    from gputwin.optimization.schedule.gaps import gaps

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    found = gaps(arguments.cases, seed=arguments.seed)
    print(f"{found.proven} of {found.cases} optima proven; waits in seconds per job, means over cases")
    print("policy                            wait   best    gap   optimal in")
    for row in found.table.to_dicts():
        print(
            f"{row['policy']:32s}  {row['mean_wait']:5.2f}  {row['best_wait']:5.2f}  {row['mean_gap']:5.2f}   "
            f"{row['cases_optimal']} of {row['cases']} cases"
        )
    return 0 if (found.table["mean_gap"] >= -1e-9).all() or found.proven < found.cases else 1


if __name__ == "__main__":
    sys.exit(main())
