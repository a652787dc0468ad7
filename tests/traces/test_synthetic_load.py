"""The load that each generator offers its own cluster, by an integral of its own: GPUs × time each task is there."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gputwin.core.units import DAY, HOUR
from gputwin.simulation.cluster import Cluster, open_cluster
from gputwin.simulation.load import check_load
from gputwin.traces.synthetic import NAMES, Synthetic, fidelity, generate
from gputwin.traces.synthetic.arrivals import Rhythm, Sittings, Window, arrivals
from gputwin.traces.synthetic.distributions import Floats, Quantiles
from gputwin.traces.synthetic.load import offered_load
from gputwin.traces.synthetic.offered import runtimes_for_work

WEEK = 7 * DAY
# What any whole week lies between, as a share of all GPUs.
WEEKS = {"pai2020": (0.6, 0.85), "openb2023": (0.0, 0.02), "dlrm2025": (0.5, 0.8), "philly": (0.05, 0.28)}
JOBS_OF_A_WEEK = 119_200  # of pai2020


class Demand:
    """Who asks for how many GPUs from when until when, of a synthetic trace and its own nodes."""

    def __init__(self, trace: Synthetic) -> None:
        tasks = trace.tables["tasks"].filter(pl.col("gpu_count") > 0)
        self.gpus = int(trace.tables["nodes"]["gpu_count"].sum())
        arrived = trace.tables["tasks"]["submit_time"].drop_nulls()
        self.first, self.last = float(arrived.min()), float(arrived.max())  # type: ignore[arg-type]
        times = trace.tables["tasks"].select(pl.max_horizontal(pl.col("submit_time", "start_time", "end_time").max()))
        begin = tasks["submit_time"].fill_null(self.first).to_numpy()
        ended = np.where(
            tasks["submit_time"].is_null().to_numpy(),
            tasks["end_time"].fill_null(np.nan).to_numpy(),
            begin + tasks["duration_seconds"].fill_null(np.nan).to_numpy(),
        )
        end = np.where(tasks["is_running"].to_numpy(), float(times.item()), ended)
        known = ~np.isnan(end)
        held = (tasks["instances"] * tasks["gpu_count"] * tasks["gpu_milli"]).to_numpy() / 1_000
        self.begin, self.end, self.held = begin[known], end[known], held[known]
        self.model = tasks["gpu_model"].fill_null("").to_numpy()[known]

    @property
    def work(self) -> float:
        """Return what arrives per GPU and second."""
        return float(self.held @ (self.end - self.begin) / (self.gpus * (self.last - self.first)))

    def between(self, low: float, high: float, model: str | None = None) -> float:
        """Return the GPUs asked for on average, of all models or of one."""
        inside = np.clip(np.minimum(self.end, high) - np.maximum(self.begin, low), 0.0, None)
        return float((self.held * inside)[self.model == model if model else slice(None)].sum() / (high - low))

    def weeks(self) -> list[float]:
        """Return the load of the whole weeks that begin at each midnight."""
        starts = np.arange(self.first, self.last - WEEK, DAY)
        return [self.between(t, t + WEEK) / self.gpus for t in starts]

    def hours_above(self) -> list[int]:
        """Return the lengths of the times, in whole hours, for which more GPUs are asked for than there are."""
        edges = np.arange(self.first, self.last, HOUR)
        change = np.zeros(len(edges) + 1)
        np.add.at(change, np.searchsorted(edges, self.begin), self.held)
        np.add.at(change, np.searchsorted(edges, self.end), -self.held)
        above = np.cumsum(change[:-1]) > self.gpus
        return [len(run) for run in "".join("x" if a else " " for a in above).split()]


@pytest.fixture(scope="module", params=[(300_000, 4), (1_000_000, 5)], ids=str)
def pai(request: pytest.FixtureRequest) -> Demand:
    jobs, seed = request.param
    return Demand(generate("pai2020", jobs=jobs, seed=seed))


class TestPai2020:
    def test_every_whole_week_asks_for_six_to_eight_and_a_half_tenths_of_all_gpus(self, pai: Demand) -> None:
        weeks = pai.weeks()
        assert len(weeks) >= 10
        assert min(weeks) > 0.6
        assert max(weeks) < 0.85

    def test_more_than_all_gpus_are_asked_for_for_hours_at_most(self, pai: Demand) -> None:
        assert max(pai.hours_above(), default=0) <= 12

    def test_no_gpu_model_is_asked_for_more_than_there_is_of_it(self, pai: Demand) -> None:
        for model, gpus in {"T4": 994, "MISC": 2_240, "P100": 1_596, "V100": 832, "V100M32": 1_080}.items():
            assert 0.5 < pai.between(pai.first, pai.last, model) / gpus < 0.9, model

    @pytest.mark.parametrize("jobs", [1_000, 5_000, 20_000, 100_000, 300_000])
    @pytest.mark.parametrize("seed", [0, 1])
    def test_the_same_work_arrives_per_second_whatever_the_size(self, jobs: int, seed: int) -> None:
        demand = Demand(generate("pai2020", jobs=jobs, seed=seed))
        assert demand.work == pytest.approx(0.72, rel=0.05 if jobs < 20_000 else 0.02)

    @pytest.mark.parametrize(("jobs", "least"), [(20_000, 0.45), (100_000, 0.62)])
    @pytest.mark.parametrize("seed", [0, 1, 2])
    def test_a_trace_shorter_than_a_week_fits_its_cluster_though_it_starts_on_an_empty_one(
        self, jobs: int, least: float, seed: int
    ) -> None:
        check = check_load(generate("pai2020", jobs=jobs, seed=seed).to_trace(), open_cluster("pai2020"))
        on_gpus = {load.models: load for load in check.loads if load.resource == "gpu_milli"}
        assert least < on_gpus["any"].mean < 0.85
        assert check.never_fit.is_empty()
        assert all(load.mean < 1 for load in check.loads)

    def test_who_runs_at_the_end_of_the_record_has_a_run_time_that_passes_it(self) -> None:
        """The longest run time of the last rows of the instance table is 626,371 s."""
        tasks = generate("pai2020", jobs=1_055_501, seed=1).tables["tasks"]
        end_of_record = 1_094_400 + 62 * DAY
        running = tasks.filter("is_running")
        assert 300 < running.height < 3_000
        assert running["start_time"].min() > end_of_record - 626_371  # type: ignore[operator]
        assert running["start_time"].max() <= end_of_record  # type: ignore[operator]
        waiting = tasks.filter(pl.col("status") == "waiting")
        assert waiting["submit_time"].min() > end_of_record - 250_000  # type: ignore[operator]
        assert tasks["end_time"].max() <= end_of_record  # type: ignore[operator]


class TestEveryGenerator:
    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("jobs", [20_000, 150_000])
    @pytest.mark.parametrize("seed", [0, 3])
    def test_every_whole_week_lies_in_the_stated_range(self, name: str, jobs: int, seed: int) -> None:
        weeks = Demand(generate(name, jobs=jobs, seed=seed)).weeks()
        low, high = WEEKS[name]
        assert weeks or (name == "pai2020" and jobs < JOBS_OF_A_WEEK)
        assert all(low < load < high for load in weeks)

    @pytest.mark.parametrize("name", NAMES)
    def test_its_own_cluster_is_never_too_small(self, name: str) -> None:
        trace = generate(name, jobs=60_000, seed=2)
        check = check_load(trace.to_trace(), Cluster.from_nodes(name, trace.tables["nodes"]))
        assert all(load.mean < 1 for load in check.loads)

    @pytest.mark.parametrize("name", NAMES)
    def test_the_fidelity_table_says_the_load(self, name: str) -> None:
        trace = generate(name, jobs=130_000, seed=6)
        demand = Demand(trace)
        rows = fidelity(trace).filter(pl.col("marginal").str.starts_with("load: "))
        figures = dict(rows.select("marginal", "mean").rows())
        expected = dict(rows.select("marginal", "mean_reference").rows())
        assert figures["load: arriving work"] == pytest.approx(demand.work, rel=1e-6)
        assert figures["load: mean over the span"] == pytest.approx(
            demand.between(demand.first, demand.last) / demand.gpus, rel=1e-6
        )
        assert figures["load: lowest week"] <= min(demand.weeks()) + 1e-9
        assert figures["load: highest week"] >= max(demand.weeks()) - 1e-9
        assert (expected["load: lowest week"], expected["load: highest week"]) == WEEKS[name]
        models = {m for m in figures if m.startswith("load: mean on ")}
        assert len(models) == (5 if name == "pai2020" else 0)

    def test_a_trace_read_from_elsewhere_without_nodes_has_no_load(self) -> None:
        tasks = generate("philly", jobs=500, seed=1).tables["tasks"]
        assert offered_load({"tasks": tasks}) is None
        assert not fidelity({"tasks": tasks}, "philly")["marginal"].str.starts_with("load").any()


class TestDlrm2025:
    def test_who_lives_longer_than_is_left_of_the_record_has_no_end(self) -> None:
        tasks = generate("dlrm2025", jobs=23_871, seed=3).tables["tasks"]
        created = tasks.filter(pl.col("submit_time").is_not_null())
        assert created["end_time"].max() <= 2_677_541  # type: ignore[operator]
        assert created["is_running"].mean() == pytest.approx(4_201 / 16_591, abs=0.02)
        late = pl.col("start_time") > 2_677_541 - 5 * DAY
        running = created.group_by(late.alias("late")).agg(pl.col("is_running").mean()).drop_nulls().sort("late")
        assert running["is_running"][1] > 1.15 * running["is_running"][0]

    def test_as_many_gpus_are_held_as_in_the_trace_all_the_time(self) -> None:
        """3,194 of the trace's GPU parts are alive on average, 3,076 to 3,367 by hour."""
        demand = Demand(generate("dlrm2025", jobs=23_871, seed=3))
        assert demand.between(demand.first, demand.last) == pytest.approx(3_194, rel=0.06)
        assert all(weekly * 4_960 == pytest.approx(3_194, rel=0.1) for weekly in demand.weeks())


class TestWork:
    LAW = Quantiles((0.0, 0.5, 0.99, 1.0), (1.0, 600.0, 90_000.0, 600_000.0))

    def ranks(self, jobs: int) -> tuple[Floats, Floats]:
        rng = np.random.default_rng(1)
        return rng.standard_normal(jobs), rng.choice(
            [0.0, 0.5, 1.0, 8.0, 100.0], p=[0.1, 0.4, 0.3, 0.15, 0.05], size=jobs
        )

    @pytest.mark.parametrize("factor", [0.7, 1.0, 1.5])
    def test_run_times_add_up_to_the_work_wanted_and_small_jobs_keep_theirs(self, factor: float) -> None:
        rank, gpus = self.ranks(5_000)
        drawn = self.LAW.at(rank)
        wanted = factor * float(gpus @ drawn)
        runtime = runtimes_for_work(self.LAW, rank, gpus, wanted)
        assert gpus @ runtime == pytest.approx(wanted, rel=0.01)
        small = gpus < 4
        assert (runtime[small] == np.maximum(drawn[small], 1.0)).all()

    def test_no_job_is_more_than_a_twentieth_of_the_work(self) -> None:
        rank, gpus = self.ranks(300)
        gpus[np.argmax(rank)] = 500.0
        wanted = 1.3 * float(gpus[gpus < 500] @ self.LAW.at(rank)[gpus < 500])
        runtime = runtimes_for_work(self.LAW, rank, gpus, wanted)
        assert (gpus * runtime)[gpus >= 4].max() <= 0.05 * wanted * (1 + 1e-9)

    def test_jobs_without_gpus_are_drawn_as_they_are(self) -> None:
        rank, _ = self.ranks(50)
        runtime = runtimes_for_work(self.LAW, rank, np.zeros(50), 1e9)
        assert (runtime == np.maximum(self.LAW.at(rank), 1.0)).all()


class TestArrivals:
    @staticmethod
    def unevenness(seed: int, *, by_work: bool) -> float:
        """Return how far the work of weeks is from their mean (coefficient of variation); few groups do most of it."""
        rng = np.random.default_rng(seed)
        sizes = rng.integers(1, 40, size=3_000)
        work = sizes * np.exp(2.0 * rng.standard_normal(3_000))
        assert np.sort(work)[-30:].sum() > 0.25 * work.sum()
        told = work if by_work else np.full(3_000, 1e-9)
        if not by_work:
            told[0] = 1.0
        rhythm, sittings = Rhythm((1.0,) * 24, gusts=0.5), Sittings(0.5, 100.0, 0.15)
        submit, row = arrivals(rng, sizes, told, sittings, rhythm, Window(0.0, 8 * WEEK))
        assert (np.sort(row) == np.arange(sizes.sum())).all()
        assert (np.diff(submit) >= 0).all()
        each = np.repeat(work / sizes, sizes)[row]
        by_week = np.bincount((submit // WEEK).astype(int), weights=each, minlength=8)
        return float(by_week.std() / by_week.mean())

    def test_work_arrives_evenly_by_week_though_few_groups_do_most_of_it(self) -> None:
        told = np.array([self.unevenness(seed, by_work=True) for seed in range(12)])
        untold = np.array([self.unevenness(seed, by_work=False) for seed in range(12)])
        assert told.mean() < 0.08
        assert told.mean() < 0.5 * untold.mean()
