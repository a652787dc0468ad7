from pathlib import Path

ROWS = {"nodes": 3}


def write(folder: Path) -> list[Path]:
    topology = folder / "topo.csv"
    topology.write_text("ip,DSW,PSW,ASW\n0c9d9d,G6,P10,S14\n525c32,G6,P12,S14\n99becf,G6,P10,S34\n")
    return [topology]
