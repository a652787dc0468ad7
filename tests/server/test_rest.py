"""The REST API answers for traces, policies, scenarios and runs."""

from __future__ import annotations

import io
import re
import zipfile

import polars as pl
from starlette.testclient import TestClient

import gputwin
from gputwin.server.wording import in_page
from tests.server.conftest import CLUSTER, RULES, ended

LOG = "id,team,at,took,gpus\n1,vision,2024-03-01T10:00:00Z,2.5h,8\n2,speech,2024-03-01T11:00:00Z,1h,1\n"


def test_a_trace_is_listed_described_and_checked(client: TestClient) -> None:
    assert "small" in [t["id"] for t in client.get("/api/traces").json()]
    assert client.get("/api/traces/small").json()["description"]["jobs"] == 400
    quality = client.get("/api/traces/small/quality").json()
    assert quality["rows_read"] == quality["rows_kept"] + quality["rows_dropped"]


def test_an_uploaded_table_becomes_a_trace(client: TestClient) -> None:
    options = {"map": "job_id=id,tenant=team,submit=at,duration=took,gpus=gpus", "name": "Our log"}
    started = client.post("/api/traces", files={"files": ("jobs.csv", LOG, "text/csv")}, data=options)
    task = ended(client, started.json())
    assert task["state"] == "done", task
    found = client.get(f"/api{task['page']}").json()
    assert found["id"].startswith("our-log-")
    assert found["description"]["jobs"] == 2
    assert client.delete(f"/api{task['page']}").status_code == 204
    assert client.get(f"/api{task['page']}").status_code == 404


def test_a_bad_cell_is_told_in_words_of_the_form_and_can_be_accepted(client: TestClient) -> None:
    log = f"{LOG}3,vision,soon,10m,1\n"
    options = {"map": "job_id=id,tenant=team,submit=at,duration=took,gpus=gpus"}
    refused = ended(client, client.post("/api/traces", files={"files": ("bad.csv", log)}, data=options).json())
    assert refused["state"] == "failed"
    assert "--" not in refused["error"]
    assert "tick “Accept cells that do not parse”" in refused["error"]
    more = {**options, "lenient": "true"}
    taken = ended(client, client.post("/api/traces", files={"files": ("bad.csv", log)}, data=more).json())
    assert taken["state"] == "done", taken
    findings = client.get(f"/api{taken['page']}/quality").json()["findings"]
    assert "bad.csv" in {f["table"] for f in findings}
    assert not [f for f in findings if "/" in f["table"]]
    assert client.delete(f"/api{taken['page']}").status_code == 204


def test_messages_name_fields_of_forms_and_keep_the_options_of_other_programs() -> None:
    assert in_page("give the cluster with --cluster") == "give the cluster with “Cluster”"
    asked = "no format; if its columns mean this, pass --map 'job_id=id,gpus=g' --table tasks; --guess shows why"
    assert in_page(asked) == "no format; if its columns mean this, put job_id=id,gpus=g into “What columns mean”"
    assert in_page("choose another --first-part") == "choose another “first part”"
    assert "--delimiter" in in_page("export with --delimiter, or pass --lenient to drop such lines")


def test_a_file_that_is_no_trace_fails_in_one_line_without_paths(client: TestClient, workspace: object) -> None:
    started = client.post("/api/traces", files={"files": ("odd.csv", "a,b\n1,2\n", "text/csv")})
    task = ended(client, started.json())
    assert task["state"] == "failed"
    assert "odd.csv" in task["error"]
    assert "\n" not in task["error"]
    assert str(workspace) not in task["error"]


def test_a_run_is_what_simulate_gives_and_is_not_made_twice(client: TestClient, run: str) -> None:
    again = client.post("/api/runs", json={"trace": "small", "cluster": CLUSTER, "rules": RULES}).json()
    assert again == {"run": run, "task": None}
    told = client.get(f"/api/runs/{run}").json()
    wanted = gputwin.simulate("synthetic:pai2020?jobs=400", CLUSTER, **RULES)
    assert told["summary"]["wait_seconds"] == wanted.summary["wait_seconds"]
    assert told["manifest"]["scenario"]["trace"] == "small"


def test_jobs_are_filtered_sorted_and_paged(client: TestClient, run: str) -> None:
    first = client.get(f"/api/runs/{run}/jobs", params={"limit": 10}).json()
    waits = [j["wait_seconds"] for j in first["jobs"]]
    assert first["total"] == 400
    assert waits == sorted(waits, reverse=True)
    assert waits[0] > 0
    tenant = first["jobs"][0]["tenant"]
    own = client.get(f"/api/runs/{run}/jobs", params={"tenant": tenant, "limit": 1000}).json()
    assert {j["tenant"] for j in own["jobs"]} == {tenant}
    assert own["total"] == len(own["jobs"])
    second = client.get(f"/api/runs/{run}/jobs", params={"limit": 5, "offset": 5}).json()["jobs"]
    assert second == first["jobs"][5:10]


def test_a_job_is_explained(client: TestClient, run: str) -> None:
    job = client.get(f"/api/runs/{run}/jobs", params={"limit": 1}).json()["jobs"][0]
    told = client.get(f"/api/runs/{run}/explain", params={"job": job["job_id"], "wait": 60})
    assert told.status_code == 200, told.text
    causes = told.json()["explanation"]["causes_seconds"]
    assert abs(sum(causes.values()) - job["wait_seconds"]) < 1e-6
    assert client.get(f"/api/runs/{run}/explain", params={"job": "nobody", "wait": 60}).status_code == 400


def test_the_cluster_at_a_moment_agrees_with_the_series(client: TestClient, run: str) -> None:
    series = client.get(f"/api/runs/{run}/series").json()
    width = series["time"][2] - series["time"][1]
    k = max(range(1, len(series["time"]) - 1), key=lambda i: series["gpu_allocation"][i])
    seen = [
        client.get(f"/api/runs/{run}/cluster", params={"time": series["time"][k] + width * s / 20}).json()["allocated"]
        for s in range(20)
    ]
    assert abs(sum(seen) / len(seen) - series["gpu_allocation"][k]) < 0.1
    one = client.get(f"/api/runs/{run}/cluster", params={"time": series["time"][k]}).json()
    held = sum(d[1] for n in one["nodes"] for d in n["devices"] if d)
    assert abs(held / 80_000 - one["allocated"]) < 1e-9
    busiest = max(one["nodes"], key=lambda n: n["held"])
    jobs = client.get(f"/api/runs/{run}/nodes/{busiest['node']}").json()["jobs"]
    there = {j["row"] for j in jobs if j["start_time"] <= one["time"] < j["end_time"]}
    assert {d[2] for d in busiest["devices"] if d} <= there


def test_everything_can_be_downloaded(client: TestClient, run: str) -> None:
    archive = zipfile.ZipFile(io.BytesIO(client.get(f"/api/runs/{run}/download").content))
    jobs = pl.read_parquet(io.BytesIO(archive.read(f"{run}/jobs.parquet")))
    assert jobs.height == 400
    table = client.get(f"/api/runs/{run}/tables/jobs")
    assert pl.read_parquet(io.BytesIO(table.content)).equals(jobs)
    text = client.get(f"/api/runs/{run}/tables/groups", params={"format": "csv"})
    assert text.text.startswith("shape,request,size")


def test_policies_and_scenarios_are_told(client: TestClient) -> None:
    found = client.get("/api/policies").json()
    assert {"fifo", "easy", "fgd", "drf"} <= {p["name"] for p in found}
    fields = client.get("/api/scenarios/schema").json()["properties"]
    assert "order" in fields
    assert "policies" not in fields
    good = client.post("/api/scenarios/validate", json={"trace": "small", "rules": {"order": "sjf"}}).json()
    bad = client.post("/api/scenarios/validate", json={"trace": "small", "rules": {"order": "sjff"}}).json()
    assert (good["is_valid"], bad["is_valid"]) == (True, False)
    assert "did you mean 'sjf'" in bad["problem"]


def test_runs_are_compared(client: TestClient, run: str) -> None:
    other = client.post(
        "/api/runs", json={"trace": "small", "cluster": CLUSTER, "rules": {"backfill": "strict"}}
    ).json()
    if other["task"]:
        assert ended(client, other["task"])["state"] == "done"
    told = client.get("/api/compare", params={"runs": f"{other['run']},{run}", "wait": 60})
    assert told.status_code == 200, told.text
    assert "greedy" in told.json()["answer"]["verdict"]["text"]
    assert client.get("/api/compare", params={"runs": run}).status_code == 400


def test_metrics_have_the_names_of_kueue_and_dcgm(client: TestClient, run: str) -> None:
    one = client.get(f"/api/runs/{run}/cluster", params={"share": 0.3}).json()
    text = client.get("/metrics", params={"run": run, "time": one["time"]}).text
    values: dict[str, float] = {}
    for line in text.splitlines():
        if not line.startswith("#") and 'status="inadmissible"' not in line:
            name = line.partition("{")[0]
            values[name] = values.get(name, 0.0) + float(line.rpartition(" ")[2])
    assert values["DCGM_FI_DEV_GPU_UTIL"] / 8000 == one["allocated"]
    assert values["kueue_admitted_active_workloads"] == one["running_jobs"]
    assert values["kueue_pending_workloads"] == one["waiting_jobs"]
    assert abs(values["kueue_cluster_queue_resource_usage"] / 80 - one["allocated"]) < 1e-6


def test_evictions_have_the_reasons_that_kueue_gives(client: TestClient) -> None:
    rules = {"order": "srtf", "backfill": "greedy", "faults": {"mtbf_seconds": 20_000}}
    asked = client.post("/api/runs", json={"trace": "small", "cluster": "homogeneous:3x8", "rules": rules}).json()
    if asked["task"]:
        assert ended(client, asked["task"])["state"] == "done"
    text = client.get("/metrics", params={"run": asked["run"], "time": 1e9}).text
    lines = [line for line in text.splitlines() if line.startswith("kueue_evicted_workloads_total{")]
    reasons = {re.findall(r'reason="(\w+)"', line)[0] for line in lines}
    assert reasons == {"Preempted", "NodeFailures"}
    assert all('underlying_cause=""' in line for line in lines)


def test_terms_of_tenants_are_part_of_the_scenario(client: TestClient) -> None:
    asked = {"trace": "small", "cluster": CLUSTER, "rules": {"fairness": "hdrf"}}
    asked |= {"weights": "a=2, b=1.5", "groups": "a=x/y"}
    found = client.post("/api/scenarios/validate", json=asked).json()
    assert found["is_valid"], found
    tenants = found["scenario"]["fairness"]["tenants"]
    assert (tenants["a"]["weight"], tenants["a"]["group"], tenants["b"]["weight"]) == (2.0, "x/y", 1.5)
    by_quota = client.post("/api/scenarios/validate", json={"trace": "small", "cluster": CLUSTER, "quotas": "a=8"})
    assert by_quota.json()["scenario"]["fairness"]["tenants"]["a"]["gpus"] == 8.0
    wrong = client.post("/api/scenarios/validate", json={"trace": "small", "cluster": CLUSTER, "weights": "a"}).json()
    assert not wrong["is_valid"]
    assert "name=value" in wrong["problem"]
