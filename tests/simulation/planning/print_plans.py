"""Print a digest of what each planner gives to some random jobs."""

import hashlib

from gputwin.simulation.planning.snapshot import PLANNERS
from gputwin.studies.bench.rounds import active_jobs

if __name__ == "__main__":
    for name in PLANNERS.names():
        plans = [PLANNERS.get(name).make()(active_jobs(jobs, seed=1)).alone for jobs in (7, 60)]
        print(name, hashlib.sha256(b"".join(plan.tobytes() for plan in plans)).hexdigest())
