"""What a user may tell about an engine: parallelism, dtypes, block sizes, switches."""

from dataclasses import dataclass


@dataclass(frozen=True)
class EngineSettings:
    """The launch settings that change what an engine allocates.

    None means the engine's own default.  Names follow the command line (`--max-len` is `max_len`).
    """

    engine: str = "generic"
    version: str | None = None
    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    dcp: int = 1
    dp_attention: bool = False  # SGLang: attention is data-parallel over dp of the tp ranks
    kv_dtype: str = "auto"
    k_type: str | None = None  # llama.cpp: K and V cache types may differ
    v_type: str | None = None
    ssm_dtype: str = "auto"
    block_size: int | None = None
    page_size: int | None = None  # SGLang's name for the block size
    kernel_block: int | None = (
        None  # smallest block the attention kernel takes (16; 64 on some ROCm backends)
    )
    max_len: int | None = None
    max_batched_tokens: int | None = None
    max_seqs: int | None = None
    spec_tokens: int = 0
    draft_layers: int | None = None  # draft layers counted; None: the shape's own when speculating
    prefix_caching: bool = True
    hybrid_manager: bool = True
    num_blocks: int | None = None
    encoder_tokens: int | None = None
    swa_full: bool = False
    swa_ratio: float | None = None  # SGLang: tokens in the window pool per token in the full pool
    mamba_ratio: float | None = None  # SGLang: share of memory for states against KV
    parallel: int = 1  # llama.cpp: slots
    unified: bool = True  # llama.cpp: one stream of cells shared by all slots
    ubatch: int = 512
    swap_space: float = 4 * 2**30  # vLLM V0's CPU swap per rank [byte]
    compute_capability: float = 9.0  # of the device; Hopper where it has none or is not known
