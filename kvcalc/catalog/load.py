"""What was said of the load and of the guests beside the model -> `Workload` and `Serving`."""

import math
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from kvcalc.engines.kinds import KINDS, kind_of
from kvcalc.engines.settings import EngineSettings
from kvcalc.errors import SettingsError
from kvcalc.profiles import Hardware
from kvcalc.scenario import Serving, Workload

if TYPE_CHECKING:
    from kvcalc.catalog.scenarios import Said


def read_workload(values: Mapping[str, Any], said: Mapping[str, "Said"]) -> Workload:
    """Return the load; images lengthen the prompt, and a hit is a share of the whole of it."""
    names = ("prompt", "generate", "concurrency", "rate", "images", "image_tokens", "hit_rate")
    workload = Workload(**{name: values[name] for name in names if name in values})
    if bool(workload.images) != bool(workload.image_tokens):
        missing = "image_tokens" if workload.images else "images"
        raise SettingsError(
            f"--{missing.replace('_', '-')}: missing; --images 2 --image-tokens 576 adds 1,152 tokens to "
            "each prompt"
        )
    pictures = workload.images * workload.image_tokens
    workload = replace(workload, prompt=workload.prompt + pictures)
    refuse_two_hits(values)
    cached = values.get("cached")
    if "hit" in values:
        cached = math.floor(values["hit"] * workload.prompt)
    if cached is not None and cached > workload.prompt:
        raise SettingsError(
            f"{said['cached'].where}: {cached:,} cached tokens are more than the prompt's {workload.prompt:,}"
        )
    return replace(workload, cached=cached)


def refuse_two_hits(said: Collection[str]) -> None:
    """Refuse a question whose keys say twice how much of a prompt hits.

    Raises
    ------
    SettingsError
        If both keys are there.
    """
    if "cached" in said and "hit" in said:
        raise SettingsError("--cached and --hit say the same thing twice; give one of them")


def read_serving(
    values: Mapping[str, Any], settings: EngineSettings, hardware: Hardware, layers: int
) -> Serving:
    """Return the guests and the placement of a model's `layers`, or refuse what cannot be."""
    serving = Serving(**{item.name: values[item.name] for item in fields(Serving) if item.name in values})
    if not settings.spec_tokens:
        for name in ("draft", "acceptance"):
            if name in values:
                raise SettingsError(
                    f"--{name}: needs --spec-tokens, the tokens that are drafted in each step"
                )
    if "lora_rank" in values and not serving.lora:
        raise SettingsError("--lora-rank: needs --lora, the number of adapters held at once")
    if serving.host_reserve is not None and not hardware.device.unified:
        raise SettingsError(f"--host-reserve: {hardware.name} has a memory of its own; leave it out")
    if serving.host_bandwidth is not None and serving.gpu_layers is None:
        raise SettingsError("--host-bandwidth: needs --gpu-layers, since no layer is on the host otherwise")
    if (
        kind_of(settings.engine).has_host_layers
        and (serving.gpu_layers or 0) > layers
        and not _divisible(settings, hardware)
    ):
        return replace(serving, gpu_layers=None)  # all of it is on the GPU, and nothing is divided
    if serving.gpu_layers is not None:
        _check_partial(serving.gpu_layers, settings, hardware)
    return serving


def _divisible(settings: EngineSettings, hardware: Hardware) -> bool:
    """Whether a model can be divided between one GPU and a host with a memory of its own."""
    return settings.tp * settings.pp == 1 and not hardware.device.unified


def _check_partial(layers: int, settings: EngineSettings, hardware: Hardware) -> None:
    if not kind_of(settings.engine).has_host_layers:
        able = [name for name, kind in KINDS.items() if kind.has_host_layers]
        raise SettingsError(
            f"--gpu-layers: only {' and '.join(able)} leaves layers on the host, not {settings.engine}; add "
            f"--engine {able[0]}"
        )
    if settings.tp * settings.pp > 1:
        raise SettingsError("--gpu-layers: kvcalc divides a model between one GPU and its host only")
    if hardware.device.unified:
        raise SettingsError(
            f"--gpu-layers: {hardware.name} shares one memory with its host, so moving layers frees nothing"
        )
    if layers < 2:
        raise SettingsError(
            f"--gpu-layers: {layers} leaves no layer on the GPU but the output layer, which counts as one"
        )
