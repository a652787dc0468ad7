from pathlib import Path

ROWS = {"nodes": 3, "tasks": 5, "instances": 7, "usage": 11}

HEADERS = {
    "pai_job_table": "job_name,inst_id,user,status,start_time,end_time",
    "pai_task_table": "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type",
    "pai_instance_table": "job_name,task_name,inst_name,worker_name,inst_id,status,start_time,end_time,machine",
    "pai_sensor_table": (
        "job_name,task_name,worker_name,inst_id,machine,gpu_name,cpu_usage,gpu_wrk_util,avg_mem,max_mem,"
        "avg_gpu_wrk_mem,max_gpu_wrk_mem,read,write,read_count,write_count"
    ),
    "pai_group_tag_table": "inst_id,user,gpu_type_spec,group,workload",
    "pai_machine_spec": "machine,gpu_type,cap_cpu,cap_mem,cap_gpu",
    "pai_machine_metric": (
        "worker_name,machine,start_time,end_time,machine_cpu_iowait,machine_cpu_kernel,machine_cpu_usr,machine_gpu,"
        "machine_load_1,machine_net_receive,machine_num_worker,machine_cpu"
    ),
}

# A parameter-server job whose worker starts first, a failed one, one that still runs, and one still in the queue.
TABLES = {
    "pai_job_table": """\
job-ps,id-ps,anna,Terminated,1000.0,1900.0
job-tf,id-tf,ben,Failed,1100.0,1250.0
job-run,id-run,anna,Running,1200.0,
job-new,id-new,cleo,Waiting,1300.0,
""",
    "pai_task_table": """\
job-ps,ps,2.0,Terminated,1060.0,1900.0,100.0,9.765625,,
job-ps,worker,2.0,Terminated,1050.0,1890.0,600.0,29.296875,50.0,T4
job-tf,tensorflow,1.0,Failed,1110.0,1250.0,400.0,2.0,150.0,MISC
job-run,worker,2.0,Running,1205.0,,1200.0,16.0,800.0,V100
""",
    "pai_instance_table": """\
job-ps,ps,inst-0,ps-0,id-ps,Terminated,1061.0,1900.0,cpu-node
job-ps,ps,inst-1,ps-1,id-ps,Terminated,1062.0,1899.0,t4-node
job-ps,worker,inst-2,worker-0,id-ps,Terminated,1050.0,1890.0,t4-node
job-ps,worker,inst-3,worker-1,id-ps,Terminated,1055.0,1880.0,t4-node
job-tf,tensorflow,inst-4,tf-0,id-tf,Failed,1110.0,,t4-node
job-run,worker,inst-5,run-0,id-run,Running,1205.0,,v100-node
job-run,worker,inst-6,,id-run,Waiting,,,
""",
    "pai_sensor_table": """\
job-ps,ps,ps-0,id-ps,cpu-node,,52.5,,1.25,2.5,,,1000.5,2000.25,10.5,20.5
job-ps,ps,ps-1,id-ps,t4-node,,40.0,,1.0,2.0,,,900.0,1800.0,9.0,18.0
job-ps,worker,worker-0,id-ps,t4-node,/dev/nvidia0,140.5,16.0625,1.5,2.25,1.25,2.375,21271328.5,16376189.5,2922.5,3419.5
job-ps,worker,worker-1,id-ps,t4-node,/dev/nvidia1,150.5,12.5,1.5,2.25,1.25,2.375,21271327.5,16376188.5,2921.5,3418.5
job-tf,tensorflow,tf-0,id-tf,t4-node,/dev/nvidia0,0.0,0.0,0.5,0.75,0.125,0.25,0.0,0.0,0.0,0.0
job-run,worker,run-0,id-run,v100-node,/dev/nvidia3,800.0,640.25,8.0,12.0,14.5,15.75,5.0,6.0,7.0,8.0
""",
    "pai_group_tag_table": """\
id-ps,anna,,group-a,ctr
id-tf,ben,T4,group-b,
id-run,anna,V100,group-c,bert
""",
    "pai_machine_spec": """\
cpu-node,CPU,96,512,0
t4-node,T4,96,512,2
v100-node,V100,96,512,8
""",
    "pai_machine_metric": """\
ps-0,cpu-node,1061,1900,0.0028667,3.583,14.928,,18.298,111649584.5,5.05,18.515
ps-1,t4-node,1062,1899,0.01,3.5,14.5,87.75,18.25,111649584.25,5.0,18.5
worker-0,t4-node,1050,1890,0.01,3.5,14.5,87.75,18.25,111649584.25,5.0,18.5
worker-1,t4-node,1055,1880,0.01,3.5,14.5,87.75,18.25,111649584.25,5.0,18.5
tf-0,t4-node,1110,1250,0.01,3.5,14.5,87.75,18.25,111649584.25,5.0,18.5
""",
}


def write(folder: Path) -> list[Path]:
    paths = [folder / f"{table}.csv" for table in TABLES]
    for path in paths:
        path.write_text(TABLES[path.stem])
    return paths
