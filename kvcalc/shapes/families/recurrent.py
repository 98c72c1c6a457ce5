"""What recurrent layers of every kind share: one state per sequence, whatever the sequence's length.

A recurrent layer keeps the last inputs of a short convolution and the state of its recurrence.  A
convolution of kernel k needs k - 1 past inputs; the rows here are those, and an engine that keeps
more (k columns, or some for speculative tokens) adds them to tensors named ``conv*``.
"""

from collections.abc import Sequence

from kvcalc.shapes.components import Component, Growth, Tensor
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.attention import HIDDEN, LAYERS, Dimensions

PER_SEQUENCE = Growth("constant", 1)
"""One entry per sequence."""


def state_component(kind: str, layers: Sequence[int], *entry: Tensor) -> Component:
    """Return a component of layers that keep `entry` once per sequence."""
    return Component(kind=kind, layers=tuple(layers), entry=entry, growth=PER_SEQUENCE)


def conv_rows(config: Config, *names: str) -> int:
    """Return how many past inputs a convolution keeps: its kernel less the current one."""
    kernel = config.size(*names)
    if kernel < 2:
        raise config.refuse(names[0], f"a kernel of {kernel} is no convolution over past inputs")
    return kernel - 1


def attention_free(config: Config) -> Dimensions:
    """Read layers and hidden size of a model without a single attention layer."""
    return Dimensions(
        layers=config.layer_count(*LAYERS),
        hidden=config.size(*HIDDEN),
        query_heads=0,
        kv_heads=0,
        key_dim=0,
        value_dim=0,
    )
