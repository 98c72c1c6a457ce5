"""Computing one part of a hit while the other is loaded: where both finish together, and who can do it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from kvcalc.formulas.breakeven import speedup
from kvcalc.formulas.partial import activation_share, partial_split
from kvcalc.offload_results import Expressible, Split
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.offload import (
    PREFIX_STORE,
    Restoring,
    Route,
    block_tokens,
    cached_tokens,
    computing_time,
    loaded_route,
    moved_bytes,
    restoring,
    tiers_of,
    whole_chunks,
)
from kvcalc.planning.speed import Speed
from kvcalc.quantity import Bytes, Seconds, Tokens
from kvcalc.results import Offload
from kvcalc.shapes.components import Component, ModelShape

_Numbers = NDArray[np.float64]

MOST_SPLITS = 8192
"""Splits that are tried at most [1]; a longer prefix is divided in steps of several blocks."""


@dataclass(frozen=True)
class Connector:
    """What one way of moving KV lets a request load while it computes the rest."""

    title: str
    expressible: Expressible
    source: str


_OFFLOADING = "https://docs.vllm.ai/en/latest/features/kv_offloading_usage/"
CONNECTORS: Mapping[str, Connector] = MappingProxyType(
    {
        "vllm": Connector("vLLM's connectors report a contiguous prefix", "prefix", _OFFLOADING),
        "sglang": Connector(
            "SGLang's radix tree matches a prefix, of which HiCache may stop loading early",
            "prefix",
            "https://lmsys.org/blog/2025-09-10-sglang-hicache/",
        ),
        "llama.cpp": Connector(
            "llama.cpp restores a slot as it was saved, whole",
            "none",
            "https://github.com/ggml-org/llama.cpp/tree/master/tools/server",
        ),
        "transformers": Connector(
            "transformers has no store of prefixes",
            "none",
            "https://huggingface.co/docs/transformers/kv_cache",
        ),
        "generic": Connector(
            "a loader from the back, such as Cake, is assumed where no engine is named",
            "back",
            "https://arxiv.org/abs/2410.03065",
        ),
    }
)
"""By engine; every connector of vLLM (LMCache, Mooncake, NIXL, llm-d, PegaFlow) goes through its
interface, which takes the number of tokens that match from the front."""

_OTHERS = (
    "vLLM's connectors (LMCache, Mooncake, NIXL, llm-d) and SGLang's HiCache can only load the front and "
    "compute behind it, llama.cpp and transformers neither"
)


def with_splits(speed: Speed, rows: tuple[Offload, ...]) -> tuple[Offload, ...]:
    """Return the rows of a plan with the split of each prefix store, where a restore ends at all."""
    stored = [row for row in rows if row.mode == PREFIX_STORE and np.isfinite(float(row.restore))]
    if not stored:
        return rows
    cached = cached_tokens(speed.scenario, speed, Notebook())
    tiers = tiers_of(speed.scenario, Notebook())
    routes = {tier.name: loaded_route(speed, tier, cached, Notebook()) for tier in tiers}
    splits = {
        row.tier: split_of(speed, routes[row.tier], row, whole_chunks(routes[row.tier], cached, Notebook()))
        for row in stored
    }
    return tuple(
        replace(row, split=splits[row.tier]) if row.mode == PREFIX_STORE and row.tier in splits else row
        for row in rows
    )


def split_of(speed: Speed, route: Route, row: Offload, cached: int) -> Split:
    """Return the best split of a prefix of `cached` tokens between computing and loading."""
    asked = _Asked(speed, route, row, cached)
    lengths = _lengths(cached, block_tokens(speed))
    back, front = asked.from_the_back(lengths), asked.from_the_front(lengths)
    best, first = int(np.argmin(back)), int(np.argmin(front))
    connector = CONNECTORS[speed.scenario.settings.engine]
    share = hidden_state_share(speed.scenario.model.shape, speed.scenario.settings.engine)
    return Split(
        share=float(lengths[best]) / cached if cached else 0.0,
        recomputed=float(lengths[best]),
        loaded=float(cached - lengths[best]),
        time=float(back[best]),
        speedup=float(speedup(_better(row), float(back[best]))),
        prefix_loaded=float(lengths[first]),
        prefix_time=float(front[first]),
        connector=connector.title,
        expressible=connector.expressible,
        activations=share if np.isfinite(share) else None,
        reason=f"{connector.title} ({connector.source}); {_activations(share)}",
    )


def plain_split(found: Restoring, row: Offload) -> Split | None:
    """Return the split of a restore of bare numbers; None where a hit saves no computing.

    Without a model the prefix takes the same time for each of its bytes, so the front is dearer here
    than it is under causal attention, and the gain is the least that can be.
    """
    saved = float(row.recompute) - float(row.remaining)
    if saved <= 0 or not np.isfinite(float(row.restore)):
        return None
    size, overhead = float(found.size), float(found.overhead)
    share = float(partial_split(1.0, size, float(found.bandwidth), saved, overhead=overhead))
    time = share * saved + float(row.remaining)
    single, connector = _better(row), CONNECTORS["generic"]
    return Split(
        share=share,
        recomputed=None,
        loaded=None,
        time=min(time, single),
        speedup=max(1.0, float(speedup(single, time))),
        prefix_loaded=None,
        prefix_time=single,
        connector=connector.title,
        expressible=connector.expressible,
        activations=None,
        reason=f"{connector.title} ({connector.source}); {_OTHERS}",
    )


def _lengths(cached: int, block: int) -> _Numbers:
    """Return the tokens that one side may take: none, whole blocks, or all."""
    step = block * max(1, cached // block // MOST_SPLITS)
    return np.unique([0.0, *np.arange(step, cached, step, dtype=float), float(cached)])


@dataclass(frozen=True)
class _Asked:
    """One restore whose prefix may be divided; all times are to the first token."""

    speed: Speed
    route: Route
    row: Offload
    cached: int

    def moved(self, tokens: Tokens) -> Bytes:
        """Return the bytes of some of the prefix's tokens: their part of what the row restores."""
        whole = float(moved_bytes(self.speed.layout, float(self.cached)))
        part = moved_bytes(self.speed.layout, tokens)
        return part if whole <= 0 else part * (float(self.row.bytes) / whole)

    def from_the_back(self, front: _Numbers) -> _Numbers:
        """Return the time with `front` tokens computed and the others loaded.

        What the front takes is what having it cached would save: the work of the prompt less that of the
        rest of it.  The suffix needs both parts.
        """
        prompt = float(self.speed.scenario.workload.prompt)
        computing = self.row.recompute - computing_time(self.speed, prompt - front, front)
        behind = self.cached - front
        found = restoring(self.speed.scenario, self.route, self.moved(behind))
        loading = np.where(behind > 0, found.parts.transfer + found.overhead, 0.0)
        total: _Numbers = np.maximum(computing, loading) + self.row.remaining
        return total

    def from_the_front(self, loaded: _Numbers) -> _Numbers:
        """Return the time with the first `loaded` tokens restored, the others computed."""
        prompt, cached = float(self.speed.scenario.workload.prompt), float(self.cached)
        suffix = computing_time(self.speed, prompt - cached, cached)
        left = self.row.remaining + computing_time(self.speed, prompt - loaded, loaded) - suffix
        found = restoring(self.speed.scenario, self.route, self.moved(loaded))
        return np.where(loaded > 0, found.total(left), self.row.recompute)


def _better(row: Offload) -> float:
    """Return the better of restoring all and computing all."""
    return min(float(row.recompute), float(_total(row)))


def _total(row: Offload) -> Seconds:
    return row.cached_total if row.overlapped_total is None else row.overlapped_total


def hidden_state_share(shape: ModelShape, engine: str) -> float:
    """Return the bytes of a token's hidden state over those of its KV, of one layer that grows.

    KVPR sends hidden states instead of KV and computes the KV of them on arrival.
    """
    growing = [part for part in shape.components_for(engine) if part.growth.kind == "linear"]
    if not growing:
        return float("inf")
    return float(activation_share(float(shape.hidden), max(map(_elements, growing))))


def _elements(part: Component) -> float:
    return float(sum(tensor.elements for tensor in part.entry))


def _activations(share: float) -> str:
    if share < 1:
        return (
            f"sending hidden states instead of KV (KVPR) would move {share:.2g} of the bytes, and computing "
            "their KV takes the GPU"
        )
    return (
        f"sending hidden states instead of KV (KVPR) is refused: they are {share:.2g} times as large as the "
        "KV of a layer"
    )
