"""How many bytes a row of cached values takes in each storage format, and who offers it.

A format packs values in a number of bits and may add scales per head, scales per group of values
or padding.  `payload` counts the values alone, `stored` all that occupies memory.  Each format is
one line of data; the arithmetic below knows none of them by name.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kvcalc.errors import SettingsError, did_you_mean

Side = Literal["key", "value", "rope"]
"""Formats may pack keys (and latents), values and the rotary part of a latent row differently."""

ENGINES = ("generic", "vllm", "sglang", "llama.cpp", "transformers")
_ALL = ENGINES
_GENERIC_VLLM = ("generic", "vllm")
_GENERIC_SGLANG = ("generic", "sglang")
_GENERIC_LLAMA = ("generic", "llama.cpp")


@dataclass(frozen=True)
class RowBytes:
    """Bytes of one row: the useful values, and as stored with scales and padding."""

    payload: float
    stored: float

    def __add__(self, other: "RowBytes") -> "RowBytes":
        return RowBytes(self.payload + other.payload, self.stored + other.stored)


@dataclass(frozen=True)
class Packing:
    """How the values of one head and token are packed."""

    bits: int
    per_head: int = 0  # bytes of scale and offset per head
    group: int = 0  # values that share a scale; 0 without group scales
    group_bytes: int = 0  # bytes of scale (and offset) per group
    across_heads: bool = False  # groups run over the whole row, which must be a multiple of one

    def row(self, heads: float, width: int) -> RowBytes:
        """Return the bytes of `heads` x `width` values."""
        if self.across_heads:
            return self._whole_groups(heads * width)
        payload = width * self.bits / 8
        stored = float(-(-width * self.bits // 8) + self.per_head)
        if self.group:
            stored += -(-width // self.group) * self.group_bytes
        return RowBytes(heads * payload, heads * stored)

    def _whole_groups(self, values: float) -> RowBytes:
        if values % self.group:
            raise SettingsError(
                f"a row of {values:g} values is no multiple of the {self.group} that share a scale"
            )
        payload = values * self.bits / 8
        return RowBytes(payload, payload + values / self.group * self.group_bytes)


@dataclass(frozen=True)
class Format:
    """One storage format: its packing, spellings, engines and where the figures come from."""

    name: str
    key: Packing
    engines: tuple[str, ...]
    source: str
    value: Packing | None = None  # None: packed as keys are
    rope: Packing | None = None  # rotary part of a latent row; None: packed as keys are
    aliases: tuple[str, ...] = ()
    slot_multiple: int = 1  # the whole slot of one head (all tensors of the entry) is rounded up to this
    latent_only: bool = False  # exists for multi-head latent attention alone

    def packing(self, side: Side) -> Packing:
        """Return the packing of one side."""
        chosen = {"key": self.key, "value": self.value, "rope": self.rope}[side]
        return chosen or self.key


_VLLM = "vLLM 0.33.0, vllm/v1/kv_cache_interface.py and config/cache.py"
_SGLANG = "SGLang 0.5.23, srt/mem_cache/memory_pool.py"
_GGML = "llama.cpp, ggml/src/ggml-common.h: block_* structs"
_IEEE = "element width"

_TURBO_SCALE = 2  # one fp16 norm per key head [byte]
_TURBO_SCALE_AND_ZERO = 4  # fp16 scale and zero point per value head [byte]


def _turbo(name: str, key_bits: int, value_bits: int) -> Format:
    """Return a TurboQuant format: fp8 keys have no norm, others a norm; the slot is kept even."""
    key = Packing(8) if key_bits == 8 else Packing(key_bits, per_head=_TURBO_SCALE)
    value = Packing(value_bits, per_head=_TURBO_SCALE_AND_ZERO)
    return Format(name, key, _GENERIC_VLLM, _VLLM, value=value, slot_multiple=2)


def _per_token_head(name: str, bits: int) -> Format:
    """Return a format with one fp32 scale per token, head and side."""
    return Format(name, Packing(bits, per_head=4), _GENERIC_VLLM, _VLLM)


def _ggml(name: str, bits: int, scale_bytes: int) -> Format:
    """Return a llama.cpp block format: 32 values and their fp16 scale, offset or high bits."""
    packing = Packing(bits, group=32, group_bytes=scale_bytes, across_heads=True)
    return Format(name, packing, _GENERIC_LLAMA, _GGML)


FORMATS: tuple[Format, ...] = (
    Format("fp32", Packing(32), _ALL, _IEEE, aliases=("float32", "f32", "float")),
    Format("fp16", Packing(16), _ALL, _IEEE, aliases=("float16", "f16", "half")),
    Format("bf16", Packing(16), _ALL, _IEEE, aliases=("bfloat16",)),
    Format(
        "fp8_e4m3",
        Packing(8),
        ("generic", "vllm", "sglang"),
        "scales are per layer, none per token: " + _VLLM,
        aliases=("fp8", "float8_e4m3fn", "fp8_inc"),
    ),
    Format("fp8_e5m2", Packing(8), ("generic", "vllm", "sglang"), _VLLM, aliases=("float8_e5m2",)),
    Format("int8", Packing(8), _GENERIC_VLLM, "scales are per layer, none per token: " + _VLLM),
    _per_token_head("fp8_per_token_head", 8),
    _per_token_head("int8_per_token_head", 8),
    _per_token_head("int4_per_token_head", 4),
    Format("nvfp4", Packing(4, group=16, group_bytes=1), _GENERIC_VLLM, _VLLM),
    Format("fp4_e2m1", Packing(4, group=16, group_bytes=1), _GENERIC_SGLANG, _SGLANG),
    Format("mxfp8", Packing(8, group=32, group_bytes=1), _GENERIC_SGLANG, _SGLANG),
    _turbo("turboquant_k8v4", 8, 4),
    _turbo("turboquant_4bit_nc", 4, 4),
    _turbo("turboquant_k3v4_nc", 3, 4),
    _turbo("turboquant_3bit_nc", 3, 3),
    Format(
        "fp8_block128",  # one fp32 scale per 128 values: keys of DeepSeek's indexer, 132 B
        Packing(8, group=128, group_bytes=4),
        ("generic", "vllm", "sglang"),
        _VLLM,
    ),
    Format(
        "fp8_ds_mla",  # 512 fp8 + 4 fp32 scales + 64 bf16 = 656
        Packing(8, group=128, group_bytes=4),
        ("generic", "vllm", "sglang"),
        _VLLM,
        rope=Packing(16),
        latent_only=True,
    ),
    Format(
        "fp8_ds_mla_v4",  # DeepSeek V4: 448 fp8 + 7 scales + 64 bf16, rounded up to 584
        Packing(8, group=64, group_bytes=1),
        ("generic", "vllm", "sglang"),
        _VLLM,
        rope=Packing(16),
        slot_multiple=8,
        latent_only=True,
    ),
    Format(
        "nvfp4_ds_mla",  # 256 B of fp4 + 32 scales + 64 fp8 = 352
        Packing(4, group=16, group_bytes=1),
        _GENERIC_VLLM,
        _VLLM,
        rope=Packing(8),
        latent_only=True,
    ),
    _ggml("q8_0", 8, 2),
    _ggml("q5_1", 5, 4),
    _ggml("q5_0", 5, 2),
    _ggml("q4_1", 4, 4),
    _ggml("q4_0", 4, 2),
    _ggml("iq4_nl", 4, 2),
)

_BY_NAME = {spelling: item for item in FORMATS for spelling in (item.name, *item.aliases)}


_OWN_NAMES = {"llama.cpp": {"fp32": "f32", "fp16": "f16"}}


def find_format(name: str, engine: str | None = None, option: str = "--kv-dtype") -> Format:
    """Return the format that `name` spells, refusing one that `engine` does not have.

    >>> find_format("half").name
    'fp16'
    """
    found = _BY_NAME.get(name.lower())
    if found is None:
        known = sorted(spelling for spelling, item in _BY_NAME.items() if _offered(item, engine))
        raise SettingsError(f"{option}: unknown format {name!r}{did_you_mean(name, known)}")
    if not _offered(found, engine):
        known = [_spelled(item, engine) for item in FORMATS if _offered(item, engine)]
        raise SettingsError(f"{option}: {engine} has no {name!r}; it takes {', '.join(known)}")
    return found


def _spelled(item: Format, engine: str | None) -> str:
    """Return how the engine itself spells a format."""
    return _OWN_NAMES.get(engine or "", {}).get(item.name, item.name)


def _offered(item: Format, engine: str | None) -> bool:
    return engine is None or engine in item.engines


def row_bytes(name: str, heads: float, width: int, side: Side = "key") -> RowBytes:
    """Return the bytes of one token's row of `heads` x `width` values on one side.

    Examples
    --------
    >>> row_bytes("fp8_per_token_head", 8, 128)
    RowBytes(payload=1024.0, stored=1056.0)
    >>> row_bytes("q8_0", 4, 256)
    RowBytes(payload=1024.0, stored=1088.0)
    """
    return find_format(name).packing(side).row(heads, width)


def slot_bytes(name: str, rows: Sequence[tuple[Side, float, int]]) -> RowBytes:
    """Return the bytes of a whole slot: the (side, heads, width) rows of one token together.

    Slots of some formats are rounded up per head, so a slot may exceed the sum of its rows.

    Examples
    --------
    DeepSeek V3.2's packed latent row, and that of V4:

    >>> slot_bytes("fp8_ds_mla", [("key", 1, 512), ("rope", 1, 64)]).stored
    656.0
    >>> slot_bytes("fp8_ds_mla_v4", [("key", 1, 448), ("rope", 1, 64)]).stored
    584.0
    """
    form = find_format(name)
    total = RowBytes(0.0, 0.0)
    for side, heads, width in rows:
        total += form.packing(side).row(heads, width)
    if form.slot_multiple == 1:
        return total
    heads = max(heads for _, heads, _ in rows)
    per_head = total.stored / heads
    return RowBytes(total.payload, heads * (-(-per_head // form.slot_multiple) * form.slot_multiple))
