from pathlib import Path

ROWS = {"nodes": 2, "tasks": 3}


def write(folder: Path) -> list[Path]:
    nodes = folder / "nodes.csv"
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nnode-0,64000,262144,2,P100\nnode-1,32000,131072,0,\n")
    pods = folder / "pods.csv"
    pods.write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
        "pod-0,12000,16384,1,1000,,LS,Running,0,12537496,0\n"
        "pod-1,6000,12288,1,460,P100|T4,LS,Succeeded,427061,12902960,427065\n"
        "pod-2,8000,30517,0,0,,BE,Pending,427070,12902960,\n"
    )
    return [nodes, pods]
