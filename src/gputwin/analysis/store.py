"""An analysis on disk: one Parquet and one CSV file per table, and what it says in words as Markdown and JSON."""

from __future__ import annotations

import json
from pathlib import Path

from gputwin.analysis.analyze import Analysis
from gputwin.core.atomic import atomic_directory

MARKER = "analysis.json"


def save(analysis: Analysis, path: Path) -> Path:
    """Write the analysis to the directory `path`, all or nothing, and return it."""
    with atomic_directory(path, marker=MARKER) as folder:
        lines, index = [f"# {analysis.source}", ""], {}
        for topic in analysis.topics:
            lines += [
                f"## {topic.title}",
                "",
                *(f"- {'Warning: ' if r.is_warning else ''}{r.text}" for r in topic.remarks),
                "",
            ]
            (folder / topic.name).mkdir()
            for name, table in topic.tables.items():
                table.write_parquet(folder / topic.name / f"{name}.parquet")
                table.write_csv(folder / topic.name / f"{name}.csv")
            index[topic.name] = {
                "title": topic.title,
                "tables": {name: table.height for name, table in topic.tables.items()},
                "remarks": [{"text": r.text, "is_warning": r.is_warning} for r in topic.remarks],
                "notes": list(topic.notes),
            }
        (folder / "findings.md").write_text("\n".join(lines), encoding="utf-8")
        text = json.dumps({"source": analysis.source, "topics": index}, indent=1, ensure_ascii=False)
        (folder / MARKER).write_text(text + "\n", encoding="utf-8")
    return path
