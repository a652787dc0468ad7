"""What the report was made from, so that it can be made again."""

from __future__ import annotations

from gputwin.core.version import VERSION
from gputwin.report.page import Kind, Part, Section, TablePart
from gputwin.report.report_input import ReportInput

_MOST_FILES = 100


def manifest(subject: ReportInput) -> Section:
    """Return where everything comes from: source, inputs with checksums, fingerprint, version, seed."""
    meta = subject.trace.meta
    facts = {
        "gputwin": VERSION,
        "source": meta.source,
        "title": meta.title,
        "generated as": subject.generated_from,
        "seed": subject.seed,
        "cluster": None if subject.cluster is None else subject.cluster.name,
        "schema": f"version {meta.schema_version}",
        "fingerprint": meta.fingerprint,
    }
    rows = tuple((name, str(value)) for name, value in facts.items() if value)
    parts: list[Part] = [TablePart("Facts", {"what": Kind.TEXT, "value": Kind.CODE}, rows)]
    if meta.inputs:
        files = tuple((i.file, f"{i.bytes:,}", i.sha256) for i in meta.inputs[:_MOST_FILES])
        left = len(meta.inputs) - len(files)
        note = f"{left:,} further files are not listed." if left else ""
        kinds = {"file": Kind.CODE, "bytes": Kind.NUMBER, "SHA-256": Kind.CODE}
        parts.append(TablePart("Input files", kinds, files, note))
    count = len(meta.inputs)
    made = f"{count:,} input file{'s' if count > 1 else ''}" if count else subject.generated_from or meta.source
    note = "The fingerprint is the SHA-256 over the digests of the trace's tables: same fingerprint, same trace."
    conclusion = f"Made by gputwin {VERSION} from {made}; fingerprint {meta.fingerprint[:12]}."
    return Section("manifest", "Manifest", tuple(parts), (note,), conclusion=conclusion)
