"""An option of `simulate` that cannot act beside the others is refused or noted in one line; none is ignored silently."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gputwin.cli.main import main

TRACE = ("synthetic:philly?jobs=40", "--cluster", "homogeneous:4x8")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--round 1m", "--round has no effect without --planner or --elastic"),
        ("--elastic shrink:scaling_exponent=0.8 --round 1m", "--round has no effect"),
        ("--repair 2h", "--repair has no effect without --mtbf or --faults"),
        ("--carbon 100", "--carbon has no effect without --power"),
        ("--planner max-min-speed --order sjf", "--planner decides who runs, so --order has no effect"),
        ("--planner max-min-speed --backfill easy", "--planner decides who runs, so --backfill has no effect"),
        ("--elastic afs:scaling_exponent=0.8 --order sjf", "--elastic decides who runs, so --order has no effect"),
        ("--faults mtbf=2d --mtbf 1d", "--mtbf and --faults mtbf=2d say the same thing twice"),
        ("--faults mtbf=2d,repair=1h --repair 2h", "--repair and --faults repair=1h say the same thing twice"),
        ("--faults repair=4h", "nothing in it makes a node fail"),
        ("--quota a=16,a=8", "'a' is given twice"),
        ("--quota a,b=16", "write name=value,name=value; names that have = or , go into a file, see --tenants"),
        ("--quota a=16 --tenant a:gpus=8", "its terms have gpus already"),
        ("--elastic afs:curves=drawn,scaling_exponent=0.8", "both say how fast jobs are"),
        ("--interference built-in --sharing exclusive", "--interference has no effect under --sharing exclusive"),
    ],
)
def test_what_cannot_act_is_refused(options: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", *TRACE, *options.split(), "--json", "-q"]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--speed A100=2", "speed of A100 has no effect: no GPU of homogeneous:4x8 is one"),
        ("--power-limit A100=150", "power.limits of A100 has no effect"),
        ("--checkpoint interval=30m,save=20s", "checkpoints have no effect: nothing stops or resizes a job"),
        ("--priorities 0=0.5,1=0.5", "drawn priorities have no effect: no rule goes by them"),
        ("--locality rack=10m", "locality of a rack has no effect: no node of homogeneous:4x8 has a rack"),
        ("--interference built-in", "interference has no effect: every job asks for whole GPUs"),
    ],
)
def test_what_changes_nothing_here_is_noted(options: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", *TRACE, *options.split(), "--json", "-q"]) == 0
    said = capsys.readouterr()
    assert words in said.err
    assert words in " ".join(json.loads(said.out)["warnings"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--spot 0.3", "--spot: no effect without --cluster"),
        ("--target p95_wait=10m --seeds 5", "no effect without --cluster"),
        ("--cluster homogeneous:4x8 --sla 2s", "--sla: no effect on node pools"),
        ("--cluster homogeneous:4x8 --hazard 0.1", "--hazard: no effect without --spot above 0"),
        ("--cluster homogeneous:4x8 --spot 0.3 --zone mars", "--zone: no effect without --availability"),
        ("--cluster homogeneous:4x8 --spot 0.3 --price-power 2", "--price-power: no effect without --spot-prices"),
        ("--cluster homogeneous:4x8 --spot 0.3 --spot-prices .", "a folder, not a file"),
        ("--min 5 --max 2", "--min 5 --max 2: give 0 ≤ min ≤ max"),
    ],
)
def test_options_of_the_other_kind_of_autoscaling_are_refused(
    options: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["autoscale", "synthetic:genai2026?jobs=200", *options.split(), "--json", "-q"]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_the_format_of_raw_files_is_refused_for_what_is_a_trace_already(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", TRACE[0], "--format", "philly", "-q"]) == 2
    assert "is a trace already, so the format 'philly' of raw files has no effect" in capsys.readouterr().err


def test_demand_cannot_grow_to_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *TRACE, "--target", "p95_wait=1h", "--growth", "0", "-q"]) == 2
    assert "--growth 0: give a positive factor" in capsys.readouterr().err


def _with_limits(folder: Path, instances: int) -> list[str]:
    """Return a log of two jobs with requested times, the first a gang, and the cluster it runs on."""
    log = folder / "theta.csv"
    log.write_text(
        "job,user,project,gpu_num,node_num,submit_time,wait_time,run_time,wall_time,node_hour,new_status\n"
        f"1,a,p,{instances},{instances},1663833600,0,600,3600,1.5,Passed\n2,a,p,1,1,1663833660,0,600,3600,0.2,Passed\n"
    )
    return [str(log), "--cluster", "homogeneous:4x8"]


@pytest.mark.parametrize(("instances", "noted"), [(9, True), (8, False)])
def test_gangs_that_no_node_can_hold_do_not_wait_for_one(
    instances: int, noted: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", *_with_limits(tmp_path, instances), "--locality", "node=10m", "--json", "-q"]) == 0
    assert ("locality of a node has no effect: no job is a gang" in capsys.readouterr().err) == noted


@pytest.mark.parametrize(
    ("options", "noted"),
    [
        ("--order fifo", True),
        ("--order las", True),
        ("--fairness drf", True),
        ("--order sjf", False),
        ("--order srtf", False),
        ("--order slurm-multifactor", False),
        ("--backfill easy", False),
        ("--fairness wfq", False),
        ("--fairness themis", False),
    ],
)
def test_predictions_that_no_rule_asks_for_are_noted(
    options: str, noted: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ["simulate", *_with_limits(tmp_path, 8), "--predict", "requested", *options.split(), "--json", "-q"]
    assert main(run) == 0
    assert ("predictions have no effect: order" in capsys.readouterr().err) == noted


@pytest.mark.parametrize("options", ["--mtbf 30d --repair 2h", "--order srtf"])
def test_what_acts_is_not_noted(options: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", *TRACE, "--checkpoint", "interval=30m,save=20s", *options.split(), "--json", "-q"]) == 0
    assert "no effect" not in capsys.readouterr().err
