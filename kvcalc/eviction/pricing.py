"""What evicting a sequence costs and frees, from the models or from bare numbers; arrays throughout."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from kvcalc.engines import Layout
from kvcalc.eviction.crowd import Floats
from kvcalc.eviction.tactics import Host
from kvcalc.formulas.eviction import recompute_time, swap_time
from kvcalc.planning.speed import Speed

BLOCK = 16
"""Tokens in one block where neither a model nor an option says [token]: vLLM's and LMCache's default unit,
https://docs.vllm.ai/en/latest/design/paged_attention/"""

TIME_PER_TOKEN = 0.08e-3
"""Prefill time per token where neither a model nor a rate is given [second/token]; assumed, about an 8B
model on one recent data-centre GPU at half of its peak.  Orders victims right whatever it is, as long as
nothing else than recompute is compared."""

_ANY_POOL = 1e12  # bytes; the size of a block does not depend on it


@dataclass(frozen=True, slots=True)
class Prices:
    """Bytes and times of one engine; bytes are those of one GPU."""

    reserved: Callable[[Floats], Floats]  # bytes that the allocator holds for so many tokens
    prefill: Callable[[Floats, Floats], Floats]  # seconds of so many tokens on so many cached ones
    block: int  # tokens in one block
    hosts: tuple[tuple[str, Host], ...] = ()  # tiers to swap to, by name
    time_per_token: float | None = None  # second/token, where every token costs the same

    def freed(self, held: Floats, kept: Floats) -> Floats:
        """Return the bytes that become free when of `held` tokens only the first `kept` stay."""
        return np.maximum(self.reserved(held) - self.reserved(kept), 0.0)

    def recompute(self, done: Floats, kept: Floats) -> Floats:
        """Return the time to compute exactly the dropped tokens again, on those that stayed."""
        stays = np.minimum(kept, done)
        return np.asarray(self.prefill(done - stays, stays), dtype=float)

    def swap(self, size: Floats, place: int) -> Floats:
        """Return the time of moving so many bytes out to one of the hosts and back in."""
        host = self.hosts[place][1]
        return np.asarray(swap_time(size, host.out, host.back).total + host.setup, dtype=float)

    def tail(self, held: Floats, shared: Floats, missing: float) -> Floats:
        """Return how many tokens at the front may stay so that `missing` bytes become free.

        Whole blocks are dropped; where all that a sequence has to itself is too little, it all goes.
        """
        low, high = np.ceil(shared / self.block), np.ceil(held / self.block) - 1
        for _ in range(int(np.log2(max(2.0, float(np.max(high, initial=1.0)) + 1))) + 2):
            middle = np.ceil((low + high) / 2)
            enough = self.freed(held, middle * self.block) >= missing
            low, high = np.where(enough, np.minimum(middle, high), low), np.where(enough, high, middle - 1)
            high = np.maximum(high, low)
        return np.asarray(low * self.block)


def from_numbers(
    bytes_per_token: float, time_per_token: float, block: int, hosts: tuple[tuple[str, Host], ...] = ()
) -> Prices:
    """Return prices of bare numbers: every token costs the same."""

    def reserved(tokens: Floats) -> Floats:
        return np.ceil(tokens / block) * block * bytes_per_token

    def prefill(new: Floats, cached: Floats) -> Floats:
        return np.asarray(recompute_time(new + cached, time_per_token, cached))

    return Prices(reserved, prefill, block, hosts, time_per_token)


def from_layout(
    layout: Layout, time_per_token: float, block: int, hosts: tuple[tuple[str, Host], ...] = ()
) -> Prices:
    """Return prices with the bytes of a model and a linear prefill."""
    numbers = from_numbers(1.0, time_per_token, block_of(layout, block), hosts)
    return replace(numbers, reserved=lambda tokens: np.asarray(layout.reserved(tokens)))


def from_speed(speed: Speed, hosts: tuple[tuple[str, Host], ...]) -> Prices:
    """Return the prices of a model on a machine."""
    return Prices(
        reserved=lambda tokens: np.asarray(speed.layout.reserved(tokens)),
        prefill=lambda new, cached: np.asarray(speed.prefill.time(new, cached)),
        block=block_of(speed.layout, BLOCK),
        hosts=hosts,
    )


def block_of(layout: Layout, default: int) -> int:
    """Return the tokens of a block: as set, else the engine's own where it has one."""
    own = layout.settings.block_size or layout.pool(_ANY_POOL).block_tokens
    # A layout without blocks counts single tokens; the blocks of a file are then those of an engine.
    return own if own and own > 1 else default
