from pathlib import Path

ROWS = {"nodes": 3, "tasks": 4}


def write(folder: Path) -> list[Path]:
    log = folder / "LAB-2009-1.swf"
    log.write_text(
        "; Version: 2.2\n"
        "; Computer: a cluster\n"
        "; UnixStartTime: 1232982019\n"
        "; TimeZoneString: Europe/Paris\n"
        "; MaxNodes: 3\n"
        "; MaxProcs: 8 (three nodes)\n"
        ";\n"
        "    1     0   10   3600    4  3500.5  2048    4  7200  4096 1  3  1  5 1 -1 -1 -1\n"
        "    2     5   60    100    2      -1    -1   -1    -1    -1 0  4  1 -1 0 -1 -1 -1\n"
        "    3    30  900      0    0      -1    -1    8  3600    -1 5  3  1 -1 1 -1 -1 -1\n"
        "    4    40   20    500    1      -1    -1    1  3600    -1 1  5  2  7 1 -1 -1 -1\n"
        "    4    40   20    200    1      -1    -1    1  3600    -1 2  5  2  7 1 -1 -1 -1\n"
        "    4    -1   -1    300    1      -1    -1    1  3600    -1 3  5  2  7 1 -1 -1 -1\n"
    )
    return [log]
