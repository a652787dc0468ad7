"""Runs that a tuning study kept are taken again only where they would come out the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from gputwin.optimization.tuning.runs import Simulations
from gputwin.optimization.tuning.study_file import read_study

STUDY = """
trace: synthetic:philly?jobs=60
cluster: small.yaml
windows: 2
held_out: 2
configurations: {order: [fifo], faults: [{log: failures.csv}]}
"""
FILES = {
    "small.yaml": "groups:\n- {name: a, count: 2, gpus: 8}\n",
    "failures.csv": "node,down_time,up_time\n0,100,200\n",
}


@pytest.mark.parametrize(
    ("changed", "by"), [("small.yaml", ("count: 2", "count: 3")), ("failures.csv", ("200", "900"))]
)
def test_a_run_is_made_again_when_a_file_it_depends_on_has_changed(
    tmp_path: Path, changed: str, by: tuple[str, str]
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "study.yaml").write_text(STUDY)

    def runs() -> Simulations:
        return Simulations(read_study(tmp_path / "study.yaml"), store=tmp_path / "kept.jsonl")

    first = runs()
    first.metrics(first.study.present, 0)
    assert len(runs().known) == 1
    (tmp_path / changed).write_text(FILES[changed].replace(*by))
    assert not runs().known
