"""What engines keep on a GPU besides weights and KV, and how much they may use: data per version.

Engines print these parts separately in few places; each figure says where it was read.  None of them
was fitted on the logs that `tests/truth/test_available_memory.py` compares with.  `--utilization`,
`--max-batched-tokens`, `--max-seqs` and `--pool` replace them.
"""

from dataclasses import replace
from typing import Literal

from kvcalc.engines.settings import EngineSettings
from kvcalc.records import record

_MIB, _GIB = 2**20, 2**30

Rule = Literal["profiled", "reserved", "filled"]
"""How an engine decides what is left for KV.

profiled: it runs its largest batch once and subtracts what that took (vLLM).  reserved: it leaves a
share of the memory that was free before loading to everything but weights and KV, and does not look
at what that needs (SGLang).  filled: it takes what the user asks for, as long as it fits (llama.cpp).
"""

DRIVER_RESERVE = 512 * _MIB
"""Memory of an NVIDIA card that nvidia-smi counts and CUDA programs cannot have [byte], assumed.

nvidia-smi minus the total that vLLM prints: RTX 3090 24.00 - 23.57 GiB, A10G 22.49 - 22.06, RTX 5090
31.84 - 31.40, H100 79.65 - 79.19, A100 80.00 - 79.25.  Cards that share the host's DRAM have none.
"""

MOE_CHUNK = 32768
"""Tokens that vLLM's fused expert kernels take at once [token]; VLLM_FUSED_MOE_CHUNK_SIZE's default."""


@record
class Batch:
    """The largest step of a server by default, on devices of at least so much memory."""

    memory: float  # total of the device that the row starts at [byte]
    tokens: int
    sequences: int  # that sample in one step, for the logits
    not_for: str | None = None  # device names to which the row below applies instead


@record
class Checked:
    """How far the KV memory that a model gives was from what logs print, as shares of the latter."""

    logs: int
    median: float
    worst: float


@record
class Overhead:
    """Fixed costs of one version of one engine on one GPU."""

    since: tuple[int, int]
    rule: Rule
    utilization: float  # share of the memory that the engine may use
    context: float  # CUDA context where it is charged, libraries, allocator slack [byte]
    graphs: float  # captured CUDA graphs, as far as they are set aside before the KV pool [byte]
    communication: float  # buffers per GPU once ranks talk to each other over PCIe [byte]
    communication_nvlink: float  # the same over NVLink, whose collectives keep larger buffers [byte]
    logit_bytes: float  # per logit while sampling: copies, sort and its workspace [byte]
    batches: tuple[Batch, ...]  # by falling memory; the last holds for all
    whole_prompts: int = 0  # contexts up to this length run in one step, unchunked [token]
    source: str = ""
    checked: "Checked | None" = None  # the error that the model is known to have

    def batch(self, memory: float, device: str) -> Batch:
        """Return the default batch on a device of so much memory and of this name."""
        for found in self.batches:
            excluded = found.not_for is not None and device.startswith(found.not_for)
            if memory >= found.memory and not excluded:
                return found
        return self.batches[-1]


_V1_SMALL = Batch(0, 2048, 256)
_V1_LARGE = Batch(70 * _GIB, 8192, 1024)
_V1_LARGE_NOT_A100 = Batch(70 * _GIB, 8192, 1024, not_for="a100")
_V1_LARGEST = Batch(160 * _GIB, 16384, 1024)

NON_TORCH = 100 * _MIB
"""What vLLM's profiling finds outside PyTorch on one GPU [byte], assumed.

Printed by single-GPU logs: 0.05, 0.07, 0.07, 0.09, 0.12, 0.16 and 0.26 GiB.
"""

TP_PCIE, TP_NVLINK = 105 * _MIB, 1784 * _MIB
"""What it finds outside PyTorch on each of four GPUs, less `NON_TORCH` [byte], assumed.

Printed: 0.20 and 0.21 GiB over PCIe (22 and 44 GiB cards), 1.84 GiB over NVLink (H100, vLLM 0.10.2).
"""

GRAPHS = 400 * _MIB
"""CUDA graphs of a decoder at the default capture sizes [byte], assumed.

Printed by vLLM: 0.09, 0.23, 0.24, 0.4, 0.67, 0.68 and, on one card with many full graphs, 3.45 GiB.
"""

V0_LOGIT, V1_LOGIT = 39.5, 30.0
"""Bytes per logit while the sampler sorts [byte].

V1: a 16-bit logit and its fp32 copy, the sorted values and indices (4 + 8), and the sort's double
buffer (12); counted in vLLM's sampler, and 29.3 and 32.5 are implied by the activation peaks 1.06 GiB
(256 sequences, Qwen2.5 vocabulary) and 4.71 GiB (1,024) that its logs print.  V0: assumed from printed
peaks of 1.19 and 1.26 GiB (Llama 3), 1.42 and 1.45 GiB (Qwen), which imply 38.9, 41.2, 39.2 and 40.0.
"""

_PRINTED = "vLLM's profiling rule and default batch; context, graphs and buffers as other logs print them"


VLLM_CHECKED = Checked(logs=10, median=0.041, worst=0.53)
"""Measured by `tests/truth/test_available_memory.py`, which fails where it measures something else."""


def _vllm(since: tuple[int, int], batches: tuple[Batch, ...], graphs: float = 0.0) -> Overhead:
    return Overhead(
        since, "profiled", 0.90, NON_TORCH, graphs, TP_PCIE, TP_NVLINK, V1_LOGIT, batches,
        source=_PRINTED, checked=VLLM_CHECKED,
    )  # fmt: skip


OVERHEADS: dict[str, tuple[Overhead, ...]] = {
    "vllm": (
        Overhead(
            (0, 1), "profiled", 0.90, NON_TORCH, 0.0, TP_PCIE, TP_NVLINK, V0_LOGIT, (_V1_SMALL,),
            # V0 ran contexts up to 32K in one step; longer ones in chunks.
            whole_prompts=32768, source=_PRINTED, checked=VLLM_CHECKED,
        ),
        _vllm((0, 8), (_V1_LARGE, _V1_SMALL)),
        _vllm((0, 9), (_V1_LARGE_NOT_A100, _V1_SMALL)),  # larger batches slowed the A100 down
        _vllm((0, 21), (_V1_LARGE_NOT_A100, _V1_SMALL), GRAPHS),  # graphs are estimated by default
        _vllm((0, 28), (_V1_LARGEST, _V1_LARGE_NOT_A100, _V1_SMALL), GRAPHS),
    ),
    "generic": (
        Overhead(
            (0, 0), "profiled", 0.90, NON_TORCH, GRAPHS, TP_PCIE, TP_NVLINK, V1_LOGIT, (Batch(0, 8192, 256),),
            source="assumed: an engine that profiles as vLLM does, with a batch of 8,192 tokens",
        ),
    ),
    "sglang": (
        Overhead(
            # The context and NCCL's first buffers are gone before SGLang looks at the free memory.
            (0, 0), "reserved", 0.88, 512 * _MIB, 0.0, TP_PCIE, TP_NVLINK, 6.0,
            (Batch(160 * _GIB, 16384, 512), Batch(60 * _GIB, 8192, 256), Batch(35 * _GIB, 4096, 32),
             Batch(0, 2048, 24)),
            source="SGLang's mem_fraction_static where it cannot see the GPU (0.88); context assumed",
        ),
    ),
    "llama.cpp": (
        Overhead(
            (0, 0), "filled", 1.0, 512 * _MIB, 0.0, 0.0, 0.0, 4.0, (Batch(0, 512, 512),),
            source="llama.cpp reserves no share; its compute buffer holds fp32 logits of one --ubatch",
        ),
    ),
    "transformers": (
        Overhead(
            (0, 0), "filled", 1.0, 512 * _MIB, 0.0, 0.0, 0.0, 6.0, (Batch(0, 8192, 1),),
            source="assumed: no pool, no graphs",
        ),
    ),
}  # fmt: skip


def overhead(settings: EngineSettings) -> Overhead:
    """Return the fixed costs of the engine that `settings` name, in its version."""
    eras = OVERHEADS[settings.engine]
    if settings.engine != "vllm":
        return eras[-1]
    from kvcalc.engines.vllm.versions import NEWEST, default_utilization, parse_version

    version = parse_version(settings.version) if settings.version else NEWEST
    found = next(era for era in reversed(eras) if era.since <= version)
    return replace(found, utilization=default_utilization(settings.version))
