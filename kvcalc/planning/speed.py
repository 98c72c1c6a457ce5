"""How fast one scenario runs: its layout with the prefill and the decode model, made once."""

from dataclasses import dataclass

from kvcalc.engines.layout import Layout
from kvcalc.planning.decode import DecodeModel
from kvcalc.planning.memory import counted, weight_bytes
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.prefill import PrefillModel
from kvcalc.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Speed:
    """What offload, eviction and flips ask of the speed models."""

    scenario: Scenario
    layout: Layout
    prefill: PrefillModel
    decode: DecodeModel


def speed_of(scenario: Scenario, layout: Layout, book: Notebook) -> Speed:
    """Return the speed models of a scenario."""
    prefill = PrefillModel(scenario, counted(scenario, book), weight_bytes(scenario, book))
    return Speed(scenario, layout, prefill, DecodeModel(prefill, layout))
