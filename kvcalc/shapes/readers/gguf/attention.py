"""GGUF architectures whose layers all attend: in full, partly within windows, or over latents."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kvcalc.shapes.components import Component, Growth
from kvcalc.shapes.families.mla import indexer_component, mla_component
from kvcalc.shapes.readers.gguf.keys import Built, Keys, drafts, full_attention, read_heads

GEMMA_3N_KV_LAYERS = 20
"""Layers of Gemma 3n with a cache of their own (n_layer_kv_from_start in src/models/gemma3n.cpp)."""

GLM_5_2_CONTEXT = 1_048_576
"""From this context on, a GLM-5 file without indexer types is a GLM-5.2 (src/models/glm-dsa.cpp) [token]."""

EXAONE_4_WINDOWED = 64
"""EXAONE 4 slides only in its model of this many layers (src/models/exaone4.cpp)."""

DENSE = frozenset(
    (
        *("apertus", "arcee", "arctic", "baichuan", "bailingmoe", "bailingmoe2", "bitnet", "bloom"),
        *("chameleon", "chatglm", "codeshell", "cogvlm", "command-r", "dbrx", "deci", "deepseek"),
        *("deepseek2-ocr", "dots1", "ernie4_5", "ernie4_5-moe", "exaone", "falcon", "gemma", "glm4"),
        *("glm4moe", "gpt2", "gptj", "gptneox", "granite", "granitemoe", "grok", "grovemoe"),
        *("hunyuan-dense", "hunyuan-moe", "hunyuan_vl", "hy_v3", "internlm2", "jais", "jais2", "llama"),
        *("maincoder", "minicpm", "minicpm3", "minimax-m2", "mistral3", "mpt", "nemotron", "olmo", "olmoe"),
        *("openelm", "orion", "paddleocr", "pangu-embedded", "phi2", "phi3", "phimoe", "plamo", "plm"),
        *("qwen", "qwen2", "qwen2moe", "qwen2vl", "qwen3", "qwen3moe", "qwen3vl", "qwen3vlmoe", "refact"),
        *("seed_oss", "smollm3", "stablelm", "starcoder", "starcoder2", "xverse"),
    )
)
"""Every layer keeps keys and values of the whole context; llama.cpp knows no window for these, also
where the file gives one (Phi-3, Mistral 7B as ``llama``)."""


@dataclass(frozen=True)
class Windowed:
    """Which layers slide where the file does not say, and over how many tokens."""

    period: int | None  # every period-th layer is full; None: the file must list the layers
    full_first: bool = False  # the full layer opens a period instead of closing it
    window: int | None = None  # tokens where the file gives none; None: it must give them
    optional: bool = False  # without a window in the file, every layer is full
    fixed: bool = False  # `window` holds whatever the file says
    growth: str = "window"


WINDOWED: Mapping[str, Windowed] = {
    "afmoe": Windowed(4, optional=True),
    "cohere2": Windowed(4),
    "cohere2moe": Windowed(4, full_first=True),
    "exaone-moe": Windowed(4),
    "exaone4": Windowed(4, window=4096),
    "gemma2": Windowed(2, window=4096),
    "gemma3": Windowed(6, optional=True),
    "gemma3n": Windowed(5),
    "gemma4": Windowed(None),
    "gpt-oss": Windowed(2),
    "granite_swa": Windowed(None),
    "laguna": Windowed(4, full_first=True, optional=True),
    "llama4": Windowed(4, window=8192, fixed=True, growth="chunk"),
    "maple": Windowed(None),
    "mellum": Windowed(4, optional=True),
    "mimo2": Windowed(None),
    "muse-glimmer": Windowed(4),
    "olmo2": Windowed(4, optional=True),
    "plamo3": Windowed(8, optional=True),
    "smallthinker": Windowed(4, full_first=True, window=4096, optional=True, fixed=True),
    "spark2_5": Windowed(None),
    "step35": Windowed(None),
}


def _dense(keys: Keys) -> Built:
    heads = read_heads(keys)
    notes: tuple[str, ...] = ()
    if keys.raw("attention.sliding_window"):
        notes = (f"llama.cpp keeps the whole context of {keys.architecture!r}, its window notwithstanding",)
    return full_attention(heads, range(keys.layers)), full_attention(heads, drafts(keys)), notes


def _windowed(keys: Keys) -> Built:
    rule, heads = WINDOWED[keys.architecture], read_heads(keys)
    growth = _window(keys, rule)
    if growth is None:
        return full_attention(heads, range(keys.layers)), full_attention(heads, drafts(keys)), ()
    sliding = _sliding_layers(keys, rule)
    kind = "chunked_attention" if growth.kind == "chunk" else "sliding_window"

    def layers(owners: Iterable[int]) -> list[Component]:
        full = full_attention(heads, (layer for layer in owners if not sliding[layer]))
        windows = (layer for layer in owners if sliding[layer])
        return full + heads.components(kind, windows, growth, windowed=True)

    return layers(range(min(keys.layers, _owners(keys)))), layers(drafts(keys)), ()


def _window(keys: Keys, rule: Windowed) -> Growth | None:
    """Return how window layers grow; None where no layer slides."""
    if keys.architecture == "exaone4" and keys.layers != EXAONE_4_WINDOWED:
        return None
    given = keys.raw("attention.sliding_window")
    if given == 0 or (given is None and rule.optional):
        return None
    size = rule.window if rule.fixed and rule.window else keys.size("attention.sliding_window", rule.window)
    return Growth("chunk" if rule.growth == "chunk" else "window", size)


def _sliding_layers(keys: Keys, rule: Windowed) -> list[bool]:
    """Return which layers slide: as listed, else by the period; draft layers attend in full."""
    key = "attention.sliding_window_pattern"
    given = keys.raw(key)
    if isinstance(given, tuple):
        return [bool(flag) for flag in keys.per_layer(key)]
    if rule.period is None:
        raise keys.refuse(key, "missing" if given is None else "expected a list of the sliding layers")
    period = keys.size(key, rule.period)
    place_of_full = 0 if rule.full_first else period - 1
    return [layer < keys.layers and layer % period != place_of_full for layer in range(keys.blocks)]


def _owners(keys: Keys) -> int:
    """Return how many layers, from the first, own a cache; later ones reuse those."""
    if keys.architecture == "gemma3n":
        return GEMMA_3N_KV_LAYERS
    shared = keys.whole("attention.shared_kv_layers", 0)
    if shared >= keys.layers:
        raise keys.refuse("attention.shared_kv_layers", f"{shared} of {keys.layers} layers")
    return keys.blocks - shared


def _latent(keys: Keys) -> Built:
    """Build MLA, or the expanded heads of files made before llama.cpp cached latents."""
    if not keys.whole("attention.key_length_mla", 0):
        components, draft, _ = _dense(keys)
        return components, draft, ("llama.cpp caches this file's heads expanded, several times the latent",)
    return latent_layers(keys, range(keys.layers)), latent_layers(keys, drafts(keys)), ()


def _sparse_latent(keys: Keys) -> Built:
    """Build MLA with an indexer, whose cache has one head and no values."""
    width, heads = keys.size("attention.indexer.key_length"), keys.size("attention.indexer.head_count")
    indexed = [layer for layer, owns in enumerate(_indexers(keys)) if owns and layer < keys.layers]
    components = latent_layers(keys, range(keys.layers))
    return [*components, indexer_component(indexed, heads, width)], latent_layers(keys, drafts(keys)), ()


def _indexers(keys: Keys) -> list[bool]:
    """Return which layers own an indexer: as listed, else all; GLM-5.2 and later by a fixed pattern."""
    every = [True] * keys.blocks
    if keys.architecture != "glm-dsa":
        return every
    if keys.size("context_length") >= GLM_5_2_CONTEXT:
        every = [layer < 2 or layer % 4 == 2 for layer in range(keys.blocks)]
    return [bool(owns) for owns in keys.per_layer("attention.indexer.types", every)]


def latent_layers(keys: Keys, layers: Sequence[int]) -> list[Component]:
    """Return layers that cache one row of latent and rotary key, and no value."""
    rank, row = keys.size("attention.kv_lora_rank"), keys.size("attention.key_length")
    key, value = keys.size("attention.key_length_mla"), keys.size("attention.value_length_mla")
    heads = {keys.per_layer("attention.head_count_kv")[layer] for layer in layers}
    if heads - {1}:
        raise keys.refuse("attention.head_count_kv", f"{max(heads)} for a latent, which has 1")
    if row < rank:
        raise keys.refuse("attention.key_length", f"{row} is less than the latent's {rank}")
    query = max(keys.per_layer("attention.head_count"))
    rope = row - rank
    return [mla_component(layers, rank, rope, query, key - rope, value)]


BUILDERS: Mapping[str, Callable[[Keys], Built]] = {
    **dict.fromkeys(DENSE, _dense),
    **dict.fromkeys(WINDOWED, _windowed),
    **dict.fromkeys(("deepseek2", "mistral4"), _latent),
    **dict.fromkeys(("deepseek32", "glm-dsa"), _sparse_latent),
}
"""What builds the shape of each architecture."""
