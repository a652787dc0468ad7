"""Alibaba PAI 2020: two months of training and inference jobs on 1,897 machines with 6,742 GPUs, in seven tables.

Published with Weng et al., "MLaaS in the Wild: Workload Analysis and Scheduling in Large-Scale Heterogeneous GPU
Clusters", NSDI'22. Any subset of the tables makes a trace, and so does the joined sample others have made of them.

A job is submitted at its `start_time` and its tasks start at theirs; its wait is the time to the earliest of them.
Times are shifted such that time of day and day of week in Shanghai are true and dates are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import polars as pl

from gputwin.core.errors import InputError
from gputwin.traces.quality import QualityLog
from gputwin.traces.reader import READERS, Clock, Draft, Frame, Input, Reader
from gputwin.traces.readers.pai2020.instances import instances_of
from gputwin.traces.readers.pai2020.nodes import nodes_of
from gputwin.traces.readers.pai2020.tables import (
    GROUP_TAG,
    INSTANCE,
    JOB,
    JOINED,
    KINDS,
    MACHINE_METRIC,
    MACHINE_SPEC,
    SENSOR,
    TASK,
    Published,
    with_status,
)
from gputwin.traces.readers.pai2020.tasks import tasks_of
from gputwin.traces.readers.pai2020.usage import usage_of


def read(inputs: Sequence[Input], quality: QualityLog) -> Draft:
    """Return nodes, tasks, instances and usage as far as the tables at hand give them."""
    published = Published.of(inputs, quality)
    if set(published.sources) == {GROUP_TAG.kind}:
        raise InputError(
            "group tags alone make no trace", file=inputs[0].source.label, remedy=f"add {JOB.stem}, whose jobs they tag"
        )
    joined = with_status(published.frame(JOINED), JOINED, quality)
    tables: dict[str, Frame] = {}
    instances: pl.DataFrame | None = None
    if published.has(MACHINE_SPEC, JOINED):
        tables["nodes"] = nodes_of(published, joined)
    if published.has(INSTANCE, JOINED):
        tables["instances"] = partial(_instances, published, joined)
        if not published.has(TASK) or (published.has(GROUP_TAG) and not published.has(JOB)):
            # Tasks come before instances but need them here, and a table can be read once only.
            instances = instances_of(published, joined)
            tables["instances"] = instances.drop("inst_id")
    if published.has(JOB, TASK, GROUP_TAG, INSTANCE, JOINED):
        tables["tasks"] = partial(tasks_of, published, joined, instances)
    if published.has(SENSOR, JOINED, MACHINE_METRIC):
        tables["usage"] = partial(usage_of, published, joined)
    return Draft(tables, clock=Clock.WEEKDAY, zone="Asia/Shanghai")


def _instances(published: Published, joined: pl.DataFrame) -> pl.DataFrame:
    return instances_of(published, joined).drop("inst_id")


READER = READERS.add(Reader("pai2020", "Alibaba PAI GPU cluster, July and August 2020", KINDS, read))
