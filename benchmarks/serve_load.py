"""How fast the server answers many clients: each reads, waits a moment, reads again, for a minute.

    python benchmarks/serve_load.py --clients 200 --seconds 60

Prints requests, failures, and percentiles of the time of reads, by address.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np

import gputwin
from gputwin.simulation.scenario import scenario_of
from gputwin.studies.store import RunStore

SERVE = [sys.executable, "-c", "from gputwin.cli.main import run; run()", "serve"]


def prepare(folder: Path) -> str:
    trace = gputwin.generate("pai2020", jobs=2000).to_trace().save(folder / "traces" / "bench")
    store = RunStore(folder)
    scenario = scenario_of({"trace": str(trace.path), "cluster": "homogeneous:100x8", "backfill": "greedy"})
    key = store.key(scenario, trace)
    store.run(key, lambda: gputwin.simulate(scenario))
    return key


async def client(
    port: int, paths: list[str], until: float, pause: float, seed: int, seen: list[tuple[str, float, int]]
) -> None:
    """Read one address after another over one connection, as a browser does."""
    chance = random.Random(seed)
    await asyncio.sleep(chance.random() * pause)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    while time.monotonic() < until:
        path = chance.choice(paths)
        begun = time.monotonic()
        try:
            status = await asyncio.wait_for(read(reader, writer, port, path), 30)
        except (OSError, EOFError, ValueError, TimeoutError):
            status = 0
            writer.close()
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        seen.append((path.partition("?")[0], time.monotonic() - begun, status))
        await asyncio.sleep(pause * (0.5 + chance.random()))
    writer.close()


async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, path: str) -> int:
    """Return the status of an answer after its last byte.

    Plain sockets: a full HTTP client needs more CPU for a request than the server, and would measure itself.
    """
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: */*\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = next(
        (line.partition(b":")[2] for line in head.split(b"\r\n") if line.startswith(b"content-length:")), None
    )
    if length is not None:
        await reader.readexactly(int(length))
    else:
        while size := int(await reader.readline(), 16):
            await reader.readexactly(size + 2)
        await reader.readline()
    return int(head.split(b" ", 2)[1])


async def load(port: int, paths: list[str], clients: int, seconds: float, pause: float) -> list[tuple[str, float, int]]:
    seen: list[tuple[str, float, int]] = []
    until = time.monotonic() + seconds
    await asyncio.gather(*(client(port, paths, until, pause, k, seen) for k in range(clients)))
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--pause", type=float, default=1.0, help="mean time between a client's reads, s")
    parser.add_argument("--workspace", type=Path, help="a folder that has a run already; one is made otherwise")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = asked.workspace or Path(made)
        run = RunStore(folder).list()[-1].key if asked.workspace else prepare(folder)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        server = subprocess.Popen([*SERVE, "--port", str(port), "--workspace", str(folder)], stdout=subprocess.PIPE)
        assert server.stdout is not None
        server.stdout.readline()
        base = f"http://127.0.0.1:{port}"
        api = f"/api/runs/{run}"
        paths = ["/api/traces", "/api/runs", api, f"{api}/jobs?limit=50", f"{api}/series", f"{api}/cluster?share=0.4"]
        paths += ["/api/policies", "/api/health", "/", f"/runs/{run}/jobs"]
        for path in paths:
            httpx.get(base + path, timeout=60)
        own = time.process_time()
        seen = asyncio.run(load(port, paths, asked.clients, asked.seconds, asked.pause))
        own = time.process_time() - own
        server.send_signal(signal.SIGINT)
        server.wait(20)
    failed = [s for s in seen if s[2] != 200]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = 1000 * (used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime) / max(len(seen), 1)
    print(
        f"the server used {busy:.1f} ms of CPU a read, its start included; the clients {1000 * own / len(seen):.1f} ms"
    )
    print(f"{len(seen):,} reads by {asked.clients} clients in {asked.seconds:g} s, {len(failed)} failed")
    tell("all", [s[1] for s in seen])
    for path in dict.fromkeys(s[0] for s in seen):
        tell(path.replace(run, "RUN"), [s[1] for s in seen if s[0] == path])


def tell(name: str, seconds: list[float]) -> None:
    p50, p95, p99 = (1000 * np.percentile(seconds, q) for q in (50, 95, 99))
    print(f"  {name:<28} {len(seconds):>6,} reads: p50 {p50:4.0f} ms, p95 {p95:4.0f} ms, p99 {p99:4.0f} ms")


if __name__ == "__main__":
    main()
