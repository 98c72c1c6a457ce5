"""What surrounds the layers: token embedding, output head, final norm."""

from kvcalc.parameters.blocks.tensors import linear, norm
from kvcalc.parameters.counts import Part, Split


def frame(
    vocabulary: int,
    hidden: int,
    *,
    tied: bool,
    head: bool = True,
    head_bias: bool = False,
    final_norm: bool = True,
    norm_bias: bool = False,
    split: Split = "vocab",
) -> list[Part]:
    """Return the embedding, the output head unless it is tied, and the norm before it.

    `split` is how the vocabulary is divided.
    """
    parts = linear("embedding", "embed_tokens", vocabulary, hidden, split=split, quantizable=False)
    if final_norm:
        parts += norm("norm", hidden, bias=norm_bias)
    if head and not tied:
        parts += linear(
            "lm_head", "lm_head", vocabulary, hidden, bias=head_bias, split=split, quantizable=False
        )
    return parts
