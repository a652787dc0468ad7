from pathlib import Path

ROWS = {"tasks": 10, "instances": 7}

HEADER = (
    "JobID|JobName|User|Account|Partition|QOS|State|Submit|Start|End|ElapsedRaw|Timelimit|ReqTRES|AllocTRES|NodeList"
)
LINES = (
    # A two-node job with its steps.
    "101|train|ann|vision|gpu|normal|COMPLETED|2024-01-31T12:00:00|2024-01-31T12:10:00|2024-01-31T13:10:00|3600|"
    "1-00:00:00|billing=64,cpu=64,gres/gpu:a100=16,gres/gpu=16,mem=500G,node=2|"
    "billing=64,cpu=64,gres/gpu:a100=16,gres/gpu=16,mem=500G,node=2|gpu[01-02]",
    "101.batch|batch||vision|||COMPLETED|2024-01-31T12:10:00|2024-01-31T12:10:00|2024-01-31T13:10:00|3600|||"
    "cpu=32,mem=250G,node=1|gpu01",
    "101.0|python||vision|||COMPLETED|2024-01-31T12:10:05|2024-01-31T12:10:05|2024-01-31T13:10:00|3595|||"
    "cpu=64,mem=500G,node=2|gpu[01-02]",
    # A requeued job: two records.
    "102|sweep|bob|nlp|gpu|low|PREEMPTED|2024-01-31T12:01:00|2024-01-31T12:05:00|2024-01-31T12:15:00|600|02:00:00|"
    "cpu=8,gres/gpu=1,mem=64G,node=1|cpu=8,gres/gpu=1,mem=64G,node=1|gpu03",
    "102|sweep|bob|nlp|gpu|low|TIMEOUT|2024-01-31T12:15:00|2024-01-31T12:30:00|2024-01-31T14:30:00|7200|02:00:00|"
    "cpu=8,gres/gpu=1,mem=64G,node=1|cpu=8,gres/gpu=1,mem=64G,node=1|gpu04",
    # An array: one task ran, three wait.
    "103_1|array|ann|vision|gpu|normal|RUNNING|2024-01-31T12:02:00|2024-01-31T12:20:00|Unknown|5000|UNLIMITED|"
    "cpu=4,mem=16G,node=1|cpu=4,mem=16G,node=1|gpu03",
    "103_[2-4%2]|array|ann|vision|gpu|normal|PENDING|2024-01-31T12:02:00|Unknown|Unknown|0|UNLIMITED|"
    "cpu=4,mem=16G,node=1||None assigned",
    # Cancelled in the queue.
    "104|oops|bob|nlp|gpu|normal|CANCELLED by 1234|2024-01-31T12:03:00|2024-01-31T12:04:00|2024-01-31T12:04:00|0|"
    "00:10:00|cpu=1,mem=1G,node=1||None assigned",
    # Two parts of a heterogeneous job.
    "105+0|het|cat|vision|cpu|normal|FAILED|2024-01-31T12:05:00|2024-01-31T12:06:00|2024-01-31T12:07:00|60|"
    "00:10:00|cpu=2,mem=4000M,node=1|cpu=2,mem=4000M,node=1|login1",
    "105+1|het|cat|vision|gpu|normal|OUT_OF_MEMORY|2024-01-31T12:05:00|2024-01-31T12:06:00|2024-01-31T12:07:00|60|"
    "00:10:00|cpu=16,gres/gpu:v100=2,mem=100G,node=1|cpu=16,gres/gpu:v100=2,mem=100G,node=1|gpu05",
    # Pending and single.
    "106|next|cat|vision|gpu|normal|PENDING|2024-01-31T12:09:00|Unknown|Unknown|0|00:10:00|"
    "cpu=16,gres/gpu=4,mem=100G,node=2||None assigned",
)


def write(folder: Path) -> list[Path]:
    jobs = folder / "sacct.txt"
    jobs.write_text("\n".join((HEADER, *LINES)) + "\n")
    return [jobs]
