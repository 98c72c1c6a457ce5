"""Small engines and loads that the tests of eviction share."""

import numpy as np
import pytest

from kvcalc.eviction.engine import Engine
from kvcalc.eviction.load import Generator, Requests, Spread
from kvcalc.eviction.steps import StepTimes, constant
from kvcalc.eviction.tactics import Limits, Tactic


def requests(*rows):
    """Requests of (arrival, prompt, generate)."""
    table = np.array(rows, dtype=float)
    lengths = table[:, 1:3].astype(np.int64)
    zeros = np.zeros(len(rows))
    return Requests(table[:, 0], lengths[:, 0], lengths[:, 1], zeros.astype(np.int64), zeros)


def serve(load, blocks, tactic=None, block=1, times=None, watermark=0.0, **options):
    """Run a load on bare numbers: a second a decode step, half a second a token of prefill."""
    limits = Limits(blocks=blocks, block=block, watermark=watermark, host=options.pop("host", None))
    engine = Engine(
        load,
        limits,
        times or constant(1.0, most=8, time_per_token=0.5, budget=6),
        tactic or Tactic("lru"),
        **options,
    )
    return engine.run()


def linear_steps(most, step, per_sequence, per_token, prefill, budget=2048, fixed=0.005):
    """Step times that grow with sequences, with the KV they hold and with the tokens of a prefill."""
    return StepTimes(
        decode=(0.0, *(step + per_sequence * batch for batch in range(1, most + 1))),
        context=(0.0, *[per_token] * most),
        prefill=(0.0, *(fixed + prefill * new for new in range(1, budget + 1))),
        cached=1e-9,
    )


SESSIONS = linear_steps(64, 0.02, 1e-4, 4e-8, 8e-5)
"""An 8B model on one mid-range card, in round numbers."""


def long_sessions(rate, seed, count=2000):
    """Long prompts with long answers, both of very different lengths."""
    return Generator(
        rate, Spread("lognormal", (4000, 0.8)), Spread("lognormal", (2000, 0.8)), count, seed=seed
    ).requests_of()


@pytest.fixture(scope="session")
def sessions():
    return long_sessions(0.16, seed=2)
