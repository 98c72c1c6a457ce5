"""What the blocks of a trace take of a model's memory, on one GPU and on all that hold one copy."""

from kvcalc.engines.layout import Layout
from kvcalc.records import record
from kvcalc.replay.regrain import regrained
from kvcalc.replay.trace import Trace

SAMPLED_POOL = 2.0**40
"""A pool that is large enough for every engine to name its blocks [byte]."""


@record
class ModelSizing:
    """Bytes of cached blocks by an engine's layout; the GPUs of one replica hold them together."""

    per_gpu: float  # of one block (or token, where the blocks of a trace differ) on the GPU that holds most
    gpus: int  # that hold one copy: tensor and pipeline ranks
    block_tokens: int  # of the engine

    def told(self, block: int) -> str:
        """Say what a block (or a token, where the blocks of a trace differ) takes, and of whom."""
        unit = f"a block of {block:,} tokens" if block else "a token"
        if self.gpus == 1:
            return f"{unit} takes {self.per_gpu:,.0f} bytes of the one GPU that holds the model"
        return (
            f"{unit} takes {self.per_gpu:,.0f} bytes of each of the {self.gpus} GPUs of a replica, "
            f"{self.bytes_of(1):,.0f} of all of them; capacities in bytes are of all of them together"
        )

    def blocks_in(self, size: float) -> int:
        """Return how many blocks fit into so many bytes of all GPUs together."""
        return int(size // (self.per_gpu * self.gpus))

    def bytes_of(self, blocks: float) -> float:
        """Return what so many blocks take of all GPUs together [byte]."""
        return blocks * self.per_gpu * self.gpus


def engine_block(layout: Layout) -> int:
    """Return the tokens of a block of the engine; 1 where it has none."""
    return max(1, int(layout.pool(SAMPLED_POOL).block_tokens or 1))


def sized(trace: Trace, layout: Layout) -> tuple[Trace, ModelSizing, tuple[str, ...]]:
    """Return the trace in blocks that the engine can hold, what they take, and what to know of it.

    An engine's larger blocks are made of the trace's; of finer ones the trace says nothing, so that its own
    are kept and hits are a lower bound.
    """
    settings, block = layout.settings, engine_block(layout)
    notes: list[str] = []
    ranks = settings.tp * settings.pp // (settings.dp if settings.dp_attention else 1)
    if trace.block_tokens == 0:
        token = float(layout.cached(float(block))) / block
        return (
            trace,
            ModelSizing(token, ranks, block),
            (f"components are taken to fill the engine's blocks of {block:,} tokens without waste",),
        )
    if block > trace.block_tokens:
        notes.append(
            f"the engine's blocks hold {block:,} tokens, more than the trace's {trace.block_tokens:,}: hits "
            f"are counted in whole blocks of {block:,}; replays in blocks of another size cannot be compared"
        )
        trace = regrained(trace, block)
    elif block < trace.block_tokens:
        notes.append(
            f"the engine's blocks hold {block:,} tokens, fewer than the trace's {trace.block_tokens:,}: what "
            f"requests share within a block of {trace.block_tokens:,} is not in the trace, so hits are a "
            "lower bound; replays in blocks of another size cannot be compared"
        )
    if any(part.constant_bytes > 0 for part in layout.per_gpu):
        notes.append(
            "each cached block counts with the windows and states at its own end, without which nothing "
            "behind it can be used; an engine that keeps fewer of them holds more tokens but hits fewer"
        )
    size = float(layout.cached(float(trace.block_tokens)))
    return trace, ModelSizing(size, ranks, block), tuple(notes)
