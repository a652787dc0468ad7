"""A synthetic Alibaba PAI 2020 trace: two months of training and inference on 6,742 shared GPUs.

Fitted to Weng et al., "MLaaS in the Wild", NSDI'22, and to what is known of the published tables (`pai2020_facts`).
Unlike the original, a failed task keeps its end time, so that every task that started can be replayed.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gputwin.core.rng import stream
from gputwin.traces.reader import Clock
from gputwin.traces.schema import STATUS, TASKS, Status, conform
from gputwin.traces.synthetic import pai2020_facts as facts
from gputwin.traces.synthetic.arrivals import Sittings, Window, arrivals
from gputwin.traces.synthetic.columns import as_rows, known
from gputwin.traces.synthetic.distributions import Floats, Ints, Shares
from gputwin.traces.synthetic.fleet import node_count, node_table
from gputwin.traces.synthetic.identifiers import ordered_identifiers, random_identifiers
from gputwin.traces.synthetic.pai2020_projects import ROLES, Groups, Projects, Templates, make_population
from gputwin.traces.synthetic.recipe import RECIPES, Load, Published, Recipe, Reference, utc_offset

ZONE = "Asia/Shanghai"
JOBS_PER_SECOND = facts.JOBS / facts.SPAN
_SITTINGS = Sittings(fresh=0.5, gap_seconds=180.0, lifetime=0.15, lifetime_spread=1.2)
_STATUSES = (Status.COMPLETED, Status.FAILED, Status.RUNNING, Status.WAITING)
_COMPLETED, _FAILED, _RUNNING, _WAITING = range(4)
_WAIT_BY_SCARCITY = 0.35


def make(jobs: int, seed: int) -> dict[str, pl.DataFrame]:
    """Return `tasks` and `nodes` of `jobs` jobs that arrive at the original's rate.

    The record is two months long however few its jobs, so only about a full-size one cuts off what runs at its end.
    """
    window = Window(facts.START, jobs / JOBS_PER_SECOND, utc_offset(ZONE))
    groups, projects, templates = make_population(jobs, window.span, seed)
    rng = stream(seed, "pai2020", "arrivals")
    submit, order = arrivals(rng, groups.jobs, groups.work, _SITTINGS, facts.RHYTHM, window)
    group = np.repeat(np.arange(len(groups.jobs)), groups.jobs)[order]
    project = groups.project[group]
    status, wait = _fates(groups, projects.scarcity[project], group, seed)
    start = submit + wait
    end = start + groups.runtime[order]
    end_of_record = facts.START + max(facts.SPAN, window.span)
    status[end > end_of_record] = _RUNNING
    status[start > end_of_record] = _WAITING

    tasks = np.diff(templates.first, append=len(templates.project))[project]
    job = np.repeat(np.arange(jobs), tasks)
    place = np.arange(len(job)) - (np.cumsum(tasks) - tasks)[job]
    template = as_rows(templates.first[project][job] + place)
    columns = [
        _job_frame(groups, submit, group, seed).select(pl.all().gather(as_rows(job))),
        _lives(submit[job], start[job] + place, end[job], status[job]),
        _template_frame(projects, templates, seed).select(pl.all().gather(template)),
    ]
    machines = random_identifiers(stream(seed, "pai2020", "machines"), node_count(facts.FLEET), 24)
    return {
        "tasks": conform(TASKS, pl.concat(columns, how="horizontal").lazy()).collect(),
        "nodes": node_table(facts.FLEET, machines),
    }


def _fates(groups: Groups, scarcity: Floats, group: Ints, seed: int) -> tuple[NDArray[np.uint8], Ints]:
    """Return how each job ends and how long it waits, in whole s."""
    rng = stream(seed, "pai2020", "fates")
    rows = len(group)
    noise = np.sqrt(1.0 - _WAIT_BY_SCARCITY**2)
    wait = facts.WAIT.at(_WAIT_BY_SCARCITY * scarcity + noise * rng.standard_normal(rows))
    trouble = np.sqrt(0.5) * (groups.failing[group] + rng.standard_normal(rows))
    bearable = NormalDist().inv_cdf(1.0 - facts.FAILED_SHARE)
    status = np.where(trouble > bearable, _FAILED, _COMPLETED).astype(np.uint8)
    return status, wait.astype(np.int64)


def _job_frame(groups: Groups, submit: Ints, group: Ints, seed: int) -> pl.DataFrame:
    """Return the columns of each job."""
    names = random_identifiers(stream(seed, "pai2020", "group names"), len(groups.jobs), 32)
    return pl.DataFrame(
        {
            "job_id": ordered_identifiers(stream(seed, "pai2020", "job names"), submit, 24),
            "group": names.gather(as_rows(group)),
        }
    )


def _lives(submit: Ints, start: Ints, end: Ints, status: NDArray[np.uint8]) -> pl.DataFrame:
    """Return the columns that say when each task came, began and ended, and how."""
    known_start = status != _WAITING
    known_end = known_start & (status != _RUNNING)
    return pl.DataFrame(
        {
            "status": pl.Series(_STATUSES, dtype=STATUS).gather(as_rows(status)),
            "submit_time": submit.astype(np.float64),
            "start_time": known(start, known_start),
            "end_time": known(end, known_end),
            "duration_seconds": known(end - start, known_end),
            "is_running": status == _RUNNING,
        }
    )


def _template_frame(projects: Projects, templates: Templates, seed: int) -> pl.DataFrame:
    """Return the columns that are the same in every job of a project, one row per task of such a job."""
    users = random_identifiers(stream(seed, "pai2020", "user names"), facts.USERS, 12)
    models = pl.Series([*facts.MODELS, None], dtype=pl.String)
    tags = pl.Series([*(name for name, _ in facts.WORKLOADS), None], dtype=pl.String)
    project = templates.project
    wanted = np.where(projects.insists, projects.model, len(facts.MODELS))
    return pl.DataFrame(
        {
            "role": pl.Series(ROLES).gather(templates.role),
            "user": users.gather(projects.user[project]),
            "workload": tags.gather(projects.workload[project]),
            "gpu_models_allowed": models.gather(wanted[project]),
            "gpu_model": models.gather(templates.model),
            "instances": templates.instances.astype(np.int32),
            "cpu_milli": templates.cpu_milli,
            "memory_mib": templates.memory_mib,
            "gpu_count": templates.gpu_count.astype(np.int32),
            "gpu_milli": templates.gpu_milli.astype(np.int32),
        }
    )


def _milli(percent: Shares) -> Shares:
    return Shares(tuple((10.0 * value, share) for value, share in percent.shares_by_value))


_TAIL = "last rows of pai_instance_table"
_ACME = "Acme, NSDI'24, five-cluster table"
_SPATIAL = "NSDI'22 §3.3 and the joined sample's steps"

RECIPE = RECIPES.add(
    Recipe(
        name="pai2020",
        title="Alibaba PAI 2020: training and inference on 6,742 shared GPUs, two months",
        span=lambda jobs: jobs / JOBS_PER_SECOND,
        make=make,
        clock=Clock.WEEKDAY,
        zone=ZONE,
        has_instances=True,
        load=Load(0.6, 0.85, "ours: busy, and no queue that grows", facts.LOAD),
        references=(
            Reference("job runtime", facts.JOB_RUNTIME_TAIL, _TAIL),
            Reference("task runtime", facts.TASK_RUNTIME_TAIL, _TAIL),
            Reference("wait", facts.WAIT, f"{_ACME} (median, mean), shape ours"),
            Reference("GPU per instance", _milli(facts.GPU_PERCENT), _SPATIAL),
            Reference("CPU per GPU instance", _milli(facts.CPU_PERCENT), _SPATIAL),
            Reference("memory per GPU instance", facts.MEMORY_MIB, _SPATIAL),
            Reference("instances per task", facts.INSTANCES_TAIL, _TAIL),
            Reference("arrival hour", Shares(tuple((float(h), float(n)) for h, n in enumerate(facts.HOURS))), _TAIL),
        ),
        published=(
            Published("median task runtime", 480.7, _ACME),
            Published("mean task runtime", 4_787.1, _ACME),
            Published("mean job runtime", 5_038.7, "the publisher's simulator, 20,000 jobs"),
            Published("median instance runtime", 1_380.0, "NSDI'22 §3.2"),
            Published("p90 instance runtime", 16_200.0, "NSDI'22 §3.2"),
            Published("median wait", 9.0, _ACME),
            Published("mean wait", 401.7, _ACME),
            Published("mean GPU per instance", 683.0, _ACME),
            Published("tasks per job", 1_260_920 / facts.JOBS, _ACME),
            Published("instances per task", 7.5e6 / 1.26e6, "NSDI'22 §3.1"),
            Published("share of GPU tasks", 1_037_085 / 1_260_920, _ACME),
            Published("share of instances in gangs", 0.85, "NSDI'22 §3.1"),
            Published("share of instances by top 5 % of users", 0.77, "NSDI'22 §3.1"),
            Published("share of tasks in groups of 5 or more", 0.65, "NSDI'22 §5.2"),
        ),
    )
)
