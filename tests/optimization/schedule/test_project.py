"""Published project-scheduling instances, and schedules worked by hand."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from gputwin.optimization.schedule.project import Project, Schedule, least_makespan, serial_schedule, work_bound

SAMPLE = 34
"""Every tenth of the 340 instances; all of them are in benchmarks/scheduling.py."""


def load(reference: Path) -> list[tuple[str, Project, int]]:
    data = json.loads(gzip.decompress((reference / "oracles" / "packing" / "psplib_j30.json.gz").read_bytes()))
    return [
        (
            i["name"],
            Project(
                tuple(i["duration"]),
                tuple(map(tuple, i["demand"])),
                tuple(i["capacity"]),
                tuple(map(tuple, i["successors"])),
            ),
            i["optimum"],
        )
        for i in data["instances"]
    ]


def is_valid(project: Project, schedule: Schedule) -> bool:
    """Return whether precedence and every resource hold at every time."""
    starts, durations = schedule.starts, project.durations
    if any(starts[j] < starts[i] + durations[i] for i, after in enumerate(project.successors) for j in after):
        return False
    if max(s + d for s, d in zip(starts, durations, strict=True)) != schedule.makespan:
        return False
    for at in range(schedule.makespan):
        running = [i for i, s in enumerate(starts) if s <= at < s + durations[i]]
        for r, capacity in enumerate(project.capacities):
            if sum(project.demands[i][r] for i in running) > capacity:
                return False
    return True


def test_a_sample_of_published_instances_is_proven_optimal(reference: Path) -> None:
    cases = load(reference)
    assert len(cases) == 340
    proven = 0
    for name, project, optimum in cases[::10]:
        found = least_makespan(project, seconds=10.0)
        assert is_valid(project, found), name
        assert found.bound <= optimum <= found.makespan, name
        assert work_bound(project) <= optimum
        proven += found.is_optimal
    assert proven >= 0.95 * SAMPLE


def test_two_activities_on_one_resource_run_one_after_the_other() -> None:
    project = Project((3, 4), ((2,), (2,)), (3,), ((), ()))
    assert serial_schedule(project) == [4, 0]
    found = least_makespan(project)
    assert (found.makespan, found.is_optimal) == (7, True)
