"""llama.cpp: flags of llama-server, read from tools/server/README.md.

`-c` is the context of all slots together; each of `-np` slots has its share, unless `-kvu` makes
them share one buffer.  `--cache-ram` is MiB.
"""

from kvcalc.launch.flags.dialect import Dialect, Flag

_FLAGS = (
    Flag(("--model", "-m"), "model"),
    Flag(("--hf-repo", "-hf", "-hfr"), "model"),
    Flag(("--ctx-size", "-c"), "context", "integer", "token"),
    Flag(("--parallel", "-np"), "parallel", "integer", key="parallel"),
    Flag(("--ubatch-size", "-ub"), "ubatch", "count", "token", key="ubatch"),
    Flag(("--batch-size", "-b"), "batch", "integer", "token"),
    Flag(("--cache-type-k", "-ctk"), "k_type", key="k_type"),
    Flag(("--cache-type-v", "-ctv"), "v_type", key="v_type"),
    Flag(("--gpu-layers", "-ngl", "--n-gpu-layers"), "gpu_layers", "layers", key="gpu_layers"),
    Flag(("--flash-attn", "-fa"), "flash", "text", implies="on"),
    Flag(("--swa-full",), "swa_full", "switch", key="swa_full"),
    Flag(("--kv-unified", "-kvu"), "unified", "switch"),
    Flag(("--no-kv-unified", "-no-kvu"), "unified", "off"),
    Flag(("--no-kv-offload", "-nkvo"), "kv_on_device", "off"),
    Flag(("--cache-ram", "-cram"), "host_cache", "integer", "MiB", "total"),
    Flag(("--cache-reuse",), "cache_reuse", "integer", "token"),
    Flag(("--no-cache-prompt",), "prefix_caching", "off"),
    Flag(("--split-mode", "-sm"), "split_mode"),
    Flag(("--tensor-split", "-ts"), "tensor_split"),
    Flag(("--no-mmap",), "mmap", "off"),
    Flag(("--mlock",), "mlock", "switch"),
    Flag(("--cont-batching", "-cb"), "batching", "switch"),
    Flag(("--jinja",), "jinja", "switch"),
)

_ENVIRONMENT = (
    Flag(("LLAMA_ARG_CTX_SIZE",), "context", "integer", "token"),
    Flag(("LLAMA_ARG_N_PARALLEL",), "parallel", "integer", key="parallel"),
    Flag(("LLAMA_ARG_UBATCH",), "ubatch", "count", "token", key="ubatch"),
    Flag(("LLAMA_ARG_CACHE_TYPE_K",), "k_type", key="k_type"),
    Flag(("LLAMA_ARG_CACHE_TYPE_V",), "v_type", key="v_type"),
    Flag(("LLAMA_ARG_N_GPU_LAYERS",), "gpu_layers", "layers", key="gpu_layers"),
)

LLAMACPP = Dialect(
    engine="llama.cpp",
    programs=(("llama-server",), ("llama-server.exe",), ("llama-cli",)),
    images=("ggml-org/llama.cpp", "ggerganov/llama.cpp"),
    flags=_FLAGS,
    names="llamacpp.txt",
    complete=False,
    environment=_ENVIRONMENT,
)
