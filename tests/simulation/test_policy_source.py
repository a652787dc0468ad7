"""A policy may only read what it is given and what a scheduler knows; its helpers are part of what its code is kept by."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from gputwin.cli.main import main
from gputwin.core.errors import UserError
from gputwin.simulation.elasticity.sizes import ELASTIC
from gputwin.simulation.planning.snapshot import PLANNERS
from gputwin.simulation.policy import KINDS, ORDERINGS
from gputwin.simulation.policy_source import checked
from tests.simulation import policy_samples as samples

RUN = ["simulate", "synthetic:philly?jobs=30", "--cluster", "homogeneous:4x8", "--json", "--quiet"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("jobs[j].start = 0.0\n    return 1.0", "writes to jobs[j].start"),
        ("jobs[j].priority += 1.0\n    return 1.0", "writes to jobs[j].priority"),
        ("job = jobs[j]\n    job.priority = 1.0\n    return 1.0", "writes to job.priority"),
        ("knobs.order[0] = 1.0\n    return 1.0", "writes to knobs.order[0]"),
        ("for job in jobs:\n        job.start = 1.0\n    return 1.0", "writes to job.start"),
        ("knobs.order.fill(0.0)\n    return 1.0", "changes knobs.order"),
        ("global COUNT\n    COUNT = 1\n    return 1.0", "keeps 'COUNT' between calls"),
        ("return jobs[j].duration", "reads jobs[j].duration, which no scheduler knows; read predicted instead"),
        ("return jobs[j].end", "reads jobs[j].end, which no scheduler knows; read believed_end instead"),
        ("return helper(jobs, j)", "writes to jobs[j].attained"),
    ],
)
def test_what_a_policy_must_not_do_is_refused_in_one_line(body, words, tmp_path, capsys):
    file = tmp_path / "bad.py"
    name = f"bad-{abs(hash(body))}"
    file.write_text(
        "import numba\n"
        "from gputwin.simulation.policy import ordering\n"
        "@numba.njit\n"
        "def helper(jobs, j):\n"
        "    jobs[j].attained = 0.0\n"
        "    return 1.0\n"
        f"@ordering('{name}', 'bad')\n"
        f"def key(jobs, j, now, knobs):\n    {body}\n"
    )
    assert main([*RUN, "--order", name, "--policies", str(file)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    line = 5 if "helper" in body else 9 + body.count("\n    ") - body.count("\n    return") - body.count("COUNT = 1")
    assert f"order '{name}' (bad.py, line {line}): {words}" in said.err
    ORDERINGS.discard(name)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled where the compiler is switched off")
def test_a_policy_that_does_not_compile_is_one_line(tmp_path, capsys):
    file = tmp_path / "plain.py"
    file.write_text(
        "from gputwin.simulation.policy import ordering\n"
        "def helper(x):\n    return x\n"
        "@ordering('plain-helper', 'a helper that is not compiled')\n"
        "def key(jobs, j, now, knobs):\n    return helper(jobs[j].submit)\n"
    )
    assert main([*RUN, "--order", "plain-helper", "--policies", str(file)]) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert "plain.py: the policy does not compile" in said.err
    assert "'helper'" in said.err
    ORDERINGS.discard("plain-helper")


@pytest.mark.parametrize("function", [samples.reads, samples.keeps_numbers_of_its_own, samples.draws])
def test_what_a_policy_may_do(function):
    assert checked("order 'fine'", function) is function


def test_every_built_in_policy_keeps_to_it_but_for_what_it_undoes():
    for kind, registry in KINDS.items():
        for policy in registry:
            for value in vars(policy).values():
                if callable(value) and value is not getattr(policy, "schedule_pass", None):
                    checked(f"{kind} '{policy.name}'", value)


def test_a_function_without_a_source_is_refused():
    space: dict[str, object] = {"__name__": "nowhere"}
    exec("def key(jobs, j, now, knobs):\n    return 1.0", space)
    with pytest.raises(UserError, match="put the policy into a file"):
        checked("order 'typed in'", space["key"])  # type: ignore[arg-type]


def test_a_changed_helper_changes_what_the_policy_does(tmp_path):
    """The policy's own file stays as it is; without its helpers in the key, its old code would be found in the cache."""
    policy, helper, script = tmp_path / "mine.py", tmp_path / "helping.py", tmp_path / "run.py"
    policy.write_text(
        "from helping import sign\n"
        "from gputwin.simulation.policy import ordering\n"
        "@ordering('mine', 'first or last')\n"
        "def key(jobs, j, now, knobs):\n"
        "    return sign() * jobs[j].submit\n"
    )
    script.write_text(
        "import polars as pl\n"
        "import gputwin\n"
        "from gputwin.traces.dataset import Trace, TraceMeta\n"
        "tasks = pl.DataFrame({'job_id': list('abc'), 'submit_time': [0.0, 1.0, 2.0], 'duration_seconds': [10.0] * 3,\n"
        "                      'gpu_count': [1] * 3, 'gpu_milli': [1000] * 3})\n"
        "trace = Trace.from_frames({'tasks': tasks}, TraceMeta('by hand'))\n"
        f"result = gputwin.simulate(trace, 'homogeneous:1x1', order='mine', policies=[{str(policy)!r}])\n"
        "print(result.jobs['start_time'].to_list())\n"
    )
    found = []
    for number in ("1.0", "-1.0"):
        helper.write_text(f"import numba\n\n@numba.njit\ndef sign():\n    return {number}\n")
        found.append(_python(script, tmp_path))
    assert found == ["[0.0, 10.0, 20.0]", "[0.0, 20.0, 10.0]"]


def test_a_package_adds_policies_of_every_kind_through_its_entry_points(tmp_path):
    """No installer: a folder on the path with the package and its metadata, as one leaves it there."""
    (tmp_path / "third_party.py").write_text(Path(samples.__file__).with_name("third_party.txt").read_text())
    metadata = tmp_path / "third_party-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party\nVersion: 1.0\n")
    kinds = {**KINDS, "planner": PLANNERS, "elastic": ELASTIC}
    groups = "".join(f"[{registry.package}]\nthird-{kind} = third_party\n" for kind, registry in kinds.items())
    (metadata / "entry_points.txt").write_text(groups)
    script = Path(samples.__file__).with_name("use_third_party.py")
    lines = _python(script, tmp_path).splitlines()
    assert lines == [
        # The longest of those that wait goes first.
        "order [0.0, 15.5, 10.0]",
        # The third overtakes the second. The fifth, which greedy skip would start at 5, is third in line then. Behind other
        # jobs the fourth waits for 7 of its 12 s and the fifth for 11 of its 16 s.
        "backfill [0.0, 10.0, 2.0, 15.0, 20.0] 18.0",
        # The last node.
        "placement [2]",
        # Who came last takes the place of who came before.
        "preemption [21.0, 12.0, 7.0]",
        # Half speed.
        "speed [20.0]",
        # The tenant that came last overtakes.
        "fairness [0.0, 15.0, 10.0]",
        # Both at once, at half speed.
        "sharing [20.0, 11.0]",
        # Rounds every 4 s: the first job runs for 4 s, the newer one from the second round on for 5 s; the fourth round
        # finds the first alone.
        "planner [18.0, 9.0]",
        # One GPU instead of two.
        "elastic [20.0]",
    ]
    assert [line.split()[0] for line in lines] == list(kinds)


def _python(script: Path, folder: Path) -> str:
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
