"""Legal layouts against the published tables: profiles, every maximal layout, and all counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gputwin.optimization.mig.layouts import layouts, maximal_layouts, mix_of
from gputwin.simulation.mig_profiles import MIG_GPUS


@pytest.fixture(scope="module")
def tables(reference: Path) -> dict:
    return json.loads((reference / "oracles" / "mig" / "mig_tables.json").read_text())


def test_profiles_are_the_published_ones(tables: dict) -> None:
    assert set(MIG_GPUS) == set(tables["gpus"])
    for name, facts in tables["gpus"].items():
        gpu = MIG_GPUS[name]
        assert (gpu.compute_slices, gpu.memory_slices) == (facts["compute_slices"], facts["memory_slices"])
        ours = {p.name: (p.compute_slices, p.memory_slices, list(p.starts), p.most, p.sms) for p in gpu.profiles}
        theirs = {
            p["name"]: (p["compute_slices"], p["memory_slices"], p["starts"], p["max_instances"], p["sm"])
            for p in facts["profiles"]
        }
        assert ours == theirs, name


@pytest.mark.parametrize("which", ["without_double_memory_1g", "all_profiles_without_media"])
def test_every_maximal_layout_is_found_and_no_other(tables: dict, which: str) -> None:
    for name, facts in tables["gpus"].items():
        gpu = MIG_GPUS[name]
        names = tuple(
            p.name
            for p in gpu.profiles
            if not p.name.endswith("+me") and (which.startswith("all") or (p.compute_slices, p.memory_slices) != (1, 2))
        )
        found = maximal_layouts(gpu, names)
        published = {frozenset((p, s) for p, s in layout) for layout in facts[f"maximal_layouts_{which}"]}
        assert {frozenset(layout) for layout in found} == published, name
        counts = tables["counts"][name][which]
        every = layouts(gpu, names)
        assert len(every) == len(set(every)) == counts["placed_layouts_including_empty"]
        assert len(found) == counts["maximal_placed_layouts"]
        assert len({mix_of(layout) for layout in found}) == counts["maximal_multisets"]
        assert len({mix_of(layout) for layout in every if layout}) == counts["nonempty_multisets"]
