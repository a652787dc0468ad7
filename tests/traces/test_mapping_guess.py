"""The guess of a mapping: offered and explained, taken only where nothing is unclear."""

from __future__ import annotations

from pathlib import Path

import pytest

from gputwin.cli.main import main
from gputwin.core.errors import InputError
from gputwin.traces.ingest import Options, ingest

CLEAR = (
    "JobID,Team,submittedAt,startedAt,duration_min,numGPUs,memory_gb,state,note\n"
    "1,a,2024-03-01 10:00:00,2024-03-01 10:05:00,90,8,64,Succeeded,x\n"
)


ODD = (
    "Ticket;wrapped up;put in;kicked off;cards\n"
    "a;04.03.2024 12:00:00;04.03.2024 08:00:00;04.03.2024 09:00:00;8\n"
    "b;04.03.2024 11:00:00;04.03.2024 10:00:00;04.03.2024 10:00:00;1\n"
)


def table(folder: Path, text: str) -> Path:
    path = folder / "jobs.csv"
    path.write_text(text)
    return path


def test_a_table_without_a_mapping_is_refused_with_the_mapping_its_columns_suggest(tmp_path):
    with pytest.raises(InputError) as caught:
        ingest([table(tmp_path, CLEAR)])
    message = str(caught.value)
    assert "--map 'job_id=JobID,submit=submittedAt,start=startedAt,duration=duration_min:min," in message
    assert "total_gpus=numGPUs,memory=memory_gb:GB" in message


def test_a_clear_guess_is_taken_when_asked_for_and_units_come_from_names(tmp_path):
    tasks = ingest([table(tmp_path, CLEAR)], options=Options(guess=True)).tasks
    assert tasks.select("tenant", "start_time", "duration_seconds", "gpu_count", "status").row(0) == (
        "a",
        300.0,
        5400.0,
        8,
        "completed",
    )


@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        ("id,created_at,submitted_at\n1,0,5\n", "submit may be 'created_at' or 'submitted_at'"),
        ("id,submit,nodes,gpus\n1,0,2,8\n", "'gpus' may be the GPUs of the job (total_gpus) or of one instance (gpus)"),
        ("id,submit,gpus\n1,0,8\n2,0,32\n", "'gpus' goes up to 32, more GPUs than most nodes have"),
        ("id,submit,mem\n1,0,16\n", "'mem' has numbers without a unit"),
        ("id,submit\n1,0\n", "no column is named like a number of GPUs"),
        (ODD, "by its dates 'put in' submit, 'kicked off' start, 'wrapped up' end"),
    ],
)
def test_an_unclear_guess_is_never_taken(tmp_path, text, doubt):
    path = table(tmp_path, text)
    with pytest.raises(InputError) as caught:
        ingest([path], tmp_path / "trace", Options(guess=True))
    assert doubt in str(caught.value)
    assert "--map '" in str(caught.value)
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize(
    ("rows", "field", "per_instance"),
    [
        ("1,0,1,4\n2,0,2,16\n", "total_gpus=gpus", [4, 8]),
        ("1,0,1,4\n2,0,4,2\n", "gpus=gpus", [4, 2]),
    ],
)
def test_rows_that_show_whose_gpus_are_counted_leave_no_doubt(tmp_path, capsys, rows, field, per_instance):
    path = table(tmp_path, "id,submit,nodes,gpus\n" + rows)
    assert main(["ingest", str(path), "--guess", "-o", str(tmp_path / "trace")]) == 0
    assert f",{field}'" in capsys.readouterr().out
    assert ingest([path], options=Options(guess=True)).tasks["gpu_count"].to_list() == per_instance


def test_a_doubt_can_be_accepted_so_that_one_command_reads_any_table(tmp_path, capsys):
    path = table(tmp_path, "id,submit,nodes,gpus\n1,0,2,8\n")
    assert main(["ingest", str(path), "--guess", "-o", str(tmp_path / "a")]) == 2
    assert main(["ingest", str(path), "--guess", "--yes", "-o", str(tmp_path / "a")]) == 0
    assert "unclear: 'gpus' may be" in capsys.readouterr().out


def test_a_column_whose_cells_do_not_suit_its_name_is_not_proposed(tmp_path):
    with pytest.raises(InputError) as caught:
        ingest([table(tmp_path, "id,submit,duration\n1,0,short\n2,5,long\n")])
    assert "duration=" not in str(caught.value)


def test_requests_are_told_from_jobs_by_their_tokens(tmp_path):
    path = table(tmp_path, "timestamp,client_id,prompt_tokens,completion_tokens\n1709287200,a,5,6\n")
    assert ingest([path], options=Options(guess=True)).meta.tables == {"requests": 1}


def test_the_command_explains_its_guess_and_the_proposed_option_gives_the_same_trace(tmp_path, capsys, monkeypatch):
    # Wide enough for whole sentences in cells, whatever the length of the path.
    monkeypatch.setenv("COLUMNS", "240")
    path = table(tmp_path, CLEAR)
    assert main(["ingest", str(path), "--guess", "-o", str(tmp_path / "a")]) == 0
    out = capsys.readouterr().out
    assert "a usual name for when it was asked for" in " ".join(out.split())
    assert "not used: note" in out
    option = out.split("--map '")[1].split("'")[0]
    assert main(["ingest", str(path), "--map", option, "-o", str(tmp_path / "b")]) == 0
    assert (tmp_path / "a" / "tasks.parquet").read_bytes() == (tmp_path / "b" / "tasks.parquet").read_bytes()
    assert main(["ingest", str(path), "--map-file", str(tmp_path / "a" / "map.yaml"), "-o", str(tmp_path / "c")]) == 0
    assert (tmp_path / "a" / "tasks.parquet").read_bytes() == (tmp_path / "c" / "tasks.parquet").read_bytes()


def test_two_ways_to_say_the_mapping_are_one_too_many(tmp_path, capsys):
    assert main(["ingest", str(table(tmp_path, CLEAR)), "--guess", "--map", "submit=submittedAt"]) == 2
    assert "exclude one another" in capsys.readouterr().err


def test_times_are_found_by_their_dates_where_no_column_is_named_like_one(tmp_path):
    tasks = ingest([table(tmp_path, ODD)], options=Options(guess=True, accept=True)).tasks
    assert tasks.sort("submit_time").select("submit_time", "start_time", "end_time", "gpu_count").rows() == [
        (0.0, 3600.0, 14400.0, 8),
        (7200.0, 7200.0, 10800.0, 1),
    ]


@pytest.mark.parametrize(
    ("first", "second", "days"),
    [("28/02/2024", "29/02/2024", 1), ("02/28/2024", "02/29/2024", 1), ("04/03/2024", "05/03/2024", 1)],
    ids=["day first", "month first", "what changes is the day"],
)
def test_dates_between_slashes_are_read_by_what_their_numbers_allow(tmp_path, first, second, days):
    rows = f"1,{first} 08:00:00,N/A,,4\n2,{second} 08:00:00,{second} 09:00:00,2.5h,4\n"
    named = table(tmp_path, f"id,queued_at,began_at,took,gpus\n{rows}")
    tasks = ingest([named], options=Options(guess=True)).tasks
    assert tasks["duration_seconds"].to_list() == [None, 9000.0]
    times = tasks.sort("submit_time").select("submit_time", "start_time").rows()
    assert times == [(0.0, None), (days * 86_400.0, days * 86_400.0 + 3600.0)]


def test_two_columns_of_dates_are_submission_and_start_where_durations_are_told(tmp_path):
    rows = "1,2024-02-28T08:00:00,2024-02-28T09:00:00,2.5h,4\n2,2024-02-29T08:00:00,2024-02-29T09:00:00,1h,4\n"
    named = table(tmp_path, f"id,a,b,took,gpus\n{rows}")
    tasks = ingest([named], options=Options(guess=True, accept=True)).tasks
    assert tasks.select("submit_time", "start_time", "end_time").row(0) == (0.0, 3600.0, 3600.0 + 9000.0)


def test_a_table_without_any_time_is_refused_with_the_names_of_its_columns(tmp_path, capsys):
    assert main(["ingest", str(table(tmp_path, "id,what\n1,x\n")), "--guess"]) == 2
    assert "no column looks like a time" in (told := capsys.readouterr().err)
    assert "'id', 'what'" in told
