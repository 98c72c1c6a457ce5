"""From a `quantization_config` to the storage format of each weight matrix."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kvcalc.errors import UnsupportedModelError, did_you_mean
from kvcalc.parameters import formats, ggml
from kvcalc.parameters.counts import Parameters, Part
from kvcalc.parameters.formats import Format
from kvcalc.parameters.patterns import Patterns, canonical

Raw = Mapping[str, Any]


@dataclass(frozen=True)
class Scheme:
    """Formats by module: the first target that names it, else the default; ignored ones stay plain."""

    default: Format | None
    targets: tuple[tuple[Patterns, Format], ...] = ()
    ignore: Patterns | None = None
    experts: Format | None = None  # what routed experts are stored in, where that differs

    def of(self, part: Part, module: str) -> Format:
        """Return the format of one matrix under its full module name."""
        for patterns, chosen in self.targets:
            if patterns.match(module):
                return chosen
        if not part.quantizable or (self.ignore is not None and self.ignore.match(module)):
            return part.format
        chosen_default = self.experts if part.name == "experts" and self.experts else self.default
        return chosen_default or part.format


def quantize(parameters: Parameters, raw: Raw, where: str, expert_dtype: str | None = None) -> Parameters:
    """Return `parameters` in the formats that a `quantization_config` declares.

    `expert_dtype` is DeepSeek's key for experts that are stored in fewer bits than the rest.

    Raises
    ------
    UnsupportedModelError
        If the method or a bit width is not known.
    """
    scheme = _scheme(raw, where)
    if expert_dtype == "fp4":
        scheme = replace(scheme, experts=formats.MXFP4)
    return replace(
        parameters,
        parts=tuple(new for part in parameters.parts for new in _apply(scheme, part)),
        draft=tuple(new for part in parameters.draft for new in _apply(scheme, part)),
    )


def _apply(scheme: Scheme, part: Part) -> list[Part]:
    if not part.matrix or part.name in ("vision_tower", "embedding"):
        return [part]
    if part.layers is None:
        return [replace(part, format=scheme.of(part, part.module))]
    by_format: dict[Format, list[int]] = {}
    for layer in part.layers:
        chosen = scheme.of(part, f"layers.{layer}.{part.module}")
        by_format.setdefault(chosen, []).append(layer)
    return [replace(part, layers=tuple(where), format=chosen) for chosen, where in by_format.items()]


def _scheme(raw: Raw, where: str) -> Scheme:
    method = str(raw.get("quant_method") or "").lower()
    if not method and (raw.get("quant_algo") or "modelopt" in str(raw.get("producer"))):
        method = "modelopt"
    if raw.get("quantized_layers"):
        method = "modelopt"  # NVIDIA's DeepSeek V4 files keep "fp8" from the checkpoint they started from
    reader = _READERS.get(method)
    if reader is None:
        raise UnsupportedModelError(
            f"{where}: quantization_config.quant_method: {method!r} is not known"
            f"{did_you_mean(method, tuple(_READERS))}"
        )
    return reader(raw, where)


def _ignored(raw: Raw, where: str) -> Patterns:
    names: list[str] = []
    for key in ("modules_to_not_convert", "ignore", "exclude_modules", "llm_int8_skip_modules"):
        names += _names(raw, key, where)
    return Patterns(names, where)


def _names(raw: Raw, key: str, where: str) -> list[str]:
    value = raw.get(key) or []
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise UnsupportedModelError(f"{where}: quantization_config.{key}: expected a list")
    return [str(name) for name in value]


def _fp8(raw: Raw, where: str) -> Scheme:
    return Scheme(_fp8_format(raw.get("weight_block_size"), where), ignore=_ignored(raw, where))


def _fp8_format(block: object, where: str) -> Format:
    if not block:
        return formats.FP8_TENSOR
    match block:
        case [int(rows), int(columns)] if rows > 0 and columns > 0:
            return formats.fp8_blocks(rows, columns)
    raise UnsupportedModelError(f"{where}: quantization_config.weight_block_size: {block!r:.40} is no pair")


def _fbgemm(raw: Raw, where: str) -> Scheme:
    return Scheme(formats.FP8_CHANNEL, ignore=_ignored(raw, where))


def _groups(raw: Raw, where: str) -> Scheme:
    bits, group = _whole(raw, "bits", where), _whole(raw, "group_size", where)
    if not 1 <= bits <= 8 or group >= _MOST_GROUPED:
        raise UnsupportedModelError(f"{where}: quantization_config: {bits} bits in groups of {group}")
    # GPTQ files hold zero points even when they are symmetric; engines drop those on loading.
    zeros = bool(raw.get("zero_point", not raw.get("sym", False)))
    return Scheme(formats.integer_groups(bits, group, zeros), ignore=_ignored(raw, where))


def _bitsandbytes(raw: Raw, where: str) -> Scheme:
    chosen = formats.BNB_NF4 if raw.get("load_in_4bit") else formats.INT8_CHANNEL
    return Scheme(chosen, ignore=_ignored(raw, where))


def _mxfp4(raw: Raw, where: str) -> Scheme:
    return Scheme(None, experts=formats.MXFP4, ignore=_ignored(raw, where))


def _compressed(raw: Raw, where: str) -> Scheme:
    targets: list[tuple[Patterns, Format]] = []
    default: Format | None = None
    groups = raw.get("config_groups") or {}
    if not isinstance(groups, Mapping):
        raise UnsupportedModelError(f"{where}: quantization_config.config_groups: expected a mapping")
    for key, group in groups.items():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if not isinstance(weights, Mapping):
            raise UnsupportedModelError(f"{where}: quantization_config.config_groups.{key}: no weights")
        chosen = _declared(weights, f"{where}: quantization_config.config_groups.{key}")
        named = [name for name in _names(group, "targets", where) if name != "Linear"]
        if named:
            targets.append((Patterns(named, where), chosen))
        else:
            default = chosen
    return Scheme(default, tuple(targets), _ignored(raw, where))


def _declared(weights: Raw, where: str) -> Format:
    """Return the format of one group of compressed-tensors: type, bits, and what has a scale."""
    kind, bits = weights.get("type"), _whole(weights, "num_bits", where)
    group, strategy = weights.get("group_size") or 0, weights.get("strategy") or ""
    if (kind, bits) == ("float", 8):
        if strategy == "channel":
            return formats.FP8_CHANNEL
        if strategy == "group" and group == formats.MXFP8.block_columns:
            return formats.MXFP8
        return _fp8_format(weights.get("block_structure"), where)
    if (kind, bits) == ("float", 4):
        for known in (formats.NVFP4, formats.MXFP4):
            if group == known.block_columns:
                return known
    if kind == "int" and bits in (4, 8) and isinstance(group, int) and 0 <= group < _MOST_GROUPED:
        return formats.integer_groups(bits, group, zeros=not weights.get("symmetric", True))
    raise UnsupportedModelError(f"{where}: {bits}-bit {kind} in groups of {group} is not known")


_MOST_GROUPED = 2**20  # values that share a scale; beyond it the file is malformed

_MODELOPT = {
    "FP8": formats.FP8_TENSOR,
    "FP8_PER_CHANNEL_PER_TOKEN": formats.FP8_CHANNEL,
    "FP8_PB_WO": formats.FP8_BLOCK,
    "NVFP4": formats.NVFP4,
    "W4A16_NVFP4": formats.NVFP4,
    "NVFP4_AWQ": formats.NVFP4,
    "W4A8_NVFP4_FP8": formats.NVFP4,
    "MXFP8": formats.MXFP8,
    "MXFP4": formats.MXFP4,
    "W4A8_MXFP4_FP8": formats.MXFP4,
    "W4A16_AWQ": formats.INT4,
    "W4A8_AWQ": formats.INT4,
    "INT8_SQ": formats.INT8_CHANNEL,
}
"""TensorRT Model Optimizer's `quant_algo`, as its `hf_quant_config.json` files spell it."""


def _modelopt(raw: Raw, where: str) -> Scheme:
    ignore = _ignored(raw, where)
    per_layer = raw.get("quantized_layers")
    if isinstance(per_layer, Mapping) and per_layer:
        named: dict[Format, list[str]] = {}
        for module, how in per_layer.items():
            algorithm = how.get("quant_algo") if isinstance(how, Mapping) else how
            named.setdefault(_algorithm(algorithm, where), []).append(canonical(module))
        targets = tuple((Patterns(set(names), where), chosen) for chosen, names in named.items())
        # What the mixed recipe does not name keeps the checkpoint's own block-scaled fp8, if it has any.
        rest = _fp8_format(raw.get("weight_block_size"), where) if raw.get("weight_block_size") else None
        return Scheme(rest, targets, None if rest else ignore)
    if raw.get("config_groups"):
        return _compressed(raw, where)
    return Scheme(_algorithm(raw.get("quant_algo"), where), ignore=ignore)


def _algorithm(name: object, where: str) -> Format:
    known = _MODELOPT.get(str(name).upper())
    if known is None:
        raise UnsupportedModelError(
            f"{where}: quant_algo: {name!r} is not known{did_you_mean(str(name), tuple(_MODELOPT))}"
        )
    return known


def _whole(raw: Raw, key: str, where: str) -> int:
    value = raw.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise UnsupportedModelError(f"{where}: quantization_config.{key}: {value!r} is not a whole number")
    return value


_READERS: dict[str, Callable[[Raw, str], Scheme]] = {
    "fp8": _fp8,
    "fbgemm_fp8": _fbgemm,
    "compressed-tensors": _compressed,
    "modelopt": _modelopt,
    "modelopt_fp4": _modelopt,
    "awq": _groups,
    "gptq": _groups,
    "bitsandbytes": _bitsandbytes,
    "mxfp4": _mxfp4,
}


def with_dtype(parameters: Parameters, name: str) -> Parameters:
    """Return `parameters` stored in the format `name`, whatever the checkpoint declares.

    A 16- or 32-bit name holds for every tensor; a quantized one for the matrices that engines
    quantize, while embeddings, heads, routers and norms are kept in 16 bits.  ggml's types and
    mixtures are stored as llama.cpp does.
    """
    if name.lower() in ggml.names():
        return ggml.with_ggml(parameters, name.lower())
    chosen = formats.named(name, ggml.names())
    plain = chosen if chosen.bits >= formats.BF16.bits else formats.BF16

    def change(part: Part) -> Part:
        quantized = part.matrix and part.quantizable and part.name != "vision_tower"
        return replace(part, format=chosen if quantized else plain)

    return parameters.map(change)
