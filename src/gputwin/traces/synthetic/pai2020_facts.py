"""What is known of the Alibaba PAI 2020 trace, as numbers.

NSDI'22: Weng et al., "MLaaS in the Wild: Workload Analysis and Scheduling in Large-Scale Heterogeneous GPU Clusters".
Acme: the PAI row of the five-cluster comparison of Hu et al., "Characterization of Large Language Model Development in
the Datacenter", NSDI'24 (`cluster_summary.csv` of InternLM/AcmeTrace): 1,260,920 tasks, mean and median run time,
queueing time and GPU request. Tail: quantiles of the last rows of `pai_instance_table` (19,731 instances of 3,590 jobs
and 4,269 tasks). Joined: steps seen in the 999-row joined sample. Simulator: the publisher's simulator on 20,000 jobs.
"""

from __future__ import annotations

from dataclasses import dataclass

from gputwin.traces.synthetic.arrivals import Rhythm
from gputwin.traces.synthetic.distributions import KNOTS, Quantiles, Shares
from gputwin.traces.synthetic.fleet import NodeType
from gputwin.traces.synthetic.population import Recurrence

JOBS = 1_055_501
START = 1_094_400  # Wednesday 1 July 2020, 00:00 in Shanghai, on the trace's shifted clock
SPAN = 62 * 86_400  # July and August; 1,094,400 + 62 days is just past the last time in the published tables

FLEET = (
    NodeType(83, 96, 512),
    NodeType(280, 96, 512, 8, "MISC"),
    NodeType(798, 64, 512, 2, "P100"),
    NodeType(497, 96, 512, 2, "T4"),
    NodeType(45, 96, 384, 8, "V100"),
    NodeType(59, 96, 512, 8, "V100"),
    NodeType(135, 96, 384, 8, "V100M32"),
)

LOAD = 0.72  # work that arrives per GPU and second

# Counts of task starts by hour in the tail; its 32 days say little about weekdays beyond that weekends are quieter.
HOURS = (
    237, 145, 91, 105, 88, 124, 171, 183, 120, 141, 172, 164, 122, 108, 130, 163, 134, 162, 155, 137, 131, 96, 79, 90,
)  # fmt: skip
RHYTHM = Rhythm(tuple(float(h) for h in HOURS), (1.0, 1.0, 1.0, 1.0, 1.0, 0.7, 0.7), gusts=0.3)

# fmt: off
JOB_RUNTIME_TAIL = Quantiles(
    KNOTS, (4, 10, 12, 21, 31, 63, 93, 151, 279, 537, 1_019, 2_013, 3_114, 4_563, 11_344, 21_713, 45_257, 66_979,
            111_744, 334_523, 626_371))
TASK_RUNTIME_TAIL = Quantiles(
    KNOTS, (4, 10, 11, 13, 31, 61, 87, 133, 270, 523, 979, 1_873, 2_827, 4_251, 10_944, 21_374, 43_389, 62_086,
            111_000, 287_261, 626_371))
# The tail's middle lowered towards Acme's median task; mean 5,015 s (the simulator's 20,000 jobs: 5,039 s).
JOB_RUNTIME = Quantiles(
    KNOTS, (4, 10, 12, 21, 31, 62, 88, 138, 248, 475, 920, 1_880, 2_930, 4_420, 11_250, 21_700, 45_260, 67_000,
            111_700, 334_500, 626_371))
# fmt: on
# Median and mean are Acme's (9 s, 402 s); the shape between is ours: NSDI'22 §3.2 plots it and gives no table.
WAIT = Quantiles(
    (0, 0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 1),
    (0, 1, 3, 9, 28, 80, 480, 1_650, 4_600, 8_200, 35_000, 250_000),
)

# Per instance, in the publisher's percent. NSDI'22 §3.3: medians 6 vCPU, 0.5 GPU, 29 GiB; P95 12 vCPU, 1 GPU, 59 GiB.
# Acme: mean 0.683 GPU, at most 8. The steps are those of the joined sample.
# fmt: off
GPU_PERCENT = Shares(((5, .01), (10, .03), (20, .02), (25, .20), (30, .01), (40, .01), (50, .345), (100, .345),
                      (200, .014), (400, .007), (800, .005)))
CPU_PERCENT = Shares(((50, .02), (100, .04), (200, .06), (400, .09), (500, .03), (600, .52), (800, .08), (1000, .05),
                      (1200, .07), (1600, .015), (1800, .012), (2400, .007), (3200, .005), (6400, .001)))
MEMORY_MIB = Shares(((2_048, .05), (4_000, .04), (10_000, .09), (15_000, .03), (20_000, .09), (25_000, .03),
                     (30_000, .44), (32_000, .05), (40_000, .05), (48_000, .04), (60_000, .06), (100_000, .015),
                     (120_000, .01), (200_000, .005)))
SERVER_CPU_PERCENT = Shares(((100, .30), (200, .20), (400, .12), (600, .30), (1000, .05), (1200, .03)))
SERVER_MEMORY_MIB = Shares(((1_000, .02), (2_048, .38), (4_000, .18), (10_000, .18), (20_000, .10), (30_000, .12),
                            (60_000, .02)))

# Gang sizes: counts in the tail, the largest made more frequent so that 7.5 M instances come of 1.26 M tasks.
WORKERS = Shares(((1, .245), (2, .035), (3, .047), (4, .046), (5, .036), (6, .012), (8, .031), (10, .155), (12, .031),
                  (15, .012), (16, .025), (18, .008), (20, .072), (25, .041), (30, .03), (36, .008), (40, .036),
                  (48, .006), (50, .057), (64, .012), (80, .012), (100, .021), (128, .008), (200, .008), (256, .0035),
                  (400, .001), (512, .0005)))
SERVERS = Shares(((1, .62), (2, .09), (3, .02), (4, .03), (5, .10), (8, .04), (10, .035), (15, .025), (20, .02),
                  (25, .008), (50, .006)))
PYTORCH = Shares(((1, .735), (2, .09), (3, .01), (4, .04), (8, .055), (12, .025), (16, .015), (30, .012), (40, .012),
                  (50, .006)))
TENSORFLOW = Shares(((1, .97), (2, .008), (3, .016), (4, .006)))
DECODERS = Shares(((64, .3), (94, .4), (120, .3)))
ONE = Shares(((1, 1.0),))
INSTANCES_TAIL = Shares(((1, .7384), (2, .0466), (3, .0176), (4, .0169), (5, .0258), (8, .0206), (10, .0387),
                         (12, .0122), (16, .0075), (20, .0248), (25, .0096), (30, .0082), (40, .0105), (50, .0124),
                         (75, .0048), (100, .0035), (200, .0019)))
# fmt: on


@dataclass(frozen=True)
class Role:
    """A task's part in its job: its gang sizes and whether it computes on GPUs."""

    name: str
    gang: Shares
    gpu_share: float = 1.0


@dataclass(frozen=True)
class Kind:
    """A kind of job: its share of jobs, its roles by name, and the GPU models it lands on, cheapest first."""

    share: float
    roles: tuple[Role, ...]
    models: tuple[float, float, float, float, float]


MODELS = ("T4", "MISC", "P100", "V100", "V100M32")
MODEL_GPUS_PER_NODE = (2, 8, 2, 8, 8)
MODEL_NODES = tuple(sum(t.nodes for t in FLEET if t.gpu_model == model) for model in MODELS)
MODEL_GPUS = tuple(sum(t.nodes * t.gpus for t in FLEET if t.gpu_model == model) for model in MODELS)
# The publisher gives no share of jobs that insist on a model; users who got the scarce ones mostly asked for them.
HEAVY_WORK, HUGE_WORK = 2e-4, 0.005  # projects with a larger part of all GPU time than this
# Who asks for more than a part of a model's nodes takes any model.
SMALLEST_NODE_CPU_PERCENT, SMALLEST_NODE_MIB = 6_400, 384 * 1_024
MOST_INSISTED = 0.25
SPEC_SHARE = (0.10, 0.03, 0.25, 0.70, 0.70)

_PS = Role("ps", SERVERS, gpu_share=0.0)
_WORKER = Role("worker", WORKERS)
_EVALUATOR = Role("evaluator", ONE)
_GANG_MODELS = (0.45, 0.36, 0.13, 0.04, 0.02)
KINDS = (
    Kind(0.0234, (Role("xComputeWorker", ONE),), (0.97, 0.03, 0.0, 0.0, 0.0)),
    Kind(0.0203, (_EVALUATOR, _PS, _WORKER), _GANG_MODELS),
    Kind(0.1457, (_PS, _WORKER), _GANG_MODELS),
    Kind(0.5819, (Role("tensorflow", TENSORFLOW, gpu_share=0.95),), (0.13, 0.72, 0.11, 0.022, 0.018)),
    Kind(0.0944, (_WORKER,), _GANG_MODELS),
    Kind(0.0022, (Role("DecoderWorker", DECODERS), Role("ReduceTask", ONE, gpu_share=0.0)), (0.5, 0.5, 0.0, 0.0, 0.0)),
    Kind(0.1189, (Role("PyTorchWorker", PYTORCH),), (0.06, 0.58, 0.22, 0.08, 0.06)),
    Kind(0.0086, (Role("TensorboardTask", ONE, gpu_share=0.0),), (0.0, 1.0, 0.0, 0.0, 0.0)),
    Kind(0.0031, (Role("JupyterTask", ONE),), (0.3, 0.5, 0.1, 0.05, 0.05)),
    Kind(0.0006, (Role("chief", ONE), _EVALUATOR, _PS, _WORKER), _GANG_MODELS),
)

# NSDI'22 §3.1: over 1,300 users, the top 5 % of whom submit 77 % of instances. A log-normal law with this spread does
# so, and then also puts the 95th percentile near the 17,500 instances published.
USERS = 1_330
USER_SPREAD = 2.45
GROUPS = Recurrence(1.33, 0.003, 300)  # NSDI'22 §5.2: 65 % of tasks belong to groups of five or more
PROJECTS = Recurrence(1.3, 0.001, 20)
ALIKE_IN_PROJECT = 0.93  # correlation of durations among groups of one project, squared: 0.86
WITHIN_GROUP, WITHIN_GROUP_SPREAD = 0.18, 1.6  # spread of log duration within groups over that of all: joined sample
# Where log run times of gangs lie on the normal scale of all jobs: tail, by gang size. Gangs are seldom cut short.
GANG_SHIFT, GANG_SHIFT_PER_LOG, GANG_SPREAD = 0.15, 0.14, 0.75
GPU_CLASSES = (0.0, 1.0, 4.0, 16.0, 64.0)  # upper bounds of GPUs per job
LARGE_GANG, HUGE_GANG = 32, 256  # from here on at most a whole, and half a GPU each: no job asks for over 256 GPUs

FAILED_SHARE = 0.18

# The publisher's README: about 9 % of instances carry a workload tag. Shares among them are the joined sample's.
TAGGED_SHARE = 0.09
WORKLOADS = (
    ("ctr", 0.49), ("bert", 0.377), ("inception", 0.105), ("graphlearn", 0.014), ("nmt", 0.004), ("xlnet", 0.004),
    ("resnet", 0.003), ("rl", 0.003),
)  # fmt: skip
