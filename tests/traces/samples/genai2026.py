from pathlib import Path

ROWS = {"usage": 6, "requests": 5, "series": 6}
_CONTAINER = "086b31f81b1cf0f15e43fe568e3fb8e4"


def write(folder: Path) -> list[Path]:
    files = {
        "qps.csv": "timestamp_anon,value,container_ip,request_type\n"
        "1662859176.0,0.09,,API Requests\n"
        f"1662859233.0,0.27,{_CONTAINER},Generative Requests\n",
        "queue_size_raw_anon.csv": "value,container_ip,timestamp_anon\n0.0,,1662858720.0\n3.0,NULL,1662858777.0\n",
        "basemodel_update_latency_anon.csv": "timestamp_anon,value,container_ip\n"
        f"1662859290.0,2639.0,{_CONTAINER}\n1662859404.0,2766.0,{_CONTAINER}\n",
        "pod_gpu_duty_cycle_anon.csv": "value,timestamp_anon,container_ip\n"
        f"0.0,1662858720.0,{_CONTAINER}\n99.5,1662858777.0,{_CONTAINER}\n",
        "pod_gpu_memory_used_bytes_anon.csv": "timestamp_anon,value,container_ip\n"
        f"1662858720.0,33879490560.0,{_CONTAINER}\n1662858777.0,1048576.0,{_CONTAINER}\n",
        "pod_memory_util_anon.csv": "value,timestamp_anon,container_ip\n"
        f"0.5,1662858720.0,{_CONTAINER}\n-0.000012,1662858777.0,{_CONTAINER}\n",
        "lora_request_trace.csv": "gmt_create,predict_type,predict_status,exec_time_seconds,groupId,prompt_length,"
        "negative_prompt_length,num_images_per_prompt,num_inference_steps,checkpoint_model_version_id,num_lora\n"
        "2024-11-15 16:57:50,TXT_2_IMG,SUCCEED,32.0,G0000,63.0,26.0,1.0,30.0,M0000,0\n"
        "2024-11-15 18:16:14,TXT_2_IMG,PROCESSING,43.0,G0001,93.0,,1.0,40.0,M0001,2\n"
        "2024-11-15 18:16:15,TXT_2_IMG,PENDING,0.0,G0001,,,,,,0\n",
        "data_trace_processed.csv": "predict_type,exec_time_seconds,style_type,prompt_length,negative_prompt_length,"
        "num_images_per_prompt,num_inference_steps,checkpoint_model_version_id,lora_args\n"
        "e867a9754d73155e,22.0,88585aaa7d5402c0,54.0,26.0,1.0,30.0,0a80ffe64c68aa57,[]\n"
        "e867a9754d73155e,18.0,,54.0,50.0,1.0,30.0,f9c95dd7e904711e,"
        "\"[{'modelVersionId': '9232', 'scale': 0.8}, {'modelVersionId': '6013', 'scale': 1.0}]\"\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    return [folder / name for name in files]
