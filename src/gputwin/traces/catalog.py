"""The known public traces: what they are, whose, under which terms, and where each file lies.

A checksum stands here only if it is known to be the published file's: the publisher gives it (pai2020; the Git LFS
pointer of philly), or it was computed from a copy as long as the published file (openb2023, dlrm2025, spot2026's
nodes, azure_llm_2023's and mooncake's conversations), or several independent projects give the same one (helios,
spot2026's jobs, azure_llm_2023's code, mooncake's other two). The rest is None: trusted on first use by `fetch`.
"""

from __future__ import annotations

from collections.abc import Iterable
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
    """One public trace. `format` names the reader that understands its files."""

    name: str
    title: str
    licence: str
    citation: str
    homepage: str
    format: str
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


def _files(base: str, rows: Iterable[tuple[str, int | None, str | None]]) -> tuple[TraceFile, ...]:
    return tuple(TraceFile(name, f"{base}/{name}", size, sum_) for name, size, sum_ in rows)


def _pai(table: str, size: int, packed: str, plain: str) -> TraceFile:
    base = "https://aliopentrace.oss-cn-beijing.aliyuncs.com/v2020GPUTraces"
    name = f"{table}.tar.gz"
    return TraceFile(name, f"{base}/{name}", size, packed, ((f"{table}.csv", plain),))


CATALOG.add(
    PublicTrace(
        name="pai2020",
        title="Alibaba PAI: training and inference on 6,500 GPUs, July and August 2020",
        licence="CC-BY-4.0",
        citation="Weng et al., MLaaS in the Wild, NSDI 2022",
        homepage="https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2020",
        format="pai2020",
        files=(
            _pai(
                "pai_job_table",
                60 * _MIB,
                "5aad7f7caac501136d14ed6a48e40546f825d7b0617a3a4f337e2348fe0a6cb0",
                "379ecb3becaba347f44a53bf7eb53e54b185221b2a0338a3f828828d269ba96c",
            ),
            _pai(
                "pai_task_table",
                34 * _MIB,
                "cd1d6dc3215d2a8607ccf6b6dd952b5db776df86926c73259fea7c1499ac40e5",
                "6954802b457305f8a9e480ef97c40060baee59649fd3adc62c5a1e048aa058de",
            ),
            _pai(
                "pai_instance_table",
                663 * _MIB,
                "1bf1e423a7ce3f8d086699801c362fd56a7182abdb234139e5ebbed97995ca06",
                "b179f7d7e0927a6663d719b728c92640447c5a0fc3c6e4edff31e7207ab9dd17",
            ),
            _pai(
                "pai_sensor_table",
                388 * _MIB,
                "9a0b82e8bdf3949281e4ba1423d9b4b34847e52799eecb138966de46da69c7a0",
                "12dd9929b70f3efe18d1279d9873e3a519c64f431613b23b059ed8c46a376dd7",
            ),
            _pai(
                "pai_group_tag_table",
                53 * _MIB,
                "722fef30b7fb7aa50dabd79155614b5423a9d65cf45a9b26c590d57725423a14",
                "d23fcb56d88b2976fda4a62708d77b2a8c98635c4b443f100ed5553d4cd07fbe",
            ),
            _pai(
                "pai_machine_spec",
                32 * 1024,
                "cc0d38a4045af1b1af8179de8b1b54b1ddd995e6160d6d061a6b1000f1276c2d",
                "251e9e33649155a6a935fdc1dc0e90cd4698206936b60bd8fce60ff2ccd51439",
            ),
            _pai(
                "pai_machine_metric",
                198 * _MIB,
                "53ad917193d3b1dd0f3055e723148b1f36c2f81789b014ea2930a7875892eef5",
                "8b6592daab0373ef7fec730198b4df5891b1722c2ab4c7016249166e131402d3",
            ),
        ),
    )
)

# fmt: off
_OPENB_PODS = (
    ("default", 575_468, "1ee7ed79c27a3b0861cda8ddba86a004c6aba904caafa329a76ae93ca63834a8"),
    ("cpu0", 499_765, "1bc3fd9ee5c1468ccd018f624d9222746e08d59f963f66b925804734271c0eaa"),
    ("cpu037", 518_687, "8ed554026d041b15ff21ddc104d9a21dbd9a93c496262fa23ef7b5be27e220dc"),
    ("cpu050", 525_811, "747f43247bffc2b0bb081d7f61f0705ca8d390dafc0b647e642c92f3baf3ba1e"),
    ("cpu072", 537_576, None),
    ("cpu100", 554_709, "bec1c33fbdde61fd463877534ec79b393aec73e1cbb22d55fab9f166ac480982"),
    ("cpu200", 622_703, None),
    ("cpu235", 651_171, "87bebd4d012faa8305ce1fd82737f51cf03361aac28b75d42e34aa656d7f4ee0"),
    ("cpu250", 663_708, "134c21ff96d57533df8a37b67632972884fec9396e77cd0898ddc370cc8e607d"),
    ("cpu300", 710_698, "76528825f40ee662cb098b3b6e683c1efd9f87a0c8af7e628df1f32c639636d1"),
    ("gpushare20", 574_603, "9be2d0efb52e242c32e23dd184cc5fcc1983478c6c9c02cbb6b4b62925c0ffcd"),
    ("gpushare40", 572_662, "d83ce79a4eb6987524bedbb0c65e41aed3a36bf6c1b78b86234c3687a07e1d40"),
    ("gpushare60", 566_361, None),
    ("gpushare80", 563_740, "88b6649369ced40d0fde287d2498ea61ff4b05fccba8bdc95daf6042f2f8431e"),
    ("gpushare100", 561_220, None),
    ("gpuspec05", 577_176, None),
    ("gpuspec10", 579_461, "2dc7e4cb9480484f08539720b433a9ec9ab5d76b396f3f7557c53a2ff78a7611"),
    ("gpuspec20", 582_612, None),
    ("gpuspec25", 584_915, "9d030679a2ccd7e27a7ec9ff15baff34480d22a0012515691fc187e3f35ee68c"),
    ("gpuspec33", 587_467, "eca4f746db1e5b25864ad021b55ece3943e101a3ebd4574d09dcb95c46117652"),
    ("multigpu20", 271_530, "d9ec6f6c74fb980cc0b81239470c6353fceea077ea9abd610003b604c7cc2b01"),
    ("multigpu30", 277_920, None),
    ("multigpu40", 286_202, "32c9e8731ca07ef96108aa65f2a289bb9aacb47f642ed9e3789f99b242df60eb"),
    ("multigpu50", 297_219, "206f2f5959db30ecb7c44e7f13197c8ec50b7a35558ad3777cc3662ef0fe5373"),
)
# fmt: on

CATALOG.add(
    PublicTrace(
        name="openb2023",
        title="Alibaba GPU sharing: 8,152 pods and 1,523 nodes of a Kubernetes cluster, and 23 resamplings",
        licence=_STUDY_TERMS,
        citation="Weng et al., Beware of Fragmentation, USENIX ATC 2023",
        homepage="https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2023",
        format="openb2023",
        files=_files(
            f"{_CLUSTERDATA}/cluster-trace-gpu-v2023/csv",
            (
                (
                    "openb_node_list_all_node.csv",
                    52_287,
                    "5a85c2af79c66a1efff8bbcbda430400aae56d8431370d738480967e1a9c6b15",
                ),
                (
                    "openb_node_list_gpu_node.csv",
                    42_353,
                    "2beca64b4d3dfa342036a34b56a495c6cef9225db836c81f541282cb1df320b5",
                ),
                *((f"openb_pod_list_{variant}.csv", size, sum_) for variant, size, sum_ in _OPENB_PODS),
            ),
        ),
    )
)
