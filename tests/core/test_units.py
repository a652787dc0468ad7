"""Spellings of amounts and durations, as Kubernetes and Slurm write them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputwin.core.errors import UserError
from gputwin.core.units import (
    format_duration,
    parse_duration,
    parse_quantity,
    parse_slurm_duration,
    parse_slurm_memory,
    parse_slurm_size,
    parse_slurm_tres,
    short_duration,
)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("500m", Fraction(1, 2)),
        ("2", 2),
        ("0", 0),
        ("1.5", Fraction(3, 2)),
        (".5", Fraction(1, 2)),
        ("+1", 1),
        ("-1", -1),
        ("128974848", 128974848),
        ("1Ki", 1024),
        ("1k", 1000),
        ("1.5Gi", 3 * 2**29),
        ("1G", 10**9),
        ("1e3", 1000),
        ("12E2", 1200),
        ("1E", 10**18),
        ("1Ei", 2**60),
        ("100n", Fraction(1, 10**7)),
        ("1u", Fraction(1, 10**6)),
    ],
)
def test_a_kubernetes_quantity_is_exact(text, amount):
    assert parse_quantity(text) == amount


@pytest.mark.parametrize("text", ["", "x", "1 Gi", "1GiB", "1K", "0x10", "1e", "1e999999999", "1e-", "--1", "Gi", "٣x"])
def test_what_is_no_quantity_is_a_users_mistake(text):
    with pytest.raises(UserError, match="not a Kubernetes quantity"):
        parse_quantity(text)


@given(st.integers(0, 10**12), st.sampled_from(["", "m", "k", "Ki", "M", "Mi", "G", "Gi"]))
def test_quantities_keep_their_order_and_scale(number, suffix):
    assert parse_quantity(f"{number}{suffix}") == number * parse_quantity(f"1{suffix}")


@given(st.text(max_size=30))
def test_any_text_is_a_value_or_a_users_mistake(text):
    for parse in (parse_quantity, parse_slurm_size, parse_slurm_tres, parse_slurm_duration, parse_slurm_memory):
        try:
            parse(text)
        except UserError as error:
            assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("text", "mib"),
    [("500G", 512_000), ("4000M", 4000), ("4000", 4000), ("1.50T", 1_572_864), ("512K", Fraction(1, 2))],
)
def test_slurm_sizes_are_in_mib(text, mib):
    assert parse_slurm_size(text) == mib


@pytest.mark.parametrize(
    ("text", "mib", "per"), [("4000Mc", 4000, "cpu"), ("4Gn", 4096, "node"), ("16G", 16384, "job"), ("0n", 0, "node")]
)
def test_slurm_memory_says_what_it_is_for(text, mib, per):
    assert parse_slurm_memory(text) == (mib, per)


def test_slurm_resources_are_counts_and_mib():
    assert parse_slurm_tres("cpu=64,mem=500G,node=2,billing=64,gres/gpu=8,gres/gpu:a100=8") == {
        "cpu": 64,
        "mem": 512_000,
        "node": 2,
        "billing": 64,
        "gres/gpu": 8,
        "gres/gpu:a100": 8,
    }
    assert parse_slurm_tres("cpu=2K,energy=1M") == {"cpu": 2048, "energy": 2**20}


@pytest.mark.parametrize("text", ["", "cpu", "cpu=", "=4", "cpu=-1", "cpu=4,", "cpu=4;mem=1G"])
def test_what_is_no_list_of_resources_is_a_users_mistake(text):
    with pytest.raises(UserError):
        parse_slurm_tres(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1-02:03:04", 93_784.0),
        ("00:00:01", 1.0),
        ("100:00:00", 360_000.0),
        ("02:30", 150.0),
        ("00:01.500", 1.5),
        ("UNLIMITED", None),
        ("Partition_Limit", None),
        ("INVALID", None),
        ("", None),
    ],
)
def test_slurm_durations_are_seconds(text, seconds):
    assert parse_slurm_duration(text) == seconds


@pytest.mark.parametrize("text", ["5", "1-", "1:2:3:4", "-00:10:00", "1d"])
def test_what_is_no_slurm_duration_is_a_users_mistake(text):
    with pytest.raises(UserError, match="not a Slurm duration"):
        parse_slurm_duration(text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("5m", 300), ("1.5h", 5400), ("2d", 172_800), ("10ms", 0.01)]
)
def test_durations_of_the_command_line(text, seconds):
    assert parse_duration(text) == seconds


def test_durations_are_shown_as_people_say_them():
    assert format_duration(3.2) == "3.2 s"
    assert format_duration(310) == "5 min 10 s"
    assert format_duration(7500) == "2 h 05 min"
    assert format_duration(None) == "–"
    assert format_duration(float("inf")) == "unlimited"


def test_a_short_duration_has_no_parts_that_are_zero() -> None:
    assert [short_duration(s) for s in (45, 60, 300, 90, 7200, 7500, 172800)] == [
        *("45 s", "1 min", "5 min", "1 min 30 s", "2 h", "2 h 05 min", "2 d"),
    ]
