"""What a trace offers a cluster: jobs with their sizes, the load they bring, and how peaked it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gputwin.core.errors import UserError
from gputwin.queueing.distributions import Floats
from gputwin.queueing.fit.arrivals import Arrivals, fit_arrivals
from gputwin.queueing.fit.service import ServiceFit, Tail, fit_service, fit_tail

CLASSES = (
    ("a share of a GPU", 0.0, 0.999),
    ("1 GPU", 0.999, 1.001),
    ("up to 8 GPUs", 1.001, 8.001),
    ("more than 8 GPUs", 8.001, np.inf),
)
"""Classes of jobs by the GPUs the whole gang takes: name, more than, up to."""


@dataclass(frozen=True)
class Offered:
    """Jobs that take GPUs, and what theory needs to know of them."""

    submit: Floats
    run: Floats
    """s each job runs within the window: what would lie beyond its end is cut off, and all are stretched so that they
    bring the whole load, that of jobs from before its beginning too.
    """
    gpus: Floats
    begin: float
    until: float
    """s; the window that is judged (`gputwin.traces.lifetimes`)."""
    arrivals: Arrivals
    services: list[ServiceFit]
    tail: Tail | None
    load: float
    """Mean GPUs in use in the record, if there were no end of them."""
    steady_load: float
    """The same for ever after, were arrivals to go on: more where jobs outlast the record."""
    peakedness: float
    """Variance over mean of the GPUs in use, if there were no end of them; 1 for Poisson arrivals of single GPUs."""
    older_share: float
    """Share of the load that jobs bring which were there before the window."""

    @property
    def gpus_per_job(self) -> float:
        """Return the mean GPUs of a running job: jobs weighted by how long they run."""
        return float((self.gpus * self.run).sum() / self.run.sum())

    @property
    def mean_run(self) -> float:
        """Return the mean run time within the record, s."""
        return float(self.run.mean())

    @property
    def run_scv(self) -> float:
        """Return the squared variation of run times."""
        return float(self.run.var() / self.run.mean() ** 2)

    @property
    def work_scv(self) -> float:
        """Return the squared variation of GPU-seconds per job."""
        work = self.run * self.gpus
        return float(work.var() / work.mean() ** 2)


def offered(
    submit: Floats,
    run: Floats,
    gpus: Floats,
    window: tuple[float, float] | None = None,
    older: NDArray[np.bool_] | None = None,
) -> Offered:
    """Return the load of jobs that take GPUs, from when they were submitted (s), ran (s), and their GPUs.

    `window`: the two times between which they are judged; from the first to the last submission if not given. Jobs that
    are `older` bring load but do not arrive.
    """
    takes = gpus > 0
    arrives = takes if older is None else takes & ~older
    if arrives.sum() < 2:
        raise UserError("fewer than two jobs that ask for GPUs arrive, so there is no load to speak of")
    begin, until = (float(submit[arrives].min()), float(submit[arrives].max())) if window is None else window
    inside = (arrives & (submit >= begin) & (submit <= until))[takes]
    submit, run, gpus = submit[takes], run[takes], gpus[takes]
    arrivals = fit_arrivals(submit[inside])
    held = np.minimum(run, until - submit)[inside]
    _, level, width = levels(submit, submit + run, gpus, begin, until)
    mean = float(level @ width / width.sum())
    if mean <= 0 or not held.any():
        raise UserError("jobs that ask for GPUs run for no time, so they bring no load")
    # Jobs that were there before the window hold GPUs too: the load is what all of them hold.
    own = float((held * gpus[inside]).sum()) / (until - begin)
    held *= mean / own
    variance = float((level - mean) ** 2 @ width / width.sum())
    return Offered(
        submit[inside],
        held,
        gpus[inside],
        begin,
        until,
        arrivals,
        fit_service(run[inside]),
        fit_tail(run[inside]),
        load=mean,
        steady_load=max(float((run * gpus)[inside].sum()) / (until - begin), mean),
        peakedness=variance / mean,
        older_share=max(1 - own / mean, 0.0),
    )


def levels(begin: Floats, end: Floats, amount: Floats, first: float, last: float) -> tuple[Floats, Floats, Floats]:
    """Return times between `first` and `last` at which the amount in force changes, the amount, and for how long."""
    times = np.concatenate([[first, last], begin, end])
    change = np.concatenate([[0.0, 0.0], amount, -amount])
    order = np.argsort(times, kind="stable")
    times, level = times[order], np.cumsum(change[order])
    inside = (times[:-1] >= first) & (times[:-1] < last)
    return times[:-1][inside], np.maximum(level[:-1][inside], 0.0), np.diff(times)[inside]


def class_of(gpus: Floats) -> Floats:
    """Return the number of each job's class in CLASSES; −1 for jobs without GPUs."""
    found = np.full(gpus.size, -1.0)
    for number, (_, above, upto) in enumerate(CLASSES):
        found[(gpus > above) & (gpus <= upto)] = number
    return found
