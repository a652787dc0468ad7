from pathlib import Path

from gputwin.traces.readers.helios import METRICS

ROWS = {"tasks": 5, "series": 2 * 3 + 2 * len(METRICS)}


def write(folder: Path) -> list[Path]:
    files = {
        "cluster_log.csv": "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,"
        "duration,queue\n"
        "1425511,uXBbc,vcJkd,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0\n"
        "1425512,uVMrF,vchbv,16,64,2,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:37,2020-06-09 18:45:46,249,10\n"
        "1425513,uzqls,vcpDC,0,4,1,CANCELLED,2020-06-09 18:41:28,2020-06-09 18:41:28,2020-06-17 14:15:21,675233,0\n"
        "1425514,uzqls,vcpDC,9,18,2,RUNNING,2020-06-09 18:41:28,2020-06-09 18:41:28,2020-06-17 14:15:21,675233,0\n"
        "1425515,uzqls,vcpDC,8,8,1,NODE_FAIL,2020-06-09 18:41:28,2020-06-09 18:41:28,2020-06-09 18:41:38,10,0\n",
        "cluster_gpu_number.csv": "date,vchbv,vc6YE,total\n2020-06-09,112,128,240\n2020-06-10,112,136,248\n",
        "vc6YE_sequence.csv": f"time,{','.join(METRICS)}\n"
        "2020-06-09 00:00:00,7,7,0,6,6,0,208,162,0,46,0.779,160,2,0,0,160,2,5,1,0,0,5,1\n"
        "2020-06-09 00:01:00,8,7,1,7,6,1,208,208,8,0,1.0,208,2,8,0,216,2,5,1,1,0,6,1\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    return [folder / name for name in files]
