"""How fast one scenario runs: its layout with the prefill and the decode model, made once."""

from dataclasses import dataclass

from kvcalc.engines import lay_out
from kvcalc.engines.layout import Layout
from kvcalc.planning.decode import DecodeModel, HostLayers
from kvcalc.planning.drafting import draft_of
from kvcalc.planning.memory import counted, weight_bytes
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.placement import Placement, host_bandwidth
from kvcalc.planning.prefill import PrefillModel
from kvcalc.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Speed:
    """What offload, eviction and flips ask of the speed models."""

    scenario: Scenario
    layout: Layout
    prefill: PrefillModel
    decode: DecodeModel


def speed_of(scenario: Scenario, layout: Layout, book: Notebook, place: Placement | None = None) -> Speed:
    """Return the speed models of a scenario, of which the GPUs hold `layout`."""
    held = scenario if place is None else place.gpu
    parameters, weights = counted(held, book), weight_bytes(held, book)
    prefill = PrefillModel(scenario, parameters if place is None else counted(scenario, book), layout)
    dtype = prefill.compute_dtype
    draft = draft_of(held, parameters, layout)
    host = None if place is None else _host_layers(place, dtype, book)
    return Speed(
        scenario, layout, prefill, DecodeModel(held, parameters, weights, layout, dtype, draft, host)
    )


def _host_layers(place: Placement, dtype: str, book: Notebook) -> HostLayers:
    scenario = place.host
    layout = lay_out(scenario.model.shape, scenario.settings)
    model = DecodeModel(scenario, counted(scenario, book), 0.0, layout, dtype)
    return HostLayers(model, host_bandwidth(scenario))
