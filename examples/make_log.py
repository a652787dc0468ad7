"""Writes a made-up job log for the tutorials: four teams share six nodes of eight GPUs for four weeks.

    python examples/make_log.py jobs.csv

The team `llm` submits few, large and long jobs; `vision`, `speech` and `students` many small ones by day. Jobs start in
order of arrival where there is room (a later job that fits may go first). The same file comes out every time.
"""

from __future__ import annotations

import heapq
import random
import sys
from datetime import datetime, timedelta
from pathlib import Path

GPUS = 6 * 8
DAYS = 28
START = datetime(2024, 3, 4)
# team: jobs on a working day, GPUs to choose from, median hours, experiments that its jobs repeat
TEAMS = {
    "llm": (4.0, (16, 24), 11.0, 6),
    "vision": (30.0, (1, 2, 4), 1.5, 8),
    "speech": (22.0, (1, 2, 4), 2.0, 8),
    "students": (45.0, (1,), 0.7, 12),
}


def submissions(rng: random.Random) -> list[dict[str, object]]:
    """Return who asked for what, when, and how long it will run, in order of submission."""
    jobs: list[dict[str, object]] = []
    for team, (per_day, sizes, median, experiments) in TEAMS.items():
        scale = [median * rng.lognormvariate(0.0, 1.0) for _ in range(experiments)]
        shape = [rng.choice(sizes) for _ in range(experiments)]
        for day in range(DAYS):
            busy = 0.3 if (START + timedelta(days=day)).weekday() >= 5 else 1.0
            for _ in range(round(per_day * busy * rng.uniform(0.8, 1.2))):
                hour = min(max(rng.gauss(14.0, 3.5), 0.0), 23.9)
                which = rng.randrange(experiments)
                hours = min(scale[which] * rng.lognormvariate(0.0, 0.35), 72.0)
                at = START + timedelta(days=day, hours=hour)
                user = f"{team}-{which % 3}"
                jobs.append({"team": team, "user": user, "experiment": f"{team}-{which}", "at": at})
                jobs[-1] |= {"gpus": shape[which], "hours": hours}
    return sorted(jobs, key=lambda job: job["at"])  # type: ignore[arg-type, return-value]


def schedule(jobs: list[dict[str, object]]) -> None:
    """Give every job its start: the first moment at which it fits after those before it have had their chance."""
    free, waiting = GPUS, []
    events = [(job["at"], 1, k) for k, job in enumerate(jobs)]
    heapq.heapify(events)
    while events:
        now, is_arrival, k = heapq.heappop(events)
        if is_arrival:
            waiting.append(k)
        else:
            free += jobs[k]["gpus"]
        for w in list(waiting):
            job = jobs[w]
            if job["gpus"] <= free:
                free -= job["gpus"]
                waiting.remove(w)
                job["start"] = now
                job["end"] = now + timedelta(hours=job["hours"])
                heapq.heappush(events, (job["end"], 0, w))


def main(path: Path) -> None:
    """Write the log."""
    jobs = submissions(random.Random(7))
    schedule(jobs)
    lines = ["job_id,team,user,experiment,submitted_at,started_at,finished_at,nodes,gpus,state"]
    for k, job in enumerate(jobs, start=1):
        times = ",".join(job[name].strftime("%Y-%m-%d %H:%M:%S") for name in ("at", "start", "end"))
        state = "Failed" if k % 9 == 0 else "Succeeded"
        who = f"{job['team']},{job['user']},{job['experiment']}"
        lines.append(f"{k},{who},{times},{max(job['gpus'] // 8, 1)},{job['gpus']},{state}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "jobs.csv"))
