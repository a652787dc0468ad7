"""Tables of pairs: read, filled in where nothing was measured, and which type a job is of."""

from __future__ import annotations

import gzip
import json

import numpy as np
import polars as pl
import pytest

from gputwin.core.errors import InputError
from gputwin.simulation.interference.model import filled, left_out_errors, thirds
from gputwin.simulation.interference.summary import summary_of
from gputwin.simulation.interference.table import PairTable, built_in, read_table, table_of
from gputwin.simulation.interference.types import job_types

MEASURED = {
    "v100": {
        "('a (batch size 1)', 1)": {"null": 10.0, "('a (batch size 1)', 1)": [5.0, 5.0], "('b', 1)": [8.0, 1.0]},
        "('b', 1)": {"null": 4.0, "('a (batch size 1)', 1)": [1.0, 8.0], "('b', 1)": [0.0, 0.0]},
        "('b', 2)": {"null": 7.0, "('b', 2)": [1.0, 1.0]},
    },
    "v100_unconsolidated": {"('c', 1)": {"null": 1.0}},
}


def rule(types: int, seed: int = 0) -> PairTable:
    """Return a table in which a slowdown is the product of a sensitivity and a pressure."""
    dice = np.random.default_rng(seed)
    excess = dice.uniform(0.2, 1.5, types)[:, None] * dice.uniform(0.2, 1.5, types)[None, :]
    names = tuple(f"family{t // 2} (batch size {t})" for t in range(types))
    return PairTable(names, ("v100",), 1 / (1 + excess)[None], np.full((1, types), np.nan))


def test_gavels_format_is_read(tmp_path):
    table = table_of(MEASURED)
    assert table.types == ("a (batch size 1)", "b")
    assert table.gpus == ("v100",)
    np.testing.assert_allclose(table.speeds, [[[0.5, 0.8], [0.25, 0.0]]])
    # What does not fit together takes turns.
    np.testing.assert_allclose(table.excess, [[[1.0, 0.25], [3.0, 1.0]]])
    file = tmp_path / "pairs.json.gz"
    file.write_bytes(gzip.compress(json.dumps(MEASURED).encode()))
    assert read_table(str(file)).types == table.types


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"v100": 3}', '{"v100": {"a": {"null": 1}}}', '{"v100": {"(\'a\', 1)": {"null": -1}}}']
)
def test_what_is_no_table_is_said_in_one_line(tmp_path, text):
    file = tmp_path / "pairs.json"
    file.write_text(text)
    with pytest.raises(InputError, match="not a table of pairs") as caught:
        read_table(str(file))
    assert "\n" not in str(caught.value)


def test_models_are_found_by_the_beginning_of_their_name():
    table = PairTable(("a",), ("k80", "v100"), np.array([[[0.5]], [[0.8]]]), np.ones((2, 1)))
    assert table.for_models(["V100M32", "K80", "T4"])[:, 0, 0] == pytest.approx([0.25, 1.0, 0.25])


def test_unmeasured_pairs_follow_from_two_probes():
    """Where slowdowns are products, two probes tell them: a pair left out comes back."""
    whole = rule(8)
    speeds = whole.speeds.copy()
    speeds[0, 6, 7] = speeds[0, 3, 4] = np.nan
    back = filled(PairTable(whole.types, whole.gpus, speeds, whole.alone))
    np.testing.assert_allclose(back.speeds, whole.speeds, atol=1e-6)


def test_a_family_left_out_is_predicted_better_than_by_the_mean():
    errors = left_out_errors(rule(10), 0)
    assert len(errors) == 5
    assert all(e.error < 1e-6 < e.error_of_mean for e in errors)


def test_the_built_in_classes_are_the_thirds_of_the_published_table(real_data):
    table = read_table(str(real_data / "gavel_throughputs" / "simulation_throughputs.json.gz"))
    assert len(table.types) == 26
    _, means = thirds(table, table.reference)
    np.testing.assert_allclose(means, built_in().speeds[0], atol=0.005)


def test_left_out_families_of_the_published_table(real_data):
    """The model beats the mean over all pairs, but not for every family; speeds alone do not beat the mean."""
    table = read_table(str(real_data / "gavel_throughputs" / "simulation_throughputs.json.gz"))
    summary = summary_of(table, table.reference)
    assert {e.family for e in summary.errors} == {
        *("ResNet-18", "ResNet-50", "Transformer", "A3C", "LM", "Recommendation", "CycleGAN")
    }
    assert (
        summary.mean_error() < 0.17 < 0.2 < summary.mean_error("error_of_mean") < summary.mean_error("error_by_alone")
    )
    assert "not for Recommendation" in summary.conclusion()


def test_types_by_application_or_by_chance():
    tasks = pl.DataFrame(
        {
            "job_id": ["1", "2", "3", "4", "4"],
            "application": ["Heavy", "x", "x", None, None],
            "tenant": [None, None, None, "t", "t"],
            "user": [None] * 5,
        },
        schema_overrides={"user": pl.String},
    )
    ids = pl.Series(["4", "3", "2", "1"])
    found = job_types(tasks, ids, ("light", "medium", "heavy"), 0)
    assert found.drawn == 3
    assert found.kinds[3] == 2
    assert found.kinds[1] == found.kinds[2]
    # Neither the order of rows nor of jobs matters.
    again = job_types(tasks.reverse(), ids.reverse(), ("light", "medium", "heavy"), 0)
    assert again.kinds.tolist() == found.kinds[::-1].tolist()
    many = pl.DataFrame({"job_id": [str(k) for k in range(3000)]}).with_columns(
        *(pl.lit(None, pl.String).alias(c) for c in ("application", "tenant", "user"))
    )
    kinds = job_types(many, many["job_id"], ("a", "b", "c"), 7).kinds
    assert np.bincount(kinds).min() > 900
