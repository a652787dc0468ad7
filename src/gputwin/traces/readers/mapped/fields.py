"""What a column of somebody's own log can mean: the fields of a job or a request, their kinds and their usual names."""

from __future__ import annotations

from dataclasses import dataclass

from gputwin.traces.cells import Kind


@dataclass(frozen=True)
class Field:
    """One thing a column can mean. `names` are what logs usually call it, in lower case with underscores."""

    name: str
    kind: Kind
    meaning: str
    names: tuple[str, ...] = ()


def _field(name: str, kind: Kind, meaning: str, names: str = "") -> Field:
    return Field(name, kind, meaning, (name, *names.split()))


TASK_FIELDS = (
    _field(
        "job_id",
        Kind.TEXT,
        "the job; rows are numbered where no column is named",
        "id jobid job job_name uuid uid experiment_id run_id",
    ),
    _field(
        "submit",
        Kind.TIME,
        "when it was asked for",
        "submit_time submitted submitted_at submission_time submit_at created created_at create_time creation_time "
        "creation_timestamp queued_at queued arrival arrival_time enqueue_time gmt_create",
    ),
    _field(
        "start",
        Kind.TIME,
        "when it began to run",
        "start_time started started_at start_at begin began began_at begin_time begin_at scheduled_time gmt_start",
    ),
    _field(
        "end",
        Kind.TIME,
        "when it ended; empty while it runs",
        "end_time ended ended_at end_at finish finished finished_at finish_time completed_at completion_time "
        "stop_time stopped_at deletion_time gmt_end",
    ),
    _field(
        "duration",
        Kind.DURATION,
        "how long it ran",
        "duration_seconds duration_s duration_sec runtime run_time elapsed elapsed_time elapsed_seconds runtime_s "
        "runtime_seconds exec_time execution_time took duration_min duration_minutes duration_h duration_hours duration_ms",
    ),
    _field(
        "wait",
        Kind.DURATION,
        "how long it waited before it ran",
        "wait_time wait_seconds wait_s queue_time queue_seconds queueing_time queued_time pending_time",
    ),
    _field(
        "limit",
        Kind.DURATION,
        "the time limit asked for at submit",
        "time_limit timelimit wall_time walltime requested_time requested_seconds wallclock_limit",
    ),
    _field(
        "user",
        Kind.TEXT,
        "who submitted it",
        "user_name username user_id userid owner submitter submitted_by launched_by",
    ),
    _field(
        "tenant",
        Kind.TEXT,
        "the team, project, queue or namespace",
        "team project project_id account queue namespace group_name organization organisation org vc virtual_cluster "
        "partition department squad",
    ),
    _field("status", Kind.STATUS, "how it ended", "state job_state job_status final_state phase result"),
    _field("priority", Kind.COUNT, "higher goes first", "prio"),
    _field("qos", Kind.TEXT, "quality-of-service class", "qos_class service_class"),
    _field("application", Kind.TEXT, "the service or program", "app app_name service service_name"),
    _field("workload", Kind.TEXT, "the kind of program", "job_type task_type workload_type type model_name framework"),
    _field("group", Kind.TEXT, "jobs that repeat one another", "jobname name experiment"),
    _field("role", Kind.TEXT, "what the task does in its job, where a job has several rows", "task_role task_name"),
    _field(
        "instances",
        Kind.COUNT,
        "gang size: instances that start together",
        "workers num_workers worker_count replicas nodes num_nodes node_num node_count nnodes instance_num inst_num",
    ),
    _field("gpus", Kind.GPUS, "GPUs of one instance; 0.5 is half a GPU", "gpus_per_node gpu_per_node gpus_per_worker"),
    _field(
        "total_gpus",
        Kind.GPUS,
        "GPUs of the whole job",
        "gpu gpu_num num_gpu num_gpus ngpus gpu_count gpu_request requested_gpus n_gpus gpus_total gpu_total cards "
        "num_cards gpu_cards accelerators",
    ),
    _field(
        "cpus", Kind.CORES, "cores of one instance", "cpu cpu_num num_cpu num_cpus cpu_request cores ncpus cpu_cores"
    ),
    _field(
        "memory",
        Kind.BYTES,
        "memory of one instance",
        "mem memory_gb mem_gb memory_gib memory_mb mem_mb memory_mib memory_request mem_request ram ram_gb "
        "memory_bytes",
    ),
    _field("gpu_memory", Kind.BYTES, "memory of one GPU asked for", "gpu_mem gpu_memory_gb gpu_mem_gb vram vram_gb"),
    _field("disk", Kind.BYTES, "disk of one instance", "disk_gb storage storage_gb disk_request"),
    _field("gpu_model", Kind.TEXT, "the GPU model it was given", "gpu_type gpu_name accelerator gputype gpumodel"),
    _field("gpu_models_allowed", Kind.TEXT, "GPU models it may run on, joined by '|'", "gpu_spec"),
    _field("attempts", Kind.COUNT, "times it was started", "attempt_count num_attempts"),
    _field("max_per_node", Kind.COUNT, "instances of its application allowed on one node", "max_instance_per_node"),
)

REQUEST_FIELDS = (
    _field(
        "request_id", Kind.TEXT, "the request; rows are numbered where no column is named", "id requestid req_id uuid"
    ),
    _field(
        "submit",
        Kind.TIME,
        "arrival",
        "submit_time timestamp time ts arrival arrival_time arrived_at created created_at received_at gmt_create",
    ),
    _field("end", Kind.TIME, "when the answer was complete", "end_time finished_at completed_at finish_time"),
    _field(
        "duration",
        Kind.DURATION,
        "time to serve it",
        "latency latency_ms latency_s duration_seconds duration_ms e2e_latency response_time exec_time "
        "exec_time_seconds",
    ),
    _field(
        "input_tokens",
        Kind.COUNT,
        "tokens in",
        "prompt_tokens context_tokens contexttokens input_length prompt_length num_prefill_tokens request_tokens",
    ),
    _field(
        "output_tokens",
        Kind.COUNT,
        "tokens out",
        "completion_tokens generated_tokens generatedtokens output_length response_tokens num_decode_tokens",
    ),
    _field("user", Kind.TEXT, "the client", "client client_id user_id userid customer tenant api_key_hash"),
    _field("application", Kind.TEXT, "the service", "service service_name app app_name endpoint"),
    _field("model", Kind.TEXT, "base model asked for", "model_name model_id base_model"),
    _field("kind", Kind.TEXT, "kind of request", "type request_type route"),
    _field("status", Kind.STATUS, "how it ended", "state result code"),
    _field("images", Kind.COUNT, "images asked for", "num_images"),
)

FIELDS: dict[str, tuple[Field, ...]] = {"tasks": TASK_FIELDS, "requests": REQUEST_FIELDS}


def fields_of(table: str) -> dict[str, Field]:
    """Return the fields of a table by name."""
    return {field.name: field for field in FIELDS[table]}
