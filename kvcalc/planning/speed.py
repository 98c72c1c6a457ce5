"""How fast one scenario runs: its layout with the prefill and the decode model, made once."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvcalc.engines import lay_out
from kvcalc.engines.layout import Layout
from kvcalc.parameters import Parameters
from kvcalc.planning.decode import DecodeModel
from kvcalc.planning.memory import counted, weight_bytes
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.prefill import PrefillModel
from kvcalc.planning.reads import weight_reads
from kvcalc.scenario import Scenario

if TYPE_CHECKING:
    from kvcalc.planning.drafting import Draft
    from kvcalc.planning.placement import HostLayers, Placement


@dataclass(frozen=True)
class Speed:
    """What offload, eviction and flips ask of the speed models."""

    scenario: Scenario
    layout: Layout
    prefill: PrefillModel
    decode: DecodeModel


def speed_of(scenario: Scenario, layout: Layout, book: Notebook, place: "Placement | None" = None) -> Speed:
    """Return the speed models of a scenario, of which the GPUs hold `layout`."""
    held = scenario if place is None else place.gpu
    parameters, weights = counted(held, book), weight_bytes(held, book)
    prefill = _prefill(scenario, parameters, layout, book, place)
    dtype = prefill.compute_dtype
    draft = _draft(held, parameters, layout)
    host = None if place is None else _host_layers(place, dtype, book)
    return Speed(
        scenario, layout, prefill, DecodeModel(held, parameters, weights, layout, dtype, draft, host)
    )


def _prefill(
    scenario: Scenario, held: Parameters | None, layout: Layout, book: Notebook, place: "Placement | None"
) -> PrefillModel:
    """Return the prefill; llama.cpp computes it on the GPU, with host layers copied there in each step."""
    if place is None:
        return PrefillModel(scenario, held, layout)
    host = counted(place.host, book)
    copied = 0.0 if host is None else weight_reads(host, place.host.settings).all
    book.assume("prefill copies the weights of host layers to the GPU in each step of --ubatch tokens")
    return PrefillModel(scenario, counted(scenario, book), layout, copied)


def _draft(scenario: Scenario, parameters: Parameters | None, layout: Layout) -> "Draft | None":
    if not scenario.settings.spec_tokens:
        return None
    from kvcalc.planning.drafting import draft_of

    return draft_of(scenario, parameters, layout)


def _host_layers(place: "Placement", dtype: str, book: Notebook) -> "HostLayers":
    from kvcalc.planning.placement import HostLayers, host_bandwidth

    scenario = place.host
    layout = lay_out(scenario.model.shape, scenario.settings)
    model = DecodeModel(scenario, counted(scenario, book), 0.0, layout, dtype)
    return HostLayers(model, host_bandwidth(scenario))
