import json
from pathlib import Path
from typing import Any

ROWS = {"usage": 4, "series": 2}


def matrix(*series: tuple[dict[str, str], list[list[Any]]]) -> str:
    result = [{"metric": labels, "values": values} for labels, values in series]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def write(folder: Path) -> list[Path]:
    util, memory = folder / "gpu.json", folder / "memory.json"
    name = "DCGM_FI_DEV_GPU_UTIL"
    exporter = {"__name__": name, "pod": "dcgm-exporter-x", "namespace": "monitoring", "Hostname": "n1"}
    job = {"exported_pod": "train-0", "exported_namespace": "vision"}
    times = [1709287200, 1709287260]
    util.write_text(
        matrix(
            ({**exporter, **job, "gpu": "0"}, [[times[0], "50"], [times[1], "70"]]),
            ({**exporter, **job, "gpu": "1"}, [[times[0], "20"], [times[1], "NaN"]]),
            ({**exporter, "gpu": "2"}, [[times[0], "0"], [times[1], "10"]]),
            ({"__name__": "up", "instance": "n1:9400", "job": "dcgm"}, [[times[0], "1"], [times[1], "1"]]),
        )
    )
    memory.write_text(
        matrix(
            ({"pod": "train-0", "namespace": "vision", "container": "main"}, [[times[0], str(1 << 30)]]),
            ({"pod": "train-0", "namespace": "vision", "container": ""}, [[times[0], str(1 << 31)]]),
        )
    )
    # The query dropped the metric's name: the file's name says what it is.
    memory = memory.rename(folder / "memory_bytes.json")
    return [util, memory]
