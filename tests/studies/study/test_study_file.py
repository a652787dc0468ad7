"""A study file: what it may say, what it becomes, and mistakes told in one line with their place."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from gputwin.core.errors import UserError
from gputwin.simulation.scenario import Scenario
from gputwin.studies.study import read_study, study_of, study_schema
from gputwin.studies.study.expand import replicates_of, variants_of
from gputwin.traces.locate import open_trace

BASE = {"trace": "synthetic:pai2020?jobs=60", "cluster": "homogeneous:4x8"}


def labels(**fields) -> list[str]:
    return [variant.label for variant in variants_of(study_of({**BASE, **fields}))]


def test_a_grid_combines_all_values_and_its_first_point_is_the_baseline():
    assert labels(grid={"order": ["fifo", "sjf"], "load_scale": [1, 2]}) == [
        "fifo / load_scale 1",
        "fifo / load_scale 2",
        "sjf / load_scale 1",
        "sjf / load_scale 2",
    ]
    assert labels() == ["base"]
    assert labels(variants={"now": {}, "new": {"order": "sjf"}}, grid={"seed": [1, 2]}) == [
        "now / seed 1",
        "now / seed 2",
        "new / seed 1",
        "new / seed 2",
    ]


def test_a_grid_reaches_into_any_field_by_its_path():
    cluster = {"name": "mine", "groups": [{"name": "a", "count": 2, "gpus": 8}]}
    grid = {
        "cluster.groups.0.count": [2, 3],
        "faults.mtbf_seconds": [86400, 864000],
        "checkpoints.restart_seconds": 60,
        "power": [None, {"limits": {"V100": 200}}],
    }
    found = variants_of(study_of({**BASE, "cluster": cluster, "grid": grid}))
    assert len(found) == 8
    last = found[-1].scenario
    assert last.cluster.node_count == 3
    assert last.faults.mtbf_seconds == 864000
    assert last.checkpoints.restart_seconds == 60
    assert last.power.limits == {"V100": 200.0}
    assert found[0].scenario.power is None
    assert found[0].label.startswith("cluster.groups.0.count 2 / faults.mtbf_seconds 86400")


def test_a_rule_given_by_its_name_can_be_varied_in_its_parts():
    study = study_of({**BASE, "scenario": {"fairness": "quota"}, "grid": {"fairness.tenants.a.gpus": [4, 8]}})
    found = variants_of(study)
    assert [v.scenario.fairness.tenants["a"].gpus for v in found] == [4, 8]
    assert found[0].scenario.fairness.policy.name == "quota"


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"trace": None}, "field 'trace'"),
        ({"colour": 1}, r"field 'colour': .*known: name, trace"),
        ({"grid": {"ordr": ["fifo"]}}, "field 'grid.ordr': a scenario has no such field; known: "),
        ({"grid": {"order": []}}, "field 'grid.order'"),
        ({"grid": {"load_scale": [1, -2]}}, "field 'grid.load_scale.1': give more than 0"),
        ({"grid": {"order": ["fifo", "sjf:agin=1"]}}, r"field 'grid\.order\.1': .*'agin'"),
        ({"grid": {"placement": ["best-fti"]}}, "field 'grid.placement.0': .*did you mean 'best-fit'"),
        (
            {"grid": {"order": ["fifo", "srtf"]}, "scenario": {"backfill": "easy"}},
            "field 'grid.order.1': order 'srtf', which stops running jobs,",
        ),
        (
            {"variants": {"a": {"order": "srtf"}}, "grid": {"backfill": ["greedy", "easy"]}},
            r"'srtf', which stops running jobs, does not go with backfill 'easy'; use strict or greedy \(in: a / easy\)",
        ),
        ({"grid": {"order.name": ["fifo"]}, "scenario": {"order": "sjf"}}, "field 'grid.order.name.0': 'sjf' has no parts"),
        ({"grid": {"checkpoints.rul": ["young"]}}, "field 'grid.checkpoints.rul.0'"),
        ({"grid": {"order": ["fifo", "fifo"]}}, "two points of the study are the same: fifo"),
        ({"scenario": {"backfil": "greedy"}}, "field 'scenario.backfil'"),
        ({"scenario": {"seed": -1}}, "field 'scenario.seed': give 0 or more"),
        ({"scenario": {"trace": "x"}}, "field 'scenario.trace': it stands at the top"),
        ({"variants": {"a": {"load_scale": "fast"}}}, "field 'variants.a.load_scale'"),
        ({"seeds": []}, "field 'seeds'"),
        ({"seeds": [1, 1]}, "field 'seeds': give at least one seed, and each once"),
        ({"seeds": [1, 2], "windows": 3}, "field 'windows': give seeds or windows"),
        ({"windows": 1}, "field 'windows': give 2 or more"),
        ({"targets": {"p95_wait": "soon"}}, r"field 'targets\.p95_wait': 'soon' is not a duration"),
        ({"targets": {"p95": 1}}, r"field 'targets\.p95': unknown metric; known: mean_wait"),
        ({"forecast": {"horizon": "1h", "modl": 1}}, r"field 'forecast\.modl'"),
        ({"analyses": ["everything"]}, r"field 'analyses"),
        ({"name": "../up"}, "field 'name'"),
        ({"grid": {"seed": list(range(1000)), "load_scale": [1 + k / 1000 for k in range(200)]}}, "more than 100,000 runs"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_with_its_place(fields, line):
    data, file = {k: v for k, v in {**BASE, **fields}.items() if v is not None}, Path("study.yaml")
    with pytest.raises(UserError, match=line) as raised:
        variants_of(study_of(data, file), file)
    assert str(raised.value).startswith("study.yaml")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "line"), [("- a\n", "it has no fields"), ("a: [", "not YAML"), ("1: 2\n", "must be text")]
)
def test_a_file_that_is_no_study_is_one_line(tmp_path, text, line):
    path = tmp_path / "study.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=line):
        read_study(path)
    with pytest.raises(UserError, match="No such file"):
        read_study(tmp_path / "none.yaml")


def replicates(opened=None, **fields):
    study = study_of({**BASE, **fields})
    return replicates_of(study, opened, variants_of(study))


def test_seeds_are_those_of_the_generator_for_a_generated_trace():
    found = replicates(seeds=[3, 5])
    assert [r.trace for r in found] == [f"synthetic:pai2020?jobs=60&seed={s}" for s in (3, 5)]
    assert [r.of(Scenario(trace="x")).seed for r in found] == [3, 5]
    (one,) = replicates(trace="synthetic:pai2020?jobs=60&seed=9")
    assert one.trace.endswith("seed=9")
    with pytest.raises(UserError, match="the trace names a seed, and the study several"):
        replicates(trace="synthetic:pai2020?jobs=60&seed=9", seeds=2)


def test_seeds_that_would_change_nothing_are_refused(tmp_path):
    folder = str(tmp_path / "trace")
    with pytest.raises(UserError, match=r"seeds change nothing.*windows: 5"):
        replicates(trace=folder, seeds=3)
    found = replicates(trace=folder, seeds=3, scenario={"faults": {"mtbf_seconds": 1e6}})
    assert [r.seed for r in found] == [0, 1, 2]


def test_windows_cut_the_trace_into_parts_that_cover_it_once():
    trace = open_trace(BASE["trace"])
    found = replicates(trace, windows=4)
    sizes = [trace.between(*r.window).tasks.height for r in found]
    assert sum(sizes) == trace.tasks.height
    assert max(sizes) - min(sizes) <= 0.3 * trace.tasks.height
    assert all(a.window[1] == b.window[0] for a, b in pairwise(found))
    assert found[1].of(Scenario(trace="x")).slice.start_time == found[1].window[0]


def test_the_schema_knows_every_field_of_a_study_and_of_its_scenarios():
    schema = json.loads(study_schema())
    assert set(schema["properties"]) >= {"trace", "cluster", "grid", "seeds", "targets", "analyses", "forecast"}
    inside = set(schema["properties"]["scenario"]["properties"])
    assert inside == set(Scenario.model_fields) - {"trace", "format", "cluster"}
    assert set(schema["properties"]["grid"]["properties"]) == set(Scenario.model_fields)
    named = {text.split("/")[-1] for text in _references(schema)}
    assert named <= set(schema["$defs"])


def _references(value):
    if isinstance(value, dict):
        for key, part in value.items():
            if key == "$ref":
                yield part
            else:
                yield from _references(part)
    elif isinstance(value, list):
        for part in value:
            yield from _references(part)


def test_a_study_is_called_by_its_file_unless_it_says_otherwise(tmp_path):
    path = tmp_path / "orders.yaml"
    path.write_text(yaml.safe_dump(BASE))
    assert read_study(path).name == "orders"
    path.write_text(yaml.safe_dump({**BASE, "name": "mine"}))
    assert read_study(path).name == "mine"
