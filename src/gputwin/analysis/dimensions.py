"""What tasks are told apart by: role, application, user, GPUs asked for, model, rule, class, hour, …"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from gputwin.analysis.clock import LocalClock
from gputwin.analysis.tasks import GANG_LABELS, GPU_LABELS, JOB_LABELS, NO_LIMIT, TaskFacts
from gputwin.analysis.words import amount, label

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Dimension(NamedTuple):
    """A column of the prepared tasks to group by, how people call it, and how its values read."""

    name: str
    column: str
    title: str
    labels: Sequence[str] | None = None

    def label(self, value: object) -> str:
        """Return one value of the column as people read it."""
        if self.name == "max_per_node":
            return "no limit" if value == NO_LIMIT else str(value)
        if self.name == "hour":
            return f"{value:02d}:00"
        if self.labels is not None and isinstance(value, int):
            return self.labels[value - (self.name == "weekday")]
        return str(value)

    def tasks_of(self, group: str) -> str:
        """Return which tasks a group is, as it stands in a sentence: "tasks that ask for over 8 and up to 16 GPUs"."""
        if self.name == "gpu_request":
            return f"tasks that ask for {amount(group, 'GPU')}"
        return f"tasks of {self.title} {label(group)}"


DIMENSIONS = (
    Dimension("role", "role", "role"),
    Dimension("application", "application", "application"),
    Dimension("user", "user", "user"),
    Dimension("tenant", "tenant", "tenant"),
    Dimension("workload", "workload", "kind of program"),
    Dimension("qos", "qos", "service class"),
    Dimension("gpu_request", "gpu_class", "GPUs asked for", GPU_LABELS),
    Dimension("gpu_model", "gpu_model", "GPU model"),
    Dimension("job_class", "job_class", "job class", JOB_LABELS),
    Dimension("gang_size", "gang_class", "instances in the gang", GANG_LABELS),
    Dimension("gpu_constraint", "is_constrained", "GPU-model constraint", ("any model", "named models")),
    Dimension("max_per_node", "limit", "instances allowed per node"),
    Dimension("hour", "hour", "hour of the day"),
    Dimension("weekday", "weekday", "day of the week", WEEKDAYS),
)
BY_NAME = {d.name: d for d in DIMENSIONS}
_SOURCE = {"gpu_request": "gpu_count", "gang_size": "arrival", "gpu_constraint": "gpu_models_allowed"}


def dimensions_of(facts: TaskFacts, clock: LocalClock) -> tuple[Dimension, ...]:
    """Return the dimensions along which the source tells tasks apart at all."""
    found = []
    for d in DIMENSIONS:
        if d.name in ("hour", "weekday"):
            is_known = clock.has_time_of_day and facts.knows("arrival")
        elif d.name == "job_class":
            is_known = facts.knows("gpu_count", "runtime")
        else:
            is_known = d.name == "gang_size" or facts.knows(_SOURCE.get(d.name, d.name))
        if is_known:
            found.append(d)
    return tuple(found)


def labelled(frame: pl.DataFrame, dimension: Dimension) -> pl.DataFrame:
    """Return the frame with the dimension's column turned into `dimension` and `group`, as people read them."""
    names = [dimension.label(value) for value in frame[dimension.column]]
    rest = frame.drop(dimension.column)
    return rest.select(pl.lit(dimension.name).alias("dimension"), pl.Series("group", names, pl.String), pl.all())
