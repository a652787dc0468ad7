from pathlib import Path

ROWS = {"tasks": 4}
HEADER = (
    "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,"
    "memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time\n"
)


def write(folder: Path) -> list[Path]:
    path = folder / "disaggregated_DLRM_trace.csv"
    path.write_text(
        HEADER + "instance_7185,HN,app_0,12,12,1,1,25,25,120.0,120.0,680.0,800.0,8,,,\n"
        "instance_13574,CN,app_130,64,64,0,0,1,1,320.0,320.0,255.0,300.0,-1,1435629.0,1435629.0,1435760.0\n"
        "instance_20,CN,app_130,64,64,0,0,1,1,320.0,320.0,255.0,300.0,-1,475.00000000000006,480.0,\n"
        "instance_21,HN,app_0,12,12,1,1,25,25,120.0,120.0,680.0,1171.879883,8,,,75.0\n"
    )
    return [path]
