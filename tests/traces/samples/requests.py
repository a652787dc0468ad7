from pathlib import Path

ROWS = {"requests": 4, "series": 4}


def write(folder: Path) -> list[Path]:
    files = {
        "AzureLLMInferenceTrace_conv.csv": "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
        "2023-11-16 18:15:46.6805900,374,44\r\n"
        "2023-11-16 18:15:50.9951690,396,109",
        "conversation_trace.jsonl": '{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]}\n'
        '{"timestamp": 3000, "input_length": 7322, "output_length": 490, "hash_ids": [0, 14, 15]}\n',
        "language_m-large_client_rates.csv": "client,window_start_s,rate_rps,cv,arrival_pattern,param_1,param_2\n"
        "0,0,1.33,8.59,Weibull,0.37,0.39\n1,600,0.27,6.01,Gamma,0.49,3.38\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text, newline="")
    return [folder / name for name in files]
