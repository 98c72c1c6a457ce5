"""How long one step of an engine takes: decoding sequences and a chunk of prefill side by side."""

from dataclasses import dataclass

import numpy as np

from kvcalc.formulas.eviction import recompute_time
from kvcalc.planning.speed import Speed
from kvcalc.quantity import Seconds, Tokens


@dataclass(frozen=True)
class StepTimes:
    """Step times of one engine, linear in the KV that a step reads.

    A step with prefill reads the weights once for both: it takes the longer of the prefill and of the
    decode without its KV, and then the reading of KV.
    """

    decode: tuple[float, ...]  # seconds of a step with so many sequences, without their KV; 0 at 0
    context: tuple[float, ...]  # seconds per token of KV that such a step reads
    prefill: tuple[float, ...]  # seconds of a chunk of so many tokens on nothing cached; 0 at 0
    cached: float = 0.0  # seconds per token of a chunk and token cached before it

    @property
    def budget(self) -> int:
        """Most tokens of one step."""
        return len(self.prefill) - 1

    @property
    def most(self) -> int:
        """Most sequences at once."""
        return len(self.decode) - 1

    def step(self, batch: int, context: int, new: int = 0, pairs: int = 0) -> float:
        """Return the time of a step.

        Parameters
        ----------
        batch : sequences that decode
        context : tokens of KV that they hold together
        new : tokens of prefill
        pairs : tokens of prefill times the tokens cached before each, less those of other prompts in
            the chunk, which `prefill` counts as if all were one prompt
        """
        side = max(self.decode[batch], self.prefill[new])
        return max(side + self.cached * pairs, 0.0) + self.context[batch] * context

    def prefill_time(self, new: Tokens, cached: Tokens = 0.0) -> Seconds:
        """Return the time of prefilling `new` tokens on `cached` ones, chunk after chunk."""
        n = np.asarray(new, dtype=float)
        chunks, rest = np.divmod(n, self.budget)
        table = np.asarray(self.prefill)
        own = chunks * table[-1] + np.interp(rest, np.arange(len(table)), table)
        # `prefill` has the pairs within a chunk; those of one chunk with another are beside it.
        across = (n * n - chunks * self.budget**2 - rest * rest) / 2
        time: Seconds = (own + self.cached * (n * np.asarray(cached) + across))[()]
        return time


def constant(step: float, most: int, time_per_token: float, budget: int, per_token: float = 0.0) -> StepTimes:
    """Return steps of one length, whatever the batch, with a linear prefill: bare numbers for a model.

    >>> constant(0.01, most=2, time_per_token=1e-4, budget=3).prefill[3]
    0.0003
    """
    return StepTimes(
        decode=(0.0, *[step] * most),
        context=(0.0, *[per_token] * most),
        prefill=tuple(float(recompute_time(new, time_per_token)) for new in range(budget + 1)),
    )


def modelled(speed: Speed, most: int, budget: int, held: float) -> StepTimes:
    """Return the steps of a model on a machine, linear between no context and twice `held` tokens."""
    hardware = speed.scenario.hardware
    shares = hardware.prefill_efficiency.mid, hardware.decode_efficiency.mid
    batch = speed.decode.stage_batch(np.arange(1.0, most + 1))
    low = np.asarray(speed.decode.step(batch, 1.0, *shares).total, dtype=float)
    high = np.asarray(speed.decode.step(batch, 2 * held, *shares).total, dtype=float)
    slope = (high - low) / (2 * held - 1) / np.arange(1.0, most + 1)
    whole = np.asarray(speed.prefill.time(np.arange(budget + 1.0)), dtype=float)
    near, far = (float(speed.prefill.time(float(budget), cached)) for cached in (0.0, held))
    return StepTimes(
        decode=(0.0, *low.tolist()),
        context=(0.0, *slope.tolist()),
        prefill=(0.0, *whole[1:].tolist()),
        cached=max(0.0, far - near) / (budget * held),
    )
