"""The projects and recurring groups behind the jobs of the synthetic PAI trace.

Jobs of one group repeat one another (NSDI'22 §5.2). Groups of one project are variants of one line of work: same user,
same roles, gang sizes, requests and GPU model, durations alike. Traits are tied to one another through their ranks, so
that larger gangs and dearer GPUs run longer, while each trait keeps the distribution published for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputwin.core.rng import stream
from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.traces.synthetic import pai2020_facts as facts
from gputwin.traces.synthetic.distributions import Floats, Ints, normal_quantile, pick, spread, spread_within
from gputwin.traces.synthetic.fleet import gpu_total
from gputwin.traces.synthetic.offered import runtimes_for_work
from gputwin.traces.synthetic.population import lognormal_shares

ROLES = tuple(sorted({role.name for kind in facts.KINDS for role in kind.roles}))
NO_MODEL = len(facts.MODELS)
NO_WORKLOAD = len(facts.WORKLOADS)
_ROOMY_MODEL = facts.MODELS.index("MISC")
_SCARCE_MODEL = facts.MODELS.index("V100")


@dataclass(frozen=True)
class Groups:
    """One row per group of jobs that repeat one another; `runtime` in s has one row per job, groups in order.

    `failing` ranks, on the normal scale, how often its jobs fail; `work` is what they hold in all, in GPU-seconds.
    """

    jobs: Ints
    project: Ints
    runtime: Ints
    work: Floats
    failing: Floats


@dataclass(frozen=True)
class Projects:
    """One row per project. `scarcity`, on the normal scale, ranks how hard its GPUs are to come by."""

    model: Ints
    insists: NDArray[np.bool_]
    scarcity: Floats
    user: Ints
    workload: Ints


@dataclass(frozen=True)
class Templates:
    """One row per task of a project's jobs, projects in order; `first` is where each project's rows begin."""

    first: Ints
    project: Ints
    role: Ints
    instances: Ints
    cpu_milli: Ints
    memory_mib: Ints
    gpu_count: Ints
    gpu_milli: Ints
    model: Ints


def make_population(jobs: int, span: float, seed: int) -> tuple[Groups, Projects, Templates]:
    """Return groups of `jobs` jobs that arrive within `span` s, their projects, and the tasks of each project's jobs."""
    rng = stream(seed, "pai2020", "projects")
    size = facts.GROUPS.sizes(rng, jobs)
    variants = facts.PROJECTS.sizes(rng, len(size))
    owner = np.repeat(np.arange(len(variants)), variants)
    weight = _sums(owner, size)

    kind = _kinds(rng, weight)
    first, project, role = _roles(kind)
    instances, on_gpu = _gangs(rng, role, weight[project])
    gpu_instances = _sums(project, instances * on_gpu)
    percent = _gpu_percent(rng, gpu_instances, weight)
    gpus = percent / 100.0 * gpu_instances
    noise = rng.standard_normal(len(weight))
    duration = _durations(gpu_instances, noise)
    work = facts.LOAD * gpu_total(facts.FLEET) * span
    groups = _groups(rng, size, owner, gpu_instances, gpus, noise, work)
    model = _models(rng, kind, percent, _sums(owner, groups.work), duration, weight)
    load = np.where(on_gpu, percent[project], 0.0)
    gpu_count = np.ceil(load / 100.0).astype(np.int64)
    cpu, memory = _requests(rng, load, weight[project])
    templates = Templates(
        first=first,
        project=project,
        role=role,
        instances=instances,
        cpu_milli=(10.0 * cpu).astype(np.int64),
        memory_mib=memory.astype(np.int64),
        gpu_count=gpu_count,
        gpu_milli=np.where(gpu_count > 1, WHOLE_GPU_MILLI, 10.0 * load).astype(np.int64),
        model=np.where(on_gpu, model[project], NO_MODEL),
    )
    in_all = weight * _sums(project, instances)
    nodes = np.maximum(cpu / facts.SMALLEST_NODE_CPU_PERCENT, memory / facts.SMALLEST_NODE_MIB)
    nodes = np.maximum(nodes, load / (100.0 * np.array(facts.MODEL_GPUS_PER_NODE)[model[project]]))
    modest = _sums(project, instances * nodes) <= facts.MOST_INSISTED * np.array(facts.MODEL_NODES)[model]
    return groups, _projects(rng, model, modest, percent, duration, weight, in_all), templates


def _kinds(rng: np.random.Generator, weight: Floats) -> Ints:
    shares = np.cumsum([k.share for k in facts.KINDS])
    return pick(shares / shares[-1], spread(rng.standard_normal(len(weight)), weight))


def _durations(gang: Floats, noise: Floats) -> Floats:
    """Return how long jobs run, on a normal scale, by the instances that compute: gangs longer, and less unlike."""
    shift = facts.GANG_SHIFT + facts.GANG_SHIFT_PER_LOG * np.log(np.maximum(gang, 1))
    return np.where(gang > 1, shift + facts.GANG_SPREAD * noise, noise)


def _groups(
    rng: np.random.Generator, size: Ints, project: Ints, gang: Floats, gpus: Floats, of_project: Floats, work: float
) -> Groups:
    """Return the groups; their jobs run alike, and as long as it takes to make `work` GPU-seconds in all.

    How long is spread among groups of about as many GPUs per job, by the GPUs demanded, so that neither the load nor the
    run times of instances hang on how long the few largest happen to run; then among all groups, by their jobs.
    """
    alike = _tied(rng, of_project[project], facts.ALIKE_IN_PROJECT)
    gang, gpus = gang[project], gpus[project]
    noise = normal_quantile(spread_within(alike, size * (1.0 + gpus), np.searchsorted(facts.GPU_CLASSES, gpus)))
    of_group = normal_quantile(spread(_durations(gang, noise), size.astype(np.float64)))
    within = np.minimum(facts.WITHIN_GROUP * np.exp(facts.WITHIN_GROUP_SPREAD * rng.standard_normal(len(size))), 1.0)
    failing = rng.standard_normal(len(size))
    rank = np.repeat(np.sqrt(1.0 - within**2) * of_group, size)
    rank += np.repeat(within, size) * rng.standard_normal(len(rank))
    runtime = runtimes_for_work(facts.JOB_RUNTIME, rank, np.repeat(gpus, size), work).astype(np.int64)
    return Groups(size, project, runtime, gpus * np.add.reduceat(runtime, np.cumsum(size) - size), failing)


def _roles(kind: Ints) -> tuple[Ints, Ints, Ints]:
    """Return, one row per task: where each project's rows begin, and each row's project and role."""
    roles_of_kind = np.array([len(k.roles) for k in facts.KINDS])
    role_at = np.zeros((len(facts.KINDS), roles_of_kind.max()), dtype=np.int64)
    for k, entry in enumerate(facts.KINDS):
        role_at[k, : len(entry.roles)] = [ROLES.index(role.name) for role in entry.roles]
    tasks = roles_of_kind[kind]
    first = np.cumsum(tasks) - tasks
    project = np.repeat(np.arange(len(kind)), tasks)
    return first, project, role_at[kind[project], np.arange(len(project)) - first[project]]


def _gangs(rng: np.random.Generator, role: Ints, jobs: Floats) -> tuple[Ints, NDArray[np.bool_]]:
    """Return instances per task, and whether the task computes on GPUs."""
    instances = np.ones(len(role), dtype=np.int64)
    on_gpu = np.zeros(len(role), dtype=np.bool_)
    score = rng.standard_normal(len(role))
    chance = rng.random(len(role))
    for entry in {role.name: role for kind in facts.KINDS for role in kind.roles}.values():
        rows = np.flatnonzero(role == ROLES.index(entry.name))
        instances[rows] = entry.gang.at(spread(score[rows], jobs[rows])).astype(np.int64)
        on_gpu[rows] = chance[rows] < entry.gpu_share
    return instances, on_gpu


def _gpu_percent(rng: np.random.Generator, gang: Floats, weight: Floats) -> Floats:
    """Return GPUs per instance in percent; members of gangs get along with smaller parts."""
    percent = facts.GPU_PERCENT.at(spread(rng.standard_normal(len(gang)) - 0.5 * (gang > 1), weight))
    percent = np.where(gang > facts.LARGE_GANG, np.minimum(percent, 100.0), percent)
    return np.where(gang > facts.HUGE_GANG, np.minimum(percent, 50.0), percent)


def _models(
    rng: np.random.Generator, kind: Ints, percent: Floats, work: Floats, duration: Floats, weight: Floats
) -> Ints:
    """Return the GPU model each project runs on; those that run longer or take whole GPUs are on dearer ones.

    A few projects make most of the GPU work. Operators steer those to where there is room: the largest to the model
    that has most, the other heavy ones spread by work over what is left of each. The many small ones follow the habits
    of their kind.
    """
    model = np.zeros(len(kind), dtype=np.int64)
    score = _tied(rng, duration, 0.25) + 0.3 * (percent >= 100.0)
    fits = percent[:, None] <= 100.0 * np.array(facts.MODEL_GPUS_PER_NODE)
    heavy = work > facts.HEAVY_WORK * work.sum()
    for k, entry in enumerate(facts.KINDS):
        rows = np.flatnonzero((kind == k) & ~heavy)
        model[rows] = pick(np.cumsum(entry.models), spread(score[rows], weight[rows]))
    model = np.where(fits[np.arange(len(model)), model], model, _ROOMY_MODEL)
    used = np.bincount(model, weights=np.where(heavy, 0.0, work), minlength=len(facts.MODELS))
    room = np.array(facts.MODEL_GPUS) / sum(facts.MODEL_GPUS) * work.sum() - used
    by_work = np.flatnonzero(heavy)[np.argsort(-work[heavy])]
    placed_first = (work[by_work] > facts.HUGE_WORK * work.sum()) | ~fits[by_work].all(axis=1)
    for row in by_work[placed_first]:
        model[row] = int(np.where(fits[row], room, -np.inf).argmax())
        room[model[row]] -= work[row]
    rows = by_work[~placed_first]
    left = np.cumsum(np.maximum(room, 0.0))
    model[rows] = pick(left / left[-1], spread(score[rows], work[rows])) if left[-1] > 0 else _ROOMY_MODEL
    return model


def _requests(rng: np.random.Generator, percent: Floats, jobs: Floats) -> tuple[Floats, Floats]:
    """Return CPU in percent of a core and memory in MiB; tasks with more GPU ask for more of both."""
    heavy = rng.standard_normal(len(percent)) + 0.6 * (percent >= 100.0) + 1.0 * (percent >= 200.0)
    cpu, memory = np.zeros(len(percent)), np.zeros(len(percent))
    for rows, cpu_shares, memory_shares in (
        (np.flatnonzero(percent > 0), facts.CPU_PERCENT, facts.MEMORY_MIB),
        (np.flatnonzero(percent == 0), facts.SERVER_CPU_PERCENT, facts.SERVER_MEMORY_MIB),
    ):
        cpu[rows] = cpu_shares.at(spread(_tied(rng, heavy[rows], 0.7), jobs[rows]))
        memory[rows] = memory_shares.at(spread(_tied(rng, heavy[rows], 0.7), jobs[rows]))
    return cpu, memory


def _projects(
    rng: np.random.Generator,
    model: Ints,
    modest: NDArray[np.bool_],
    percent: Floats,
    duration: Floats,
    weight: Floats,
    instances: Floats,
) -> Projects:
    """Return the projects: who runs them, what they are tagged as, and how picky they are."""
    rows = len(model)
    scarce = (model >= _SCARCE_MODEL) + 0.7 * (percent >= 100.0) + 0.5 * rng.standard_normal(rows)
    # Large projects belong to large users, who come first; else they would cover the shares of the small ones.
    owned = _tied(rng, duration, 0.35) - 0.7 * np.log(instances)
    tag_shares = np.cumsum([share for _, share in facts.WORKLOADS])
    tagged = np.flatnonzero(spread(rng.standard_normal(rows), instances) < facts.TAGGED_SHARE)
    workload = np.full(rows, NO_WORKLOAD)
    workload[tagged] = pick(tag_shares / tag_shares[-1], spread(rng.standard_normal(len(tagged)), instances[tagged]))
    return Projects(
        model=model,
        insists=modest & (rng.random(rows) < np.array(facts.SPEC_SHARE)[model]),
        scarcity=normal_quantile(spread(scarce, weight)),
        user=pick(lognormal_shares(facts.USERS, facts.USER_SPREAD), spread(owned, instances)),
        workload=workload,
    )


def _tied(rng: np.random.Generator, to: Floats, correlation: float) -> Floats:
    """Return a normal score that has this correlation with the normal score `to`."""
    return correlation * to + math.sqrt(1.0 - correlation**2) * rng.standard_normal(len(to))


def _sums(owner: Ints, amount: NDArray[Any]) -> Floats:
    """Return what the rows of each owner add up to."""
    return np.bincount(owner, weights=amount).astype(np.float64)
