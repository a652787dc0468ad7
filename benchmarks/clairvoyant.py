"""What FGD leaves on the table: the same openb pods packed knowing all of them.

    python -m benchmarks.clairvoyant ../shared/data/alibaba_v2023_openb

Pods arrive in a drawn order until their GPU requests reach a share of capacity. FGD places them one by one (the authors'
mean of ten orders), the packing all at once. Fails if the packing is anywhere below FGD or above its bound.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import polars as pl

LOADS = (90, 95, 100, 110, 130)


def main() -> int:
    from gputwin.optimization.placement.clairvoyant import pack_most
    from gputwin.studies.reproduce.fgd2023 import draw_order, published
    from gputwin.traces.ingest import Options, ingest

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    nodes = arguments.folder / "openb_node_list_gpu_node.csv"
    pods = arguments.folder / "openb_pod_list_default.csv.gz"
    trace = ingest([pods, nodes], options=Options(format="openb2023"))
    names = [pod.partition("-tuned-")[0] for pod in draw_order(trace, arguments.seed).pods]
    tasks = pl.DataFrame({"job_id": names}).join(trace.tasks, on="job_id", how="left", maintain_order="left")
    online = published("default").filter((pl.col("policy") == "fgd") & (pl.col("seed") == "mean"))
    asked = (tasks["gpu_count"] * tasks["gpu_milli"]).cum_sum() / (trace.nodes["gpu_count"].sum() * 1000)
    print("load  FGD     packing  bound   left on the table (points)")
    is_fine = True
    for load in LOADS:
        best = pack_most(tasks.filter(asked <= load / 100), trace.nodes)
        row = online.filter((online["metric"] == "allocation") & (online["load"] == load))
        fgd = float(row["published"][0])
        print(
            f"{load:4d}  {fgd:6.2f}  {100 * best.allocation:6.2f}  {100 * best.bound_allocation:6.2f}  "
            f"{100 * best.allocation - fgd:+.2f}"
        )
        is_fine &= best.allocated <= best.bound and 100 * best.allocation >= fgd
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
