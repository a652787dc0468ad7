from pathlib import Path

ROWS = {"tasks": 4}


def write(folder: Path) -> list[Path]:
    mapping = folder / "map.yaml"
    mapping.write_text(
        "gputwin-map: 1\n"
        "table: tasks\n"
        "zone: Europe/Berlin\n"
        "fields:\n"
        "  job_id: id\n"
        "  tenant: team\n"
        "  submit: submitted_at\n"
        "  start: {column: began, unit: ms}\n"
        "  duration: took\n"
        "  status: state\n"
        "  total_gpus: gpus\n"
        "  cpus: cpu\n"
        "  memory: mem\n"
        "  gpu_model: {value: A100}\n"
        "status: {OK: completed}\n"
    )
    jobs = folder / "jobs.csv"
    jobs.write_text(
        "id,team,submitted_at,began,took,state,gpus,cpu,mem\n"
        "1,vision,2024-03-01 10:00:00,1709283900000,00:10:00,OK,8,64,512Gi\n"
        "2,speech,2024-03-01 11:00:00,1709287200000,1-02:03:04,failed,0.5,500m,16GB\n"
        "3,vision,2024-03-01 11:30:00,1709290800000,,running,1,2,8Gi\n"
        "4,vision,2024-03-01 12:00:00,,,pending,2.5,8,\n"
    )
    return [jobs, mapping]
