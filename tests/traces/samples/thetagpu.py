from pathlib import Path

ROWS = {"tasks": 3}


def write(folder: Path) -> list[Path]:
    jobs = folder / "thetagpu_jobs.csv"
    jobs.write_text(
        ",job,user,project,state,gpu_num,cpu_num,node_num,submit_time,wait_time,run_time,wall_time,node_hour,"
        "new_status\n"
        "4514,10108115,0.0,0.0,0,1.0,0,1.0,1663881807.0,11578629.0,3602.24,3600.0,1.000622222222222,Failed\n"
        "0,10108560,83709710735692.0,59952278975375.0,0,4.0,0,4.0,1664197697.0,0.0,100.5,43200.0,0.1,Pass\n"
        "15820,10137505,0.0,0.0,0,1.0,0,1.0,1686217164.0,22.0,377.98,14400.0,0.10499444444444445,Killed\n"
    )
    return [jobs]
