"""What one decode step reads from a GPU's memory: weights, by what the batch visits, and resident KV."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kvcalc.engines.layout import ComponentBytes
from kvcalc.engines.settings import EngineSettings
from kvcalc.engines.sizing import DRAFT
from kvcalc.formulas.decode import expert_coverage, weights_read
from kvcalc.parameters import Parameters
from kvcalc.parameters.counts import Part
from kvcalc.quantity import Bytes, Count, Tokens
from kvcalc.shapes.components import LINEAR, Attention, Component, Growth

_OTHER_PASSES = ("vision_tower", "encoder")  # run before the first token, not in decode


@dataclass(frozen=True)
class Routed:
    """Experts of the same layers on one GPU, of which a step reads those that its tokens visit."""

    size: float  # all of them [byte]
    experts: int  # of one layer
    active: int  # that one token visits


@dataclass(frozen=True)
class WeightReads:
    """The weights of one GPU as a decode step reads them."""

    always: float = 0.0  # byte
    routed: tuple[Routed, ...] = ()
    meeting: float = 1.0  # replicas whose tokens meet at each expert

    @property
    def all(self) -> float:
        """Bytes when every expert is visited."""
        return self.always + sum(part.size for part in self.routed)

    def read(self, tokens: Count) -> Bytes:
        """Return the bytes that a step of so many tokens of one replica reads; arrays too."""
        total: Bytes = self.always
        for part in self.routed:
            visited = expert_coverage(tokens * self.meeting, part.experts, part.active)
            total = weights_read(total, part.size, visited)
        return total


def weight_reads(parameters: Parameters, settings: EngineSettings) -> WeightReads:
    """Return what the GPU that holds most reads; an embedding is looked up row by row, not read."""
    names = _OTHER_PASSES if parameters.tied else (*_OTHER_PASSES, "embedding")
    read = [part for part in parameters.parts if part.name not in names]

    def held(parts: Iterable[Part]) -> float:
        kept = replace(parameters, parts=tuple(parts), draft=())
        return float(kept.bytes_per_rank(settings.tp, settings.ep, settings.pp))

    routed = [part for part in read if _is_routed(part)]
    return WeightReads(
        always=held(part for part in read if not _is_routed(part)),
        routed=tuple(
            Routed(held(part for part in routed if (part.copies, part.used) == kind), *kind)
            for kind in dict.fromkeys((part.copies, part.used) for part in routed)
        ),
        meeting=max(1.0, settings.ep / settings.tp),
    )


def draft_reads(parts: Sequence[Part], settings: EngineSettings) -> WeightReads:
    """Return what one pass of a draft made of `parts` reads; all of it is on one pipeline stage."""
    held = [(part, part.bytes * part.share(settings.tp, settings.ep)) for part in parts]
    return WeightReads(
        always=sum(size for part, size in held if not _is_routed(part)),
        routed=tuple(Routed(size, part.copies, part.used) for part, size in held if _is_routed(part)),
        meeting=max(1.0, settings.ep / settings.tp),
    )


def _is_routed(part: Part) -> bool:
    return 0 < part.used < part.copies


@dataclass(frozen=True)
class KvReads:
    """One component of one GPU's cache as a decode step reads it."""

    stored: float  # bytes of one entry, all layers
    growth: Growth
    picked: int | None  # entries that one token attends to at most
    passes: float  # a recurrent state is read and written back

    def read(self, context: Tokens, queries: float) -> Bytes:
        """Return the bytes for one sequence of which `queries` tokens are checked at once."""
        entries = self.growth.entries(context)
        if self.picked is not None:
            # Each of the tokens picks entries of its own.
            entries = np.minimum(entries, self.picked * queries)
        return entries * (self.stored * self.passes)


def kv_reads(
    held: Iterable[ComponentBytes], components: Iterable[Component], draft: bool = False
) -> tuple[KvReads, ...]:
    """Return the reads of the model's components among those `held`, or of its draft's.

    Where an engine keeps a window's entries for ever, attention still reads the window alone.
    """
    components = tuple(components)
    exact = {(part.kind, part.growth): _picked(part) for part in components}
    windows = {part.kind: part.growth for part in components if part.growth.kind in ("window", "chunk")}
    return tuple(
        KvReads(
            stored=part.stored,
            growth=windows.get(part.kind, part.growth) if part.growth == LINEAR else part.growth,
            picked=exact.get((part.kind, part.growth)),
            passes=2.0 if part.growth == Growth("constant", 1) else 1.0,
        )
        for part in held
        if (part.kind == DRAFT) == draft
    )


def _picked(part: Component) -> int | None:
    return None if part.attention is None else part.attention.top_k


def absorbed(part: Component) -> Component:
    """Return `part` as it attends in decode: to cached latents themselves, not to heads expanded from them.

    Prefill expands a latent into keys and values of every head; a decode step multiplies the query by
    the expansion instead, and then works in the width of the row that is cached (576 and 512 elements
    for DeepSeek, where the expanded heads have 192 and 128).
    """
    sizes = part.attention
    latent = sum(tensor.width for tensor in part.entry if tensor.name == "latent")
    row = latent + sum(tensor.width for tensor in part.entry if tensor.name == "rope_key")
    if sizes is None or not latent or sizes.key_dim >= row:
        return part
    return replace(part, attention=Attention(sizes.query_heads, row, latent, sizes.top_k))
