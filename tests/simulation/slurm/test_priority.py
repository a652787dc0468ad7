"""Factors of the multifactor priority, usage that decays, and the settings of a slurm.conf."""

from __future__ import annotations

from pathlib import Path

import pytest

from gputwin.core.errors import UserError
from gputwin.simulation.slurm.config import read_priority_settings
from gputwin.simulation.slurm.priority import (
    MOST,
    Factors,
    PrioritySettings,
    age_factor,
    breakdown,
    priority,
    size_factor,
)
from gputwin.simulation.slurm.usage import decayed_sum

CONF = """
ClusterName=twin
PriorityType=priority/multifactor
PriorityDecayHalfLife=14-0   # two weeks
PriorityMaxAge=1-12:30
PriorityFavorSmall=YES
PriorityWeightAge=1000
PriorityWeightFairshare=10000
PriorityWeightTRES=CPU=1000,\\
  GRES/gpu=3000
PriorityFlags=NO_FAIR_TREE,MAX_TRES,NO_NORMAL_PART
NodeName=n[1-4] Gres=gpu:8
"""


def test_a_slurm_conf_gives_its_priority_settings(tmp_path: Path) -> None:
    path = tmp_path / "slurm.conf"
    path.write_text(CONF)
    settings = read_priority_settings(path)
    assert settings == PrioritySettings(
        age=1000.0,
        fairshare=10000.0,
        tres={"cpu": 1000.0, "gres/gpu": 3000.0},
        max_age=36.5 * 3600,
        decay_half_life=14 * 86400.0,
        favor_small=True,
        fair_tree=False,
        max_tres=True,
        not_normal=frozenset({"partition"}),
        not_simulated=("PriorityFlags MAX_TRES",),
    )


def test_what_is_not_simulated_is_named(tmp_path: Path) -> None:
    path = tmp_path / "slurm.conf"
    more = "PriorityUsageResetPeriod=MONTHLY\nPrioritySiteFactorPlugin=none\n"
    path.write_text(CONF.replace("MAX_TRES", "INCR_ONLY") + more)
    settings = read_priority_settings(path)
    assert settings.not_simulated == ("PriorityUsageResetPeriod", "PriorityFlags INCR_ONLY")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("PriorityWeightAge=1000", "PriorityWeightAge=-5", "row 7, field 'PriorityWeightAge'"),
        ("PriorityWeightAge=1000", "PriorityWeightAge=", "no value"),
        ("PriorityMaxAge=1-12:30", "PriorityMaxAge=soon", "not a time"),
        ("PriorityFavorSmall=YES", "PriorityFavorSmall=perhaps", "neither YES nor NO"),
        ("GRES/gpu=3000", "GRES/gpu", "not a weight of a resource"),
        ("priority/multifactor", "priority/basic", "use --order fifo"),
    ],
)
def test_a_wrong_setting_is_one_line_with_its_place(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "slurm.conf"
    path.write_text(CONF.replace(old, new))
    with pytest.raises(UserError, match=r"slurm\.conf") as error:
        read_priority_settings(path)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_without_priorities_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "slurm.conf"
    path.write_text("ClusterName=twin\n")
    with pytest.raises(UserError, match="no Priority"):
        read_priority_settings(path)


def test_priority_is_the_weighted_sum_within_its_bounds() -> None:
    settings = PrioritySettings(age=1000, fairshare=10000, job_size=100, tres={"gres/gpu": 3000})
    factors = Factors(age=0.25, fairshare=0.5, job_size=1.0, tres={"gres/gpu": 0.1}, site=7, nice=100)
    assert breakdown(factors, settings)["tres/gres/gpu"] == pytest.approx(300.0)
    assert priority(factors, settings) == 250 + 5000 + 100 + 300 + 7 - 100
    assert priority(Factors(nice=1e6), settings) == 1
    assert priority(Factors(age=1.0), PrioritySettings(age=1e12)) == MOST


def test_age_grows_to_its_maximum() -> None:
    settings = PrioritySettings(max_age=100.0)
    assert [age_factor(wait, settings) for wait in (0.0, 25.0, 100.0, 400.0)] == [0.0, 0.25, 1.0, 1.0]


def test_size_favours_large_or_small_jobs() -> None:
    large = PrioritySettings()
    assert size_factor(64, 8, 64, 8, 60.0, large) == 1.0
    assert size_factor(8, 2, 64, 8, 60.0, large) == pytest.approx((2 / 8 + 8 / 64) / 2)
    assert size_factor(64, 8, 64, 8, 60.0, PrioritySettings(favor_small=True)) == 0.0
    short = PrioritySettings(size_per_time=True)
    assert size_factor(64, 8, 64, 8, 60.0, short) == 1.0
    assert size_factor(64, 8, 64, 8, 600.0, short) == pytest.approx(0.1)


def test_decayed_usage_in_one_step_is_that_of_many() -> None:
    one = decayed_sum(5.0, 2.0, 1000.0, 300.0)
    many = 5.0
    for _ in range(1000):
        many = decayed_sum(many, 2.0, 1.0, 300.0)
    assert many == pytest.approx(one)
    assert decayed_sum(8.0, 0.0, 300.0, 300.0) == pytest.approx(4.0)
    assert decayed_sum(8.0, 2.0, 10.0, 0.0) == 28.0
