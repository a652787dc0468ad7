import json
from pathlib import Path

ROWS = {"nodes": 2, "tasks": 4, "instances": 7, "series": 6}

JOBS = [
    {
        "status": "Pass",
        "vc": "ee9e8c",
        "jobid": "application_1506638472019_14199",
        "attempts": [
            {
                "start_time": "2017-10-07 01:12:09",
                "end_time": "2017-10-07 01:13:23",
                "detail": [{"ip": "m47", "gpus": ["gpu0", "gpu1"]}],
            },
            {
                "start_time": "2017-10-07 01:13:30",
                "end_time": "2017-10-09 06:53:12",
                "detail": [{"ip": "m12", "gpus": ["gpu0", "gpu1"]}],
            },
        ],
        "submitted_time": "2017-10-07 01:11:39",
        "user": "ce2f4c",
    },
    {
        "status": "Failed",
        "vc": "6214e9",
        "jobid": "application_1506638472019_14200",
        "attempts": [
            {
                "start_time": "2017-10-07 02:00:00",
                "end_time": "2017-10-07 03:00:00",
                "detail": [
                    {"ip": "m47", "gpus": ["gpu0", "gpu1", "gpu2", "gpu3"]},
                    {"ip": "m12", "gpus": ["gpu0", "gpu1"]},
                ],
            }
        ],
        "submitted_time": "2017-10-07 01:59:00",
        "user": "ce2f4c",
    },
    {
        "status": "Killed",
        "vc": "6214e9",
        "jobid": "application_1506638472019_14201",
        "attempts": [],
        "submitted_time": "2017-11-05 01:30:00",
        "user": "a1b2c3",
    },
    {
        "status": "Pass",
        "vc": "6214e9",
        "jobid": "application_1506638472019_14202",
        "attempts": [
            {
                "start_time": "2017-10-07 04:00:00",
                "end_time": None,
                "detail": [
                    {"ip": "m47", "gpus": ["gpu4", "gpu5"]},
                    {"ip": "m12", "gpus": ["gpu0", "gpu1"]},
                ],
            }
        ],
        "submitted_time": "2017-10-07 04:00:00",
        "user": "a1b2c3",
    },
]


def write(folder: Path) -> list[Path]:
    log = folder / "cluster_job_log"
    log.write_text(json.dumps(JOBS, indent=4))
    machines = folder / "cluster_machine_list"
    machines.write_text("machineId, number of GPUs, single GPU mem\nm47,8, 24GB\nm12,2, 12GB\n")
    sequence = folder / "philly_node_sequence.csv"
    sequence.write_text(
        "time,active,total\n2017-10-07 01:00:00,1,2\n2017-10-07 01:01:00,2,2\n2017-10-07 01:02:00,2,2\n"
    )
    return [log, machines, sequence]
