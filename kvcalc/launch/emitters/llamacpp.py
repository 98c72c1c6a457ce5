"""A plan as `llama-server`."""

from kvcalc.launch.emitters.plan import Target, script
from kvcalc.shapes.formats import find_format
from kvcalc.wording import counted

_SPELLED = {"fp16": "f16", "fp32": "f32"}
MIB = 2**20

ALL_LAYERS = 99
"""What llama.cpp's own pages write for all layers [1]; models that have more need more."""


def emit(target: Target) -> str:
    """Return the launch."""
    settings = target.scenario.settings
    slots = max(settings.parallel, target.sequences)
    length = settings.max_len or target.scenario.workload.prompt + target.scenario.workload.generate
    said = target.scenario.serving.gpu_layers
    layers = said if said is not None else max(ALL_LAYERS, target.scenario.model.shape.layers + 1)
    flags = [
        ("-m", "MODEL.gguf"),
        ("-c", str(length * slots)),
        ("-np", str(slots)),
        ("-ub", str(settings.ubatch)),
        ("--cache-type-k", _type(settings.k_type or settings.kv_dtype)),
        ("--cache-type-v", _type(settings.v_type or settings.kv_dtype)),
        ("-ngl", str(layers)),
        ("--flash-attn", "on"),
    ]
    flags += [("--split-mode", "layer")] if settings.pp > 1 else []
    flags += [("--swa-full", "")] if settings.swa_full else []
    notes = [
        *target.notes(),
        *target.notes_on_store("write_back"),
        f"-c is for all slots together: {counted(slots, 'slot')} of {length:,} tokens",
        "--flash-attn takes no value before autumn 2025; a quantized V cache needs it",
    ]
    if said is None:
        notes.append(f"-ngl {layers} puts all layers on the GPUs; newer builds also take -ngl all")
    if target.host is not None:
        flags.append(("--cache-ram", str(int(target.host_of_replica // MIB))))
        notes.append(
            "--cache-ram is MiB of host memory for prompts of idle slots, in builds from autumn 2025 on"
        )
    return script(notes, "llama-server", flags)


def _type(name: str) -> str:
    found = "f16" if name == "auto" else find_format(name, "llama.cpp").name
    return _SPELLED.get(found, found)
