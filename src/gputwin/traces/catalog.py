"""The known public traces: what they are, whose, under which terms, and where each file lies.

A checksum stands here only if it is known to be the published file's: the publisher gives it (pai2020, and philly
in its Git LFS pointer), or it was computed from a copy as long as the published file (openb2023, dlrm2025, the
nodes of spot2026, the conversations of azure_llm_2023 and mooncake), or independent projects agree on it (helios,
the jobs of spot2026, the code of azure_llm_2023, the rest of mooncake). Else it is None: see `fetch`.
"""

from __future__ import annotations

from dataclasses import dataclass

from gputwin.core.registry import Registry

_MIB = 1 << 20
_CLUSTERDATA = "https://raw.githubusercontent.com/alibaba/clusterdata/master"
_STUDY_TERMS = "research and study use (the publisher's README; no licence text)"


@dataclass(frozen=True)
class TraceFile:
    """One published file: its name below the trace's folder, and its address.

    `size_bytes` is rounded where only a rounded figure is known. `contents` are the published sums of the files
    inside an archive, as (name, SHA-256).
    """

    name: str
    url: str
    size_bytes: int | None = None
    sha256: str | None = None
    contents: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class PublicTrace:
    """One public trace. `format` names the reader that understands its files; None where there is none yet."""

    name: str
    title: str
    licence: str
    citation: str
    homepage: str
    format: str | None
    files: tuple[TraceFile, ...]

    @property
    def size_bytes(self) -> int | None:
        """Return the bytes to download, about; None if a file's size is unknown."""
        sizes = [file.size_bytes for file in self.files]
        return None if None in sizes else sum(size for size in sizes if size is not None)


class _Catalog(Registry[PublicTrace]):
    """The entries are in this file; there is nothing to import."""

    def _load(self) -> None:
        return


CATALOG: Registry[PublicTrace] = _Catalog("public trace", __name__)


def _files(base: str, *rows: tuple[str, int | None, str | None]) -> tuple[TraceFile, ...]:
    return tuple(TraceFile(name, f"{base}/{name}", size, checksum) for name, size, checksum in rows)


# One row per file is easier to check than what a formatter makes of it.
# fmt: off

_PAI_BASE = "https://aliopentrace.oss-cn-beijing.aliyuncs.com/v2020GPUTraces"
_PAI_TABLES = (  # bytes, SHA-256 of the archive, SHA-256 of the CSV in it
    ("pai_job_table", 60 * _MIB,
     "5aad7f7caac501136d14ed6a48e40546f825d7b0617a3a4f337e2348fe0a6cb0",
     "379ecb3becaba347f44a53bf7eb53e54b185221b2a0338a3f828828d269ba96c"),
    ("pai_task_table", 34 * _MIB,
     "cd1d6dc3215d2a8607ccf6b6dd952b5db776df86926c73259fea7c1499ac40e5",
     "6954802b457305f8a9e480ef97c40060baee59649fd3adc62c5a1e048aa058de"),
    ("pai_instance_table", 663 * _MIB,
     "1bf1e423a7ce3f8d086699801c362fd56a7182abdb234139e5ebbed97995ca06",
     "b179f7d7e0927a6663d719b728c92640447c5a0fc3c6e4edff31e7207ab9dd17"),
    ("pai_sensor_table", 388 * _MIB,
     "9a0b82e8bdf3949281e4ba1423d9b4b34847e52799eecb138966de46da69c7a0",
     "12dd9929b70f3efe18d1279d9873e3a519c64f431613b23b059ed8c46a376dd7"),
    ("pai_group_tag_table", 53 * _MIB,
     "722fef30b7fb7aa50dabd79155614b5423a9d65cf45a9b26c590d57725423a14",
     "d23fcb56d88b2976fda4a62708d77b2a8c98635c4b443f100ed5553d4cd07fbe"),
    ("pai_machine_spec", 32 * 1024,
     "cc0d38a4045af1b1af8179de8b1b54b1ddd995e6160d6d061a6b1000f1276c2d",
     "251e9e33649155a6a935fdc1dc0e90cd4698206936b60bd8fce60ff2ccd51439"),
    ("pai_machine_metric", 198 * _MIB,
     "53ad917193d3b1dd0f3055e723148b1f36c2f81789b014ea2930a7875892eef5",
     "8b6592daab0373ef7fec730198b4df5891b1722c2ab4c7016249166e131402d3"),
)
CATALOG.add(PublicTrace(
    name="pai2020",
    title="Alibaba PAI: training and inference on 6,500 GPUs, July and August 2020",
    licence="CC-BY-4.0",
    citation="Weng et al., MLaaS in the Wild, NSDI 2022",
    homepage="https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2020",
    format="pai2020",
    files=tuple(
        TraceFile(f"{table}.tar.gz", f"{_PAI_BASE}/{table}.tar.gz", size, packed, ((f"{table}.csv", plain),))
        for table, size, packed, plain in _PAI_TABLES
    ),
))

_OPENB_LISTS = (
    ("node_list_all_node", 52_287, "5a85c2af79c66a1efff8bbcbda430400aae56d8431370d738480967e1a9c6b15"),
    ("node_list_gpu_node", 42_353, "2beca64b4d3dfa342036a34b56a495c6cef9225db836c81f541282cb1df320b5"),
    ("pod_list_default", 575_468, "1ee7ed79c27a3b0861cda8ddba86a004c6aba904caafa329a76ae93ca63834a8"),
    ("pod_list_cpu0", 499_765, "1bc3fd9ee5c1468ccd018f624d9222746e08d59f963f66b925804734271c0eaa"),
    ("pod_list_cpu037", 518_687, "8ed554026d041b15ff21ddc104d9a21dbd9a93c496262fa23ef7b5be27e220dc"),
    ("pod_list_cpu050", 525_811, "747f43247bffc2b0bb081d7f61f0705ca8d390dafc0b647e642c92f3baf3ba1e"),
    ("pod_list_cpu072", 537_576, None),
    ("pod_list_cpu100", 554_709, "bec1c33fbdde61fd463877534ec79b393aec73e1cbb22d55fab9f166ac480982"),
    ("pod_list_cpu200", 622_703, None),
    ("pod_list_cpu235", 651_171, "87bebd4d012faa8305ce1fd82737f51cf03361aac28b75d42e34aa656d7f4ee0"),
    ("pod_list_cpu250", 663_708, "134c21ff96d57533df8a37b67632972884fec9396e77cd0898ddc370cc8e607d"),
    ("pod_list_cpu300", 710_698, "76528825f40ee662cb098b3b6e683c1efd9f87a0c8af7e628df1f32c639636d1"),
    ("pod_list_gpushare20", 574_603, "9be2d0efb52e242c32e23dd184cc5fcc1983478c6c9c02cbb6b4b62925c0ffcd"),
    ("pod_list_gpushare40", 572_662, "d83ce79a4eb6987524bedbb0c65e41aed3a36bf6c1b78b86234c3687a07e1d40"),
    ("pod_list_gpushare60", 566_361, None),
    ("pod_list_gpushare80", 563_740, "88b6649369ced40d0fde287d2498ea61ff4b05fccba8bdc95daf6042f2f8431e"),
    ("pod_list_gpushare100", 561_220, None),
    ("pod_list_gpuspec05", 577_176, None),
    ("pod_list_gpuspec10", 579_461, "2dc7e4cb9480484f08539720b433a9ec9ab5d76b396f3f7557c53a2ff78a7611"),
    ("pod_list_gpuspec20", 582_612, None),
    ("pod_list_gpuspec25", 584_915, "9d030679a2ccd7e27a7ec9ff15baff34480d22a0012515691fc187e3f35ee68c"),
    ("pod_list_gpuspec33", 587_467, "eca4f746db1e5b25864ad021b55ece3943e101a3ebd4574d09dcb95c46117652"),
    ("pod_list_multigpu20", 271_530, "d9ec6f6c74fb980cc0b81239470c6353fceea077ea9abd610003b604c7cc2b01"),
    ("pod_list_multigpu30", 277_920, None),
    ("pod_list_multigpu40", 286_202, "32c9e8731ca07ef96108aa65f2a289bb9aacb47f642ed9e3789f99b242df60eb"),
    ("pod_list_multigpu50", 297_219, "206f2f5959db30ecb7c44e7f13197c8ec50b7a35558ad3777cc3662ef0fe5373"),
)
CATALOG.add(PublicTrace(
    name="openb2023",
    title="Alibaba GPU sharing: 1,523 nodes and 8,152 pods of a Kubernetes cluster, and variants of the pod list",
    licence=_STUDY_TERMS,
    citation="Weng et al., Beware of Fragmentation, USENIX ATC 2023",
    homepage="https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2023",
    format="openb2023",
    files=_files(
        f"{_CLUSTERDATA}/cluster-trace-gpu-v2023/csv",
        *((f"openb_{stem}.csv", size, checksum) for stem, size, checksum in _OPENB_LISTS),
    ),
))

CATALOG.add(PublicTrace(
    name="dlrm2025",
    title="Alibaba GPU-disaggregated recommendation models: 23,871 inference instances, 31 days",
    licence=_STUDY_TERMS,
    citation="Yang et al., GPU-Disaggregated Serving for Deep Learning Recommendation Models at Scale, NSDI 2025",
    homepage="https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2025",
    format="dlrm2025",
    files=_files(
        f"{_CLUSTERDATA}/cluster-trace-gpu-v2025",
        ("disaggregated_DLRM_trace.csv", 2_118_900,
         "fb17bc4b3f412d5280f70f04a1bdf2adfc4429d1e61237a5b106e86206414295"),
    ),
))

CATALOG.add(PublicTrace(
    name="genai2026",
    title="Alibaba GenTD26: Stable Diffusion serving, from requests to GPUs, about one day",
    licence=_STUDY_TERMS,
    citation="Lin et al., Understanding Diffusion Model Serving in Production, SoCC 2025",
    homepage="https://github.com/alibaba/clusterdata/tree/master/cluster-trace-v2026-GenAI",
    format="genai2026",
    files=_files(
        f"{_CLUSTERDATA}/cluster-trace-v2026-GenAI",
        *((f"{stem}.tar.gz", kilobytes * 1000, None) for stem, kilobytes in (
            ("basemodel_update_latency_anon", 57), ("controlnet_latency_data_anon", 195),
            ("data_trace_processed", 500), ("lora_request_trace", 250), ("lora_update_latency_anon", 190),
            ("model_predict_data_anon", 52), ("pipeline_inference_data_anon", 250),
            ("pipeline_update_latency_anon", 255), ("pod_gpu_duty_cycle_anon", 820),
            ("pod_gpu_memory_used_bytes_anon", 1140), ("pod_memory_util_anon", 2820), ("qps", 120),
            ("queue_rt_raw_anon", 130), ("queue_size_raw_anon", 5),
        )),
    ),
))

CATALOG.add(PublicTrace(
    name="spot2026",
    title="Alibaba spot GPUs: 466,867 high-priority and spot jobs, 4,278 nodes, six months",
    licence=_STUDY_TERMS,
    citation="Duan et al., GFS: A Preemptive Scheduling Framework for GPU Clusters, ASPLOS 2026",
    homepage="https://github.com/alibaba/clusterdata/tree/master/cluster-trace-v2026-spot-gpu",
    format="spot2026",
    files=_files(
        f"{_CLUSTERDATA}/cluster-trace-v2026-spot-gpu",
        ("node_info_df.csv", 78_330, "1aba161961a5a4a1a61aa581383c5e5abe3400b59f8597ba8c4eef7597bc9d18"),
        ("job_info_df.csv", 23_055_929, "113ccee4c28f5c3bbaaca974cd164b9280b7d4c39e53b745443b28eea05e03dd"),
    ),
))

CATALOG.add(PublicTrace(
    name="philly",
    title="Microsoft Philly: 117,325 training jobs and the machines' use, August to December 2017",
    licence="CC-BY-4.0",
    citation="Jeon et al., Analysis of Large-Scale Multi-Tenant GPU Clusters, USENIX ATC 2019",
    homepage="https://github.com/msr-fiddle/philly-traces",
    format="philly",
    files=_files(
        "https://media.githubusercontent.com/media/msr-fiddle/philly-traces/master",  # where Git LFS files are
        ("trace-data.tar.gz", 1_055_988_361, "2037ccf63a725a02be718b0e1aeee6142c90b7f62d0d849295120e9f6ba13d2c"),
    ),
))

CATALOG.add(PublicTrace(
    name="helios",
    title="SenseTime Helios: 3.4 million jobs of four clusters, April to September 2020",
    licence="CC-BY-4.0",
    citation="Hu et al., Characterization and Prediction of Deep Learning Workloads, SC 2021",
    homepage="https://github.com/S-Lab-System-Group/HeliosData",
    format="helios",
    files=_files(
        "https://raw.githubusercontent.com/S-Lab-System-Group/HeliosData/master",
        ("data.zip", 36_437_672, "3d22a5f6c0ae669e2fcbfe4200fa9c48664507bc397c677bad8f085222c032ac"),
    ),
))

CATALOG.add(PublicTrace(
    name="acme",
    title="Shanghai AI Laboratory Acme: 880,740 jobs of two LLM clusters, March to August 2023",
    licence="CC-BY-4.0",
    citation="Hu et al., Characterization of Large Language Model Development in the Datacenter, NSDI 2024",
    homepage="https://github.com/InternLM/AcmeTrace",
    format="acme",
    files=_files(
        "https://raw.githubusercontent.com/InternLM/AcmeTrace/master/data/job_trace",
        ("trace_seren.csv", 99_000_000, None),
        ("trace_kalos.csv", 8_600_000, None),
    ),
))

CATALOG.add(PublicTrace(
    name="azure_llm_2023",
    title="Azure LLM inference: requests of a coding and a conversation service, one hour of November 2023",
    licence="CC-BY-4.0",
    citation="Patel et al., Splitwise: Efficient Generative LLM Inference Using Phase Splitting, ISCA 2024",
    homepage="https://github.com/Azure/AzurePublicDataset/blob/master/AzureLLMInferenceDataset2023.md",
    format="requests",
    files=_files(
        "https://raw.githubusercontent.com/Azure/AzurePublicDataset/master/data",
        ("AzureLLMInferenceTrace_conv.csv", 719_188,
         "2f1e5b666d4e3055fdbba98598ce2ec307767b9064e03e2fa46676dbcc7d0bf8"),
        ("AzureLLMInferenceTrace_code.csv", 320_000,
         "54e9a6d2a4bd06ba1e060304b900abbc74cbea53de96506e60fe5bb4f2277fb6"),
    ),
))

CATALOG.add(PublicTrace(
    name="mooncake",
    title="Kimi: conversation, tool-agent and synthetic requests with prefix-block hashes, one hour",
    licence="Apache-2.0",
    citation="Qin et al., Mooncake: Trading More Storage for Less Computation, FAST 2025",
    homepage="https://github.com/kvcache-ai/Mooncake/tree/main/FAST25-release",
    format="requests",
    files=_files(
        "https://raw.githubusercontent.com/kvcache-ai/Mooncake/main/FAST25-release/traces",
        ("conversation_trace.jsonl", 3_029_533,
         "b8cbb061a85206d729d91cdc2981f43c9e0d99209dce588d3af5f7934408b9df"),
        ("toolagent_trace.jsonl", 4_500_000,
         "48a2db1a13d3bc05e6330140c64f604ba366df20d3c9e128b5c35a01c1fa5f71"),
        ("synthetic_trace.jsonl", 1_136_313,
         "bd070915a98fc0ed264d7cfef2ce746002eb3076a695ec31ba2674c0111ec131"),
    ),
))

_SERVEGEN_CLIENTS = (  # model, clients, bytes of one client's file
    ("language/m-large", 162, 50_000), ("language/m-mid", 109, 50_000), ("language/m-small", 43, 50_000),
    ("reason/deepseek-r1", 73, 8_000), ("multimodal/mm-image", 35, 8_000),
)
CATALOG.add(PublicTrace(
    name="servegen",
    title="Alibaba Model Studio: request rates of each client of five model services, up to 14 days",
    licence="Apache-2.0",
    citation="Xiang et al., ServeGen: Workload Characterization and Generation of LLM Serving, NSDI 2026",
    homepage="https://github.com/alibaba/ServeGen",
    format="requests",
    files=_files(
        "https://github.com/alibaba/ServeGen/raw/main/data",  # leads to the file whether it is in Git LFS or not
        *((f"{model}/chunk-{client}-trace.csv", size, None)
          for model, clients, size in _SERVEGEN_CLIENTS for client in range(clients)),
    ),
))
