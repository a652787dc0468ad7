"""Alibaba Lingjun 2023: where each host of a training cluster stands in its three-layer Clos network.

Published with Cao et al., "Crux: GPU-Efficient Communication Scheduling for Deep Learning Training", SIGCOMM'24.
Switches: ASW (top of rack), PSW (aggregation), DSW (core). ASW names start over under each PSW (every such pair has
at most eight hosts), so a rack is named by both. The publisher does not give the hosts' GPUs: they are left at zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from gputwin.core.errors import InputError
from gputwin.traces.quality import QualityLog
from gputwin.traces.reader import READERS, Clock, Draft, Input, Reader
from gputwin.traces.tabular import CsvKind, read_csv

TOPOLOGY = CsvKind("topology", {"ip": pl.String, "DSW": pl.String, "PSW": pl.String, "ASW": pl.String})


def read(inputs: Sequence[Input], quality: QualityLog) -> Draft:
    """Return the hosts as nodes, with their rack and aggregation switch."""
    if len(inputs) > 1:
        raise InputError("a second topology", file=inputs[1].source.label, remedy="give one")
    nodes = read_csv(inputs[0].source, TOPOLOGY, quality).select(
        "_row",
        pl.col("ip").alias("node_id"),
        pl.concat_str("PSW", "ASW", separator="/").alias("rack"),
        pl.col("PSW").alias("network_domain"),
    )
    return Draft({"nodes": nodes}, Clock.RELATIVE)


READER = READERS.add(Reader("lingjun", "Alibaba Lingjun training cluster, 2023", (TOPOLOGY,), read))
