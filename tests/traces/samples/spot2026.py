from pathlib import Path

ROWS = {"nodes": 3, "tasks": 5, "series": 2 * 4 + 2 * 2 + 2 * 3}


def write(folder: Path) -> list[Path]:
    files = {
        "node_info_df.csv": "gpu_model,gpu_capacity_num,cpu_num,node_name\n"
        "GPU-series-1,4,192,0\nA10,1,128,2\nA100-SXM4-80GB,8,128,3\n",
        "job_info_df.csv": "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,"
        "job_type\n"
        "239255,13,A10,20,1,1,0,2764799,HP\n"
        "253689,13,A10,8,1,1,0,15897599,HP\n"
        "437260,57,A100-SXM4-80GB,15,1.5,16,9589663,41060,Spot\n"
        "437261,57,A10,2,0.29,1,9589663,71718,Spot\n",
        "derived_longest_jobs_top200.csv": "job_name,organization,job_type,duration,gpu_request,cpu_request,worker_num,"
        "gpu_seconds,submit_time\n"
        "253689,13,HP,15897599.0,1.0,8.0,1,15897599.0,0.0\n"
        "371183,57,HP,342519.0,8.0,184.0,176,482266752.0,521463.0\n",
        "hourly_concurrency.csv": "hour,jobs_active,gpus_active_requested,capacity_gpus,demand_capacity_ratio\n"
        "0,3740.0,6855.64,10412,0.658\n1,3825.0,11101.04,10412,1.066\n",
        "hourly_concurrency_top_models.csv": "hour,A10,A100-SXM4-80GB\n0,2249.14,2116.5\n1,2324.14,2169.5\n",
        "hourly_summary.csv": "submit_hour,jobs,gpu_seconds,gpu_demand\n0,3740,20552025056.11,6855.64\n1,184,1e7,300\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    return [folder / name for name in files]
