"""What GPU and host share: layers left in host memory (llama.cpp's -ngl), or one memory for both."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from kvcalc.engines import lay_out
from kvcalc.errors import SettingsError
from kvcalc.model import Model
from kvcalc.parameters import Parameters
from kvcalc.parameters.counts import Part
from kvcalc.planning.decode import DecodeModel
from kvcalc.planning.notebook import Notebook
from kvcalc.quantity import Count, Seconds, Tokens
from kvcalc.results import HostShare, Source
from kvcalc.scenario import Scenario
from kvcalc.shapes.components import Component
from kvcalc.wording import part_text, said_size

HOST_BANDWIDTH = 80e9
"""What a host reads from its memory where no profile says [byte/second]: two channels of DDR5-5600 make
89.6 GB/s at most; assumed."""

HOST_NEEDS = 8e9
"""What an operating system and its services take of a memory that the GPU uses too [byte]; assumed."""


@dataclass(frozen=True)
class Placement:
    """A scenario cut in two: what the GPU holds, and what the host keeps and computes."""

    gpu: Scenario
    host: Scenario


@dataclass(frozen=True)
class HostLayers:
    """The layers that a step computes on the host, out of the host's memory."""

    model: DecodeModel  # of these layers alone
    bandwidth: float  # of the host's memory [byte/second]

    def time(self, batch: Count, context: Tokens, sustained: float) -> Seconds:
        """Return the time of reading these layers and their KV once."""
        read = self.model.read_weights(batch) + batch * self.model.read_kv(context)
        return read / (self.bandwidth * sustained)


def placed(scenario: Scenario) -> Placement | None:
    """Return the two parts of a scenario; None where all of it is on the GPU.

    llama.cpp counts the output layer as the first of `-ngl`, then takes layers from the last one
    backwards, and leaves the input embedding on the host (`load_tensors`,
    i_gpu_start = max(n_layer + 1 - n_gpu_layers, 0)).
    """
    wanted = scenario.serving.gpu_layers
    if wanted is None:
        return None
    first = max(scenario.model.shape.layers + 1 - wanted, 0)
    model = scenario.model
    on_gpu = _part_of(model, lambda layer: layer >= first, outside=_runs_last(model.parameters))
    on_host = _part_of(model, lambda layer: layer < first, outside=lambda part: part.name == "embedding")
    if not on_gpu.shape.components:
        raise SettingsError(
            f"--gpu-layers: {wanted} puts no layer of {model.name} on the GPU that keeps KV; it has "
            f"{model.shape.layers} layers and the output layer"
        )
    without_draft = replace(scenario.settings, draft_layers=0)
    return Placement(
        replace(scenario, model=on_gpu),
        replace(scenario, model=on_host, settings=without_draft, draft=None),
    )


def _runs_last(parameters: Parameters | None) -> Callable[[Part], bool]:
    """Return which parts outside the layers are on the GPU: all but an embedding that is no head too."""
    tied = parameters is not None and parameters.tied
    return lambda part: tied or part.name != "embedding"


def _part_of(model: Model, keep: Callable[[int], bool], outside: Callable[[Part], bool]) -> Model:
    shape = replace(
        model.shape,
        components=_kept(model.shape.components, keep),
        engine_components={
            engine: _kept(parts, keep) for engine, parts in model.shape.engine_components.items()
        },
        draft=model.shape.draft if keep(model.shape.layers) else (),
    )
    parameters = model.parameters
    if parameters is not None:
        cut = (
            part if part.layers is None else replace(part, layers=tuple(filter(keep, part.layers)))
            for part in parameters.parts
        )
        parameters = replace(
            parameters,
            parts=tuple(part for part in cut if (outside(part) if part.layers is None else part.layers)),
            draft=parameters.draft if keep(parameters.layers) else (),
        )
    return replace(model, shape=shape, parameters=parameters)


def _kept(components: tuple[Component, ...], keep: Callable[[int], bool]) -> tuple[Component, ...]:
    cut = (replace(part, layers=tuple(filter(keep, part.layers))) for part in components)
    return tuple(part for part in cut if part.layers)


def host_share(place: Placement, time: float, book: Notebook) -> HostShare:
    """Return what the host holds of the model and of the asked sequences' KV."""
    scenario, bandwidth = place.host, host_bandwidth(place.host)
    parameters, memory = scenario.model.parameters, scenario.hardware.host
    share = HostShare(
        layers=max(scenario.model.shape.layers + 1 - (scenario.serving.gpu_layers or 0), 0),
        weights=0.0 if parameters is None else parameters.bytes,
        kv=_host_kv(scenario),
        bandwidth=bandwidth,
        step_time=time,
    )
    if scenario.serving.host_bandwidth is None and memory is None:
        book.source("host.bandwidth", Source("assumed", "two channels of DDR5"))
        book.assume(f"the host reads its memory at {bandwidth / 1e9:.0f} GB/s; --host-bandwidth replaces it")
    held = float(share.weights) + float(share.kv)
    if memory is None:
        book.assume(f"the host has room for the {part_text(held)} of its layers")
    elif held > memory.capacity:
        book.warn(f"the host's layers take {part_text(held)} of its {part_text(memory.capacity)}")
    book.assume("layers on the host run as fast as its memory is read; their operations are not counted")
    return share


def _host_kv(scenario: Scenario) -> float:
    if not scenario.model.shape.components:
        return 0.0
    tokens = scenario.workload.prompt + scenario.workload.generate
    layout = lay_out(scenario.model.shape, scenario.settings)
    return float(layout.reserved(tokens)) * scenario.workload.concurrency


def host_bandwidth(scenario: Scenario) -> float:
    """Return what the host reads of its memory [byte/second]."""
    memory = scenario.hardware.host
    return scenario.serving.host_bandwidth or (HOST_BANDWIDTH if memory is None else memory.bandwidth)


def shared_limit(scenario: Scenario, book: Notebook) -> float:
    """Return the share of a memory that the host uses too which is left to the GPU.

    Some profiles state what the GPU may use of a larger memory: the rest is the host's already.
    """
    device, reserve = scenario.hardware.device, scenario.serving.host_reserve
    if reserve is None:
        reserve = max(0.0, HOST_NEEDS - max(0.0, device.marketed_capacity - device.capacity))
        book.assume(
            f"the host keeps {part_text(reserve)} of the {part_text(device.capacity)} that it shares "
            "with the GPU; --host-reserve replaces it"
        )
    if reserve >= device.capacity:
        raise SettingsError(
            f"--host-reserve: {said_size(reserve)} leaves nothing of the {said_size(device.capacity)} of "
            f"{scenario.hardware.name}"
        )
    return 1.0 - reserve / device.capacity
