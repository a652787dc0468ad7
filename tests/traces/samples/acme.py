from pathlib import Path

ROWS = {"tasks": 5}


def write(folder: Path) -> list[Path]:
    seren, kalos = folder / "trace_seren.csv", folder / "trace_kalos.csv"
    seren.write_text(
        "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\n"
        "11,u1,1,8,128,Other,FAILED,2023-03-01 00:10:00+08:00,2023-03-01 00:10:30+08:00,2023-03-01 00:12:30+08:00,"
        "120,30,960.0\n"
        "12,u2,3,16,96,Pretrain,COMPLETED,2023-03-01 00:20:00+08:00,2023-03-01 00:20:00+08:00,"
        "2023-03-01 01:20:00+08:00,3600,0,57600.0\n"
        "13,u2,1,0,4,Evaluation,RUNNING,2023-03-01 00:30:00+08:00,2023-03-01 00:31:00+08:00,,,60,\n"
    )
    kalos.write_text(
        "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,"
        "end_time,fail_time,stop_time,duration,queue,gpu_time\n"
        "dlca,uf,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:00+00:00,2023-05-17 11:00:10+00:00,"
        "2023-05-17 11:00:20+00:00,2023-05-17 11:00:20+00:00,,20,10.0,1280.0\n"
        "dlcb,uf,1,8,120,1000,100.0,Pretrain,CANCELLED,2023-05-17 12:00:00+00:00,,2023-05-17 12:30:00+00:00,,"
        "2023-05-17 12:30:00+00:00,,,\n"
    )
    return [seren, kalos]
