"""Which dtype a checkpoint asks its KV cache to be, from its quantization section or sidecar.

The rules are vLLM 0.33's (`get_kv_cache_quant_algo_string`, `_normalize_quantization_config` and
`CompressedTensorsConfig`), which decides so when `--kv-cache-dtype` is left at `auto`.
"""

from collections.abc import Mapping
from typing import Any

from kvcalc.errors import UnsupportedModelError

KV_DTYPES = {"fp8": "fp8", "fp8_e4m3": "fp8", "nvfp4": "nvfp4"}
"""What quantization tools call a KV dtype, lowercased, and what kvcalc calls it."""


def declared_kv_dtype(
    config: Mapping[str, Any], sidecar: Mapping[str, Any] | None, where: str
) -> tuple[str | None, tuple[str, ...]]:
    """Return the KV dtype that the checkpoint asks for (None: the model's own), and notes.

    `sidecar` is `hf_quant_config.json`; engines look at it only if config.json itself has no
    `quantization_config`.
    """
    section = _section(config)
    if section is not None:
        dtype = _asked_by(section, where)
    else:
        dtype = _asked_by(sidecar, where) if sidecar is not None else None
    if dtype is None and (ignored := _mentioned(section) or _mentioned(sidecar)):
        return None, (
            f"the quantization files mention a KV cache of {ignored}, but in a form that engines "
            "do not follow: it stays in the model's dtype unless you set the KV dtype",
        )
    return dtype, ()


def _section(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    text = config.get("text_config")
    for source in (config, text if isinstance(text, Mapping) else {}):
        for key in ("quantization_config", "compression_config"):
            if isinstance(source.get(key), Mapping):
                return source[key]  # type: ignore[no-any-return]
    return None


def _asked_by(section: Mapping[str, Any], where: str) -> str | None:
    method = str(section.get("quant_method") or "").lower().replace("_", "-")
    inner = section.get("quantization")
    producer = section.get("producer")
    if isinstance(producer, Mapping) and producer.get("name") == "modelopt" and isinstance(inner, Mapping):
        method = "modelopt"
    if method.startswith("modelopt"):
        inner = inner if isinstance(inner, Mapping) else section
        return _dtype_of(inner.get("kv_cache_scheme") or inner.get("kv_cache_quant_algo"), where)
    if method == "compressed-tensors":
        return _dtype_of(section.get("kv_cache_scheme"), where)
    return None


def _dtype_of(asked: object, where: str) -> str | None:
    """Translate ``"FP8"`` or ``{"num_bits": 8, "type": "float"}``."""
    if not asked:
        return None
    name = str(asked).lower()
    if isinstance(asked, Mapping):
        name = {(8, "float"): "fp8", (4, "float"): "nvfp4"}.get(
            (asked.get("num_bits"), asked.get("type")),  # type: ignore[arg-type]
            f"{asked.get('num_bits')} bits of {asked.get('type')}",
        )
    if name not in KV_DTYPES:
        raise UnsupportedModelError(
            f"{where}: the quantization config asks for a KV cache of {name!r:.60}, "
            f"known are {', '.join(sorted(set(KV_DTYPES.values())))}"
        )
    return KV_DTYPES[name]


def _mentioned(section: Mapping[str, Any] | None) -> str | None:
    if section is None:
        return None
    inner = section.get("quantization")
    for source in (section, inner if isinstance(inner, Mapping) else {}):
        for key in ("kv_cache_scheme", "kv_cache_quant_algo"):
            if source.get(key):
                return str(source[key])[:40]
    return None
