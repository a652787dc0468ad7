"""What other simulators reach: jobs per second of user CPU, measured on machines like ours (2 cores, 24 GiB)."""

from __future__ import annotations

from typing import NamedTuple


class Published(NamedTuple):
    """One line of the table; several figures belong to several rules or sizes, in the same order."""

    simulator: str
    workload: str
    jobs: str
    jobs_per_cpu_second: str


PUBLISHED = (
    Published(
        "Alibaba PAI v2020 simulator, FIFO / SJF (1-second ticks)",
        "6,500 GPUs as one node, 1,000 jobs/min",
        "20,000",
        "108 / 126",
    ),
    Published("Lucid simulator, FIFO / Tiresias (1-second ticks)", "135 nodes", "2,000", "56 / 59"),
    Published("Gavel, max-min fairness (rounds, LP)", "108 GPUs, low load", "500", "49"),
    Published("Sia simulator, Gavel policy", "64 GPUs", "160", "1.7"),
    Published("AccaSim, FIFO first fit", "200 / 1,800 nodes", "10,000 / 5,000", "2,228 / 551"),
    Published("SimPy / Ciw / salabim", "M/M/50 queue", "100,000 to 1 M", "51,000 / 19,000 / 2,000"),
    Published("plain Python, heap + segment tree, FIFO first fit", "1,800 nodes, load 0.92", "1 M", "105,000"),
)
