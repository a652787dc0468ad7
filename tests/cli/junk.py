"""Files and commands that are wrong in one way each, and what the message about each must say."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gputwin.traces.ingest import ingest
from tests.traces.samples import dlrm2025, kubernetes, openb2023, requests

HEADER = dlrm2025.HEADER
GOOD = "instance_1,CN,app_1,64,64,0,0,1,1,320.0,320.0,255.0,300.0,-1,10.0,20.0,30.0\n"


@dataclass(frozen=True)
class Junk:
    """One mistake: how to make it in a folder (returns the command's arguments) and what the message must contain."""

    name: str
    make: Callable[[Path], list[str]]
    says: tuple[str, ...]


def _ingested(name: str, data: bytes | str, *options: str, file: str = "trace.csv", says: tuple[str, ...]) -> Junk:
    """Return the mistake of ingesting a file with these bytes; the message must name the file."""

    def make(folder: Path) -> list[str]:
        (folder / file).write_bytes(data.encode() if isinstance(data, str) else data)
        return ["ingest", str(folder / file), "-o", str(folder / "out"), *options]

    return Junk(name, make, (file, *says))


def row(**cells: str) -> str:
    """Return the good row with other cells in the named columns."""
    names = HEADER.strip().split(",")
    values = GOOD.strip().split(",")
    return ",".join(cells.get(name, value) for name, value in zip(names, values, strict=True)) + "\n"


def _tar(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as out:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def _zip(name: str, data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr(name, data)
    return buffer.getvalue()


def _flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]


_MANY = (HEADER + "".join(row(instance_sn=f"instance_{i}") for i in range(2000))).encode()
_GZIP = gzip.compress(_MANY)
_PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89"
_PODS = json.dumps(kubernetes.as_list(kubernetes.pod("a"), kubernetes.pod("b")))
_LINE = '{"timestamp": 0, "input_length": 10, "output_length": 5, "hash_ids": [0]}\n'

TABLES = (
    _ingested(
        "unknown header", "a,b,c\n1,2,3\n", says=("not a file of any known format", "known formats: acme, dlrm2025")
    ),
    _ingested("missing column", HEADER.replace("role,", "") + GOOD, says=("row 1", "dlrm2025", "'role'")),
    _ingested("bad number", HEADER + GOOD + row(cpu_request="twelve"), says=("row 3, field 'cpu_request'", "'twelve'")),
    _ingested("number with a unit", HEADER + row(memory_limit="320GiB"), says=("row 2", "'320GiB' is not a number")),
    _ingested("decimal comma", HEADER + row(disk_limit='"300,5"'), says=("row 2", "'300,5' is not a number")),
    _ingested("latin-1", (HEADER + GOOD).encode() + row(app_name="caf\xe9").encode("latin-1"), says=("row 3", "UTF-8")),
    _ingested("utf-16", (HEADER + GOOD).encode("utf-16"), says=("UTF-16", "iconv")),
    _ingested("empty", b"", says=("the file is empty",)),
    _ingested("only white space", b" \n\n", says=("known format",)),
    _ingested("header only", HEADER, says=("no rows",)),
    _ingested("NULs", (HEADER + GOOD).encode() + b"\0" * 5000, says=("binary",)),
    _ingested("late NULs", _MANY + b"\0" * 5000 + b"\n", says=("row 2002", "binary")),
    _ingested("PNG", _PNG + bytes(range(256)) * 40, file="trace.png", says=("binary", "give the CSV")),
    _ingested("one line of 10 MB", b"x," * (5 << 20), says=("row 1", "longer than 1 MiB")),
    _ingested("cut last line", (HEADER + GOOD + GOOD)[:-30], says=("12 of 17 fields", "cut short")),
    _ingested("too many fields", HEADER + GOOD + GOOD.strip() + ",99\n", says=("row 3", "more than 17 fields")),
    _ingested("unclosed quote", HEADER + GOOD + row(app_name='"app') + GOOD, says=("row 3", "quote", "never closed")),
    _ingested("quote at the end", HEADER + GOOD + row(deletion_time='"').strip(), says=("row 3", "never closed")),
    _ingested("quoted header", '"' + HEADER + GOOD, says=("row 1", "never closed")),
    _ingested("same column twice", HEADER.strip() + ",role\n" + GOOD, says=("row 1, field 'role'", "twice")),
    _ingested("short line", HEADER + GOOD + "instance_2,CN\n" + GOOD, says=("row 3", "2 of 17 fields", "--lenient")),
    _ingested("old Mac lines", (HEADER + GOOD).replace("\n", "\r"), says=("CR alone", "tr ")),
    _ingested("wrong metric name", "timestamp_anon,value,container_ip\n1,2,3\n", says=("which metric", "qps")),
)

ARCHIVES = (
    _ingested("gzip cut", _GZIP[: len(_GZIP) // 2], file="trace.csv.gz", says=("cut short", "download it again")),
    _ingested("gzip flipped", _flipped(_GZIP), file="trace.csv.gz", says=("damaged", "download it again")),
    _ingested("gzip of nothing", gzip.compress(b""), file="trace.csv.gz", says=("empty",)),
    _ingested("only called gzip", b"\x1f\x8bnope", file="trace.csv.gz", says=("cut short",)),
    _ingested("tar that climbs", _tar(**{"../evil.csv": _MANY}), file="t.tar.gz", says=("'../evil.csv'", "climbs")),
    _ingested("tar from the root", _tar(**{"/tmp/evil.csv": _MANY}), file="t.tar.gz", says=("absolute path",)),
    _ingested("tar cut", _tar(**{"trace.csv": _MANY})[:-40], file="t.tar.gz", says=("cut short or damaged",)),
    _ingested("tar of nothing", _tar(), file="t.tar.gz", says=("binary",)),
    _ingested("zip of folders", _zip("folder/", b""), file="t.zip", says=("no files",)),
    _ingested("zip cut", _zip("trace.csv", _MANY)[:-30], file="t.zip", says=("cut short or damaged",)),
    _ingested("zip bomb", _zip("trace.csv", b"0" * (4 << 20)), file="bomb.zip", says=("expands too far",)),
    _ingested("gzip bomb", gzip.compress(b"0" * (4 << 20)), file="bomb.csv.gz", says=("expands too far",)),
)

DOCUMENTS = (
    _ingested("JSON cut", _PODS[: len(_PODS) // 2], file="pods.json", says=("row 1", "cut short", "again")),
    _ingested("JSON with a stray word", _PODS.replace("}", "} oops", 1), file="pods.json", says=("not JSON", "column")),
    _ingested(
        "JSON of another shape",
        '{"apiVersion": "v1", "kind": "List", "items": {"a": 1}}',
        file="pods.json",
        says=("field 'items'", "expected a list, found an object"),
    ),
    _ingested(
        "JSON number for text",
        _PODS.replace('"vision"', "7", 1),
        file="pods.json",
        says=("items[0].metadata.namespace", "expected text, found a number"),
    ),
    _ingested("JSON of nobody", '{"hello": 1}', file="x.json", says=("not a file of any known format",)),
    _ingested("deep JSON", '{"apiVersion": ' + "[" * 200_000, file="deep.json", says=("nested too deeply",)),
    _ingested(
        "JSONL with a bad line", _LINE + _LINE[:30] + "\n" + _LINE, file="r.jsonl", says=("row 2", "JSON object")
    ),
    _ingested(
        "float where a count belongs",
        _LINE + _LINE.replace("10", "10.5"),
        file="r.jsonl",
        says=("row 2, field 'input_length'", "'10.5' is not a whole number"),
    ),
    _ingested("deep JSONL", _LINE + "[" * 200_000 + "\n", file="r.jsonl", says=("row 2", "JSON object")),
)


def _two_formats(folder: Path) -> list[str]:
    for sample in (dlrm2025, openb2023):
        sample.write(folder)
    (folder / "nodes.csv").unlink()
    return ["ingest", str(folder), "-o", str(folder / "out")]


def _nothing(folder: Path) -> list[str]:
    (folder / "empty").mkdir()
    return ["ingest", str(folder / "empty")]


def _not_ours(verb: str) -> Callable[[Path], list[str]]:
    def make(folder: Path) -> list[str]:
        (folder / "thesis").mkdir()
        (folder / "thesis" / "chapter1.tex").write_text("years of work")
        if verb == "--publisher":
            return ["generate", "pai2020", "--jobs", "10", verb, str(folder / "thesis")]
        given = [str(p) for p in dlrm2025.write(folder)] if verb == "ingest" else ["openb2023", "--jobs", "10"]
        return [verb, *given, "-o", str(folder / "thesis")]

    return make


def _on_a_file(folder: Path) -> list[str]:
    (folder / "taken").write_text("a file")
    return ["ingest", *(str(p) for p in dlrm2025.write(folder)), "-o", str(folder / "taken")]


def _sample(*options: str) -> Callable[[Path], list[str]]:
    return lambda folder: ["ingest", *(str(p) for p in requests.write(folder)), "-o", str(folder / "out"), *options]


COMMANDS = (
    Junk("no such path", lambda folder: ["ingest", str(folder / "nope.csv")], ("nope.csv", "no such file")),
    Junk("folder without files", _nothing, ("empty", "no files")),
    Junk("two formats", _two_formats, ("more than one format: dlrm2025, openb2023", "--format")),
    Junk("format that does not fit", _sample("--format", "slurm"), ("not a slurm file", "try without --format")),
    Junk("unknown format", _sample("--format", "slrum"), ("'slrum'", "did you mean 'slurm'?")),
    Junk(
        "unknown format of nothing raw", lambda _: ["describe", "synthetic:philly", "--format", "slrum"], ("'slurm'",)
    ),
    Junk("strict with findings", _sample("--strict"), ("F04", "without --strict")),
    Junk("ingest over a thesis", _not_ours("ingest"), ("thesis", "refusing to overwrite", "name another folder")),
    Junk("generate over a thesis", _not_ours("generate"), ("thesis", "refusing to overwrite", "name another folder")),
    Junk("output is a file", _on_a_file, ("taken", "is a file; name a folder")),
    Junk("synthetic nope", lambda _: ["describe", "synthetic:nope"], ("'nope'", "known: ")),
    Junk("synthetic typo", lambda _: ["describe", "synthetic:pai2021"], ("did you mean 'pai2020'?",)),
    Junk("jobs=abc", lambda _: ["describe", "synthetic:pai2020?jobs=abc"], ("jobs", "whole number", "'abc'")),
    Junk("jobs=0", lambda _: ["describe", "synthetic:pai2020?jobs=0"], ("between 1 and",)),
    Junk("size=5", lambda _: ["describe", "synthetic:pai2020?size=5"], ("'size'", "known: jobs, seed")),
    Junk("generate typo", lambda _: ["generate", "openb2032"], ("did you mean 'openb2023'?",)),
    Junk("generate none", lambda _: ["generate", "pai2020", "--jobs", "-3"], ("jobs", "-3")),
    Junk("publisher of another", lambda f: ["generate", "philly", "--publisher", str(f / "raw")], ("pai2020", "known")),
    Junk(
        "against nothing",
        lambda f: ["generate", "openb2023", "--jobs", "10", "-o", str(f / "out"), "--against", str(f / "nope")],
        ("nope", "no such file"),
    ),
    Junk("publisher over a thesis", _not_ours("--publisher"), ("thesis", "refusing to overwrite")),
    Junk("unknown option", lambda _: ["ingest", "--froce"], ("--froce", "gputwin ingest --help")),
    Junk("unknown verb", lambda _: ["ingset"], ("ingset", "gputwin --help")),
    Junk("no argument", lambda _: ["ingest"], ("paths", "gputwin ingest --help")),
    Junk("not a number", lambda _: ["generate", "pai2020", "--jobs", "many"], ("--jobs", "gputwin generate --help")),
)


def _damaged_trace(file: str, *says: str) -> Junk:
    def make(folder: Path) -> list[str]:
        ingest(dlrm2025.write(folder), folder / "trace")
        path = folder / "trace" / file
        path.write_bytes(_flipped(path.read_bytes()))
        return ["describe", str(folder / "trace")]

    return Junk(f"damaged {file}", make, ("trace", *says, "ingest again"))


TRACES = (
    _damaged_trace("trace.json", "trace.json", "damaged"),
    _damaged_trace("tasks.parquet", "damaged or was changed"),
    Junk("no trace", lambda folder: ["describe", str(folder / "nope")], ("nope", "no such file")),
)


def _cluster(name: str, text: str, *says: str) -> Junk:
    def make(folder: Path) -> list[str]:
        (folder / "cluster.yaml").write_text(text)
        return ["check", "synthetic:openb2023?jobs=10", "--cluster", str(folder / "cluster.yaml")]

    return Junk(name, make, ("cluster.yaml", *says))


CLUSTERS = (
    _cluster("wrong field", "groups: [{count: 2, gpu: 8}]", "groups.0.gpu", "known: ", "gpus"),
    _cluster("negative count", "groups: [{count: -2, gpus: 8}]", "count must be between 1 and", "-2"),
    _cluster("negative memory", "groups: [{count: 2, memory_mib: -5}]", "memory_mib must be between 0 and"),
    _cluster("count in words", "groups: [{count: many}]", "groups.0.count", "integer"),
    _cluster("absurd count", "groups: [{count: 100000000000}]", "count"),
    _cluster("absurd memory", "groups: [{count: 1, memory_mib: 1e99}]", "memory_mib"),
    _cluster("price of nothing", "groups: [{count: 1, price_per_hour: .nan}]", "price_per_hour"),
    _cluster("deep YAML", "groups: " + "[" * 2000, "not YAML"),
    _cluster("not YAML", "groups: [{count: 2", "not YAML"),
    _cluster("no spec", "just some text", "not a cluster spec", "groups"),
    _cluster("no groups", "name: x", "groups"),
    _cluster("groups is a number", "groups: 5", "groups"),
    _cluster("group is text", "groups: [a100]", "groups.0"),
    _cluster("empty spec", "", "not a cluster spec"),
    _cluster("YAML that runs code", "!!python/object/apply:os.system ['true']", "not YAML"),
    _cluster("binary", "groups: \0\1\2", "not YAML"),
    Junk(
        "no such spec",
        lambda f: ["check", "synthetic:openb2023", "--cluster", str(f / "no.yaml")],
        ("no.yaml", "No such"),
    ),
    Junk(
        "no such cluster", lambda _: ["check", "synthetic:openb2023", "--cluster", "pia2020"], ("'pia2020'", "pai2020")
    ),
    Junk("zero nodes", lambda _: ["check", "synthetic:openb2023", "--cluster", "homogeneous:0x8"], ("count",)),
)

EVERY = (*TABLES, *ARCHIVES, *DOCUMENTS, *COMMANDS, *TRACES, *CLUSTERS)
