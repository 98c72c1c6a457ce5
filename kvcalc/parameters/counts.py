"""A model's weights as a sum of parts: how many there are, how many a token uses, how many bytes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, get_args

from kvcalc.errors import SettingsError
from kvcalc.parameters.formats import BF16, Format

Name = Literal[
    "embedding",
    "lm_head",
    "attention",
    "mlp",
    "experts",
    "shared_experts",
    "router",
    "norms",
    "state_mixer",
    "encoder",
    "vision_tower",
    "mtp",
    "other",
]
"""What a part is for, as reports list it."""

Split = Literal["columns", "replicated", "experts", "heads", "whole_heads", "vocab"]
"""How tensor parallelism divides a part.

columns: evenly, by output or input columns.  replicated: every rank holds all of it.
experts: whole experts over `ep` ranks, or columns of each expert over `tp`.
heads: whole KV heads, one kept by each rank when there are more ranks than heads.
whole_heads: evenly where tp divides the heads, else every rank holds all of it (towers).
vocab: vocabulary rows, padded to `VOCAB_PADDING`, then evenly.
"""

VOCAB_PADDING = 64  # rows; vLLM's DEFAULT_VOCAB_PADDING_SIZE, SGLang's is the same

Layers = tuple[int, ...]

_LOOKUPS = ("embedding",)
_OTHER_TOKENS = ("vision_tower", "encoder")  # run on images, sound or the prompt's encoder pass


@dataclass(frozen=True)
class Part:
    """One weight matrix or vector, repeated over layers and experts."""

    name: Name
    module: str  # the checkpoint's name inside its layer, such as self_attn.q_proj
    rows: int
    columns: int
    layers: Layers | None = None  # decoder layers that own one each; None outside the layer stack
    copies: int = 1  # experts of one layer, or layers of an encoder
    used: int = 1  # copies that one token passes through
    split: Split = "columns"
    heads: int = 1  # heads, where `split` speaks of them
    cut_inputs: bool = False  # tensor parallelism cuts the input dimension, not the output
    matrix: bool = True  # a matrix product per token, as opposed to a vector or a lookup
    quantizable: bool = True  # engines keep some matrices, such as routers, in 16 bits
    buffer: bool = False  # stored and loaded, but no trained parameter (router correction biases)
    format: Format = BF16

    @property
    def count(self) -> int:
        """Parameters over all layers and copies."""
        return self.rows * self.columns * self.copies * self._owners

    @property
    def active(self) -> int:
        """Parameters that one token uses."""
        return self.count // self.copies * self.used

    @property
    def bytes(self) -> float:
        """Bytes over all layers and copies, scales included."""
        return self.format.matrix_bytes(self.rows, self.columns) * self.copies * self._owners

    @property
    def _owners(self) -> int:
        return 1 if self.layers is None else len(self.layers)

    def moved_to(self, name: Name) -> "Part":
        """Return the part as `name` outside the decoder's layers, with a copy per layer."""
        owners = self._owners
        return replace(self, name=name, layers=None, copies=self.copies * owners, used=self.used * owners)

    def share(self, tp: int, ep: int) -> float:
        """Fraction of the part that one of `tp` ranks holds, experts spread over `ep` ranks."""
        if self.split == "replicated":
            return 1.0
        if self.split == "heads":
            return max(1 / self.heads, 1 / tp)
        if self.split == "whole_heads":
            return 1 / tp if self.heads % tp == 0 else 1.0
        if self.split == "experts":
            return -(-self.copies // ep) / self.copies if ep > 1 else self._column_share(tp)
        if self.split == "vocab":
            return -(-self.rows // VOCAB_PADDING) * VOCAB_PADDING / self.rows / tp
        return 1 / tp

    def _column_share(self, tp: int) -> float:
        """Fraction of each expert on one rank; some formats round its slice up."""
        multiple = self.format.slice_multiple
        if tp == 1 or multiple == 1:
            return 1 / tp
        size = self.columns if self.cut_inputs else self.rows
        return -(-size // (tp * multiple)) * multiple / size


@dataclass(frozen=True)
class Parameters:
    """The weights of one model; sums of its parts.

    `draft` are the weights of multi-token-prediction layers that the checkpoint carries and that an
    engine loads for speculation only; no figure here includes them unless it says so.
    """

    parts: tuple[Part, ...]
    layers: int
    tied: bool = False  # the embedding is also the output head
    draft: tuple[Part, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """All parameters, tied embeddings once, without draft layers."""
        return sum(part.count for part in self._trained())

    @property
    def active(self) -> int:
        """Parameters used per token: all but the experts that the router leaves out."""
        return sum(part.active for part in self._trained())

    @property
    def experts(self) -> int:
        """Parameters of routed experts."""
        return self.by_part.get("experts", 0)

    @property
    def draft_total(self) -> int:
        """Parameters of the multi-token-prediction layers."""
        return sum(part.count for part in self.draft if not part.buffer)

    @property
    def by_part(self) -> dict[Name, int]:
        """Parameters by what they are for, in a fixed order, draft layers included as ``mtp``."""
        sums: dict[Name, int] = dict.fromkeys(get_args(Name), 0)
        for part in self._trained():
            sums[part.name] += part.count
        sums["mtp"] += self.draft_total
        return {name: count for name, count in sums.items() if count}

    @property
    def matmul_active(self) -> int:
        """Parameters in matrix products per prompt token, without embedding and output head.

        Twice this number is the linear FLOPs of one prefill token of text.
        """
        return sum(part.active for part in self.prompt_matrices)

    @property
    def prompt_matrices(self) -> tuple[Part, ...]:
        """The matrices that every prompt token of text is multiplied with."""
        outside = (*_LOOKUPS, *_OTHER_TOKENS, "lm_head")
        return tuple(part for part in self.parts if part.matrix and part.name not in outside)

    @property
    def lm_head_matmul(self) -> int:
        """Parameters of the output head, tied or not; it runs for the last prompt token alone."""
        names = ("embedding",) if self.tied else ("lm_head",)
        return sum(part.count for part in self.parts if part.matrix and part.name in names)

    @property
    def bytes(self) -> float:
        """Bytes of the weights as stored, scales included, without vocabulary padding."""
        return sum(part.bytes for part in self.parts)

    @property
    def draft_bytes(self) -> float:
        """Bytes of the multi-token-prediction layers."""
        return sum(part.bytes for part in self.draft)

    @property
    def by_dtype(self) -> dict[str, float]:
        """Bytes by storage format."""
        sums: dict[str, float] = {}
        for part in self.parts:
            sums[part.format.name] = sums.get(part.format.name, 0.0) + part.bytes
        return sums

    def bytes_per_rank(self, tp: int = 1, ep: int = 1, pp: int = 1, draft: bool = False) -> float:
        """Return the weight bytes of the rank that holds most.

        Parameters
        ----------
        tp : ranks that share each layer
        ep : ranks that share the experts of a layer; 1 = experts are cut like other matrices
        pp : pipeline stages
        draft : whether multi-token-prediction layers are loaded too (on the last stage)
        """
        if min(tp, ep, pp) < 1 or pp > max(1, self.layers):
            raise SettingsError(f"tp {tp}, ep {ep}, pp {pp} do not divide a model of {self.layers} layers")
        extra = sum(part.bytes * part.share(tp, ep) for part in self.draft) if draft else 0.0
        stages = pipeline_stages(self.layers, pp)
        held = [self._stage_bytes(stage, tp, ep, i, pp) for i, stage in enumerate(stages)]
        held[-1] += extra
        return max(held)

    def _stage_bytes(self, stage: range, tp: int, ep: int, index: int, pp: int) -> float:
        total = 0.0
        for part in self.parts:
            if part.layers is not None:
                fraction = sum(layer in stage for layer in part.layers) / len(part.layers)
            else:
                fraction = float(self._on_stage(part, index, pp))
            total += part.bytes * part.share(tp, ep) * fraction
        return total

    def _on_stage(self, part: Part, index: int, pp: int) -> bool:
        if part.name in ("lm_head", "norms"):
            return index == pp - 1
        return index == 0 or (index == pp - 1 and self.tied and part.name == "embedding")

    def _trained(self) -> Iterable[Part]:
        return (part for part in self.parts if not part.buffer)

    def map(self, change: Callable[[Part], Part]) -> "Parameters":
        """Return the same model with each part changed."""
        return replace(self, parts=tuple(map(change, self.parts)), draft=tuple(map(change, self.draft)))


def pipeline_stages(layers: int, pp: int) -> list[range]:
    """Return the layers of each pipeline stage, as vLLM cuts them by default.

    A remainder goes to the stages before the last, one each, counting backwards.

    >>> [len(stage) for stage in pipeline_stages(61, 4)]
    [15, 15, 16, 15]
    """
    sizes = [layers // pp] * pp
    for i in range(2, layers % pp + 2):
        sizes[-i] += 1
    starts = [sum(sizes[:i]) for i in range(pp)]
    return [range(start, start + size) for start, size in zip(starts, sizes, strict=True)]
