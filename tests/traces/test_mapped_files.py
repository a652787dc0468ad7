"""Files of one's own log: formats give the same trace, mappings are kept as files, damage is named."""

from __future__ import annotations

import json
from datetime import timedelta

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from gputwin.core.errors import InputError
from gputwin.traces.ingest import Options, ingest
from gputwin.traces.readers.mapped import parse_map
from tests.traces.test_mapped_reader import END, START, SUBMIT, read


def test_every_file_format_gives_the_same_trace(tmp_path):
    frame = pl.DataFrame(
        {
            "id": [1, 2, 3],
            "team": ["a,b", "c", None],
            "at": [SUBMIT, START, END],
            "took": [timedelta(seconds=90), timedelta(hours=2), None],
            "gpus": [1.0, 0.5, 8.0],
        }
    )
    rows = [
        f"{r['id']};{r['team'] or ''};{r['at'].isoformat()};{'' if r['took'] is None else r['took']};{r['gpus']}"
        for r in frame.iter_rows(named=True)
    ]
    semicolons = "id;team;at;took;gpus\n" + "\n".join(rows) + "\n"
    commas = semicolons.replace("a,b", '"a,b"').replace(";", ",")
    records = [
        {**r, "at": r["at"].timestamp(), "took": None if r["took"] is None else r["took"].total_seconds()}
        for r in frame.iter_rows(named=True)
    ]
    frame.write_parquet(tmp_path / "source.parquet")
    files = {
        "jobs.csv": commas.encode(),
        "semicolons.csv": semicolons.encode(),
        "jobs.tsv": b"\xef\xbb\xbf" + semicolons.replace(";", "\t").replace("\n", "\r\n").encode(),
        "jobs.jsonl": "".join(json.dumps(r) + "\n" for r in records).encode(),
        "jobs.parquet": (tmp_path / "source.parquet").read_bytes(),
    }
    mapping = "job_id=id,tenant=team,submit=at,duration=took,gpus=gpus"
    traces = {name: read(tmp_path, data, mapping, file=name) for name, data in files.items()}
    assert traces["jobs.csv"].tasks["duration_seconds"].to_list() == [90.0, 7200.0, None]
    for trace in traces.values():
        assert (trace.meta.rows_read, trace.meta.clock) == (3, "absolute")
        assert_frame_equal(trace.tasks, traces["jobs.csv"].tasks)


def test_the_mapping_is_kept_in_the_trace_and_reads_the_file_again(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("id,t,mem,kind\n1,2024-03-01 10:00:00,8,x\n")
    mapping = parse_map("job_id=id,submit=t,memory=mem:GiB,gpu_model==A100", zone="Asia/Tokyo")
    first = ingest([path], tmp_path / "trace", Options(mapping=mapping))
    again = ingest([path, tmp_path / "trace" / "map.yaml"])
    assert_frame_equal(first.tasks, again.tasks)
    assert (again.meta.zone, again.meta.origin_unix_seconds) == ("Asia/Tokyo", SUBMIT.timestamp() - 9 * 3600)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gputwin-map: 1\nfields: [1\n", "not YAML"),
        ("gputwin-map: 2\nfields: {submit: t}\n", "first line is 'gputwin-map: 1'"),
        ("gputwin-map: 1\nfields: {submit: {col: t}}\n", "field 'submit' is neither"),
        ("gputwin-map: 1\nfield: {submit: t}\n", "unknown key 'field'"),
        ("gputwin-map: 1\nzone: Mars/Base\nfields: {submit: t}\n", "is no time zone"),
        ("gputwin-map: 1\nfields: {submit: t}\nstatus: {OK: great}\n", "cannot be 'great'"),
        ("gputwin-map: 1\ntable: nodes\nfields: {submit: t}\n", "cannot become the table 'nodes'"),
    ],
)
def test_a_wrong_mapping_file_is_named(tmp_path, text, says):
    (tmp_path / "map.yaml").write_text(text)
    (tmp_path / "jobs.csv").write_text("t\n1\n")
    with pytest.raises(InputError) as caught:
        ingest([tmp_path / "jobs.csv", tmp_path / "map.yaml"])
    assert "map.yaml" in str(caught.value)
    assert says in str(caught.value)


def test_a_damaged_parquet_file_is_one_line(tmp_path):
    pl.DataFrame({"id": list(range(1000)), "t": list(range(1000))}).write_parquet(tmp_path / "good.parquet")
    data = (tmp_path / "good.parquet").read_bytes()
    half = len(data) // 2
    for bad in (data[:half], data[:4] + bytes(200) + data[204:], data[:half] + b"\xff" * (half - 8) + data[-8:]):
        (tmp_path / "bad.parquet").write_bytes(bad)
        with pytest.raises(InputError) as caught:
            ingest([tmp_path / "bad.parquet"], options=Options(mapping=parse_map("job_id=id,submit=t")))
        assert "bad.parquet" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_real_log_read_by_a_mapping_is_the_one_its_own_reader_gives(real_data):
    path = real_data / "thetagpu" / "thetagpu_jobs.csv.gz"
    mapping = parse_map(
        "job_id=job,submit=submit_time,wait=wait_time,duration=run_time,limit=wall_time,instances=gpu_num,gpus==1,"
        "status=new_status"
    )
    mapped, own = ingest([path], options=Options(mapping=mapping)), ingest([path], options=Options(format="thetagpu"))
    same = ["submit_time", "start_time", "end_time", "duration_seconds", "requested_seconds", "instances", "gpu_count"]
    assert_frame_equal(mapped.tasks.select(*same, "status"), own.tasks.select(*same, "status"))
    assert mapped.meta.origin_unix_seconds == own.meta.origin_unix_seconds
