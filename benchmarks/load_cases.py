"""Mean times under a published load: the load generator step by step, the costs of a step from kvcalc.

LMCache's report on Google's A3 mega machines (https://blog.lmcache.ai/2025-10-07-LMCache-on-GKE/) gives the
mean time to the first token with slower tiers over that without.  Its text has the load: SGLang's
`bench_serving --dataset-name generated-shared-prefix`, 20 prompts for each shared prefix in random order,
256 tokens of their own, 512 generated, all sent at once with a bound on those in flight, of which its one
command (prefixes of 1,000 tokens) says 200; and how many tokens all prefixes, questions and answers make up
together.  The launch that it links (vLLM's production stack, values-01-offload-kv-cache-local-disk.yaml) has
the rest: TP 8, 0.9 of the memory, 2,048 tokens a step, 128 GiB of host memory and 640 GiB of drive for each
worker.  Nothing here is fitted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from load_server import ANSWER, IN_FLIGHT, PER_PREFIX, QUESTION, STEP, Costs, Means, Server, Store

from kvcalc import api
from kvcalc.engines import lay_out
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.offload import route_of
from kvcalc.planning.speed import speed_of
from kvcalc.planning.tiers import standard_tiers

SYSTEM = "LMCache on GKE"

TOKENS = {"Test 2": 4.15e6, "Test 3": 13.15e6}
"""All tokens of a test [token], by words of the row: the middle of 4.0 to 4.3 and 12.6 to 13.7 M."""

DRIVES = {
    ("Test 2", 50_000),
    ("Test 2", 100_000),
    ("Test 3", 10_000),
    ("Test 3", 50_000),
    ("Test 3", 100_000),
}
"""Tests whose best setup has the drives, beside host memory: the report's table."""

WHOLE = {
    ("Test 2", 5_000): 0.86,
    ("Test 2", 10_000): 0.67,
    ("Test 2", 50_000): 0.36,
    ("Test 2", 100_000): 0.27,
    ("Test 3", 10_000): 0.81,
    ("Test 3", 50_000): 0.59,
    ("Test 3", 100_000): 0.43,
}
"""Mean time of whole requests with the slower tiers over that without [1]: the report's table."""

HOST, DRIVE = 8 * 128 * 2**30, 8 * 640 * 2**30
"""Bytes that the workers keep in host memory and on drives [byte]: 128 and 640 GiB each."""


@cache
def costs() -> Costs:
    """Return the costs of Llama 3.3 70B on eight H100, by kvcalc's models of prefill, decode and loads."""
    said = {
        "prompt": 10_000,
        "generate": ANSWER,
        "engine": "vllm",
        "engine_version": "0.10",
        "gpus": 8,
        "tp": 8,
    }
    question = api.question_of("llama-3.1-70b", on="a3-megagpu-8g", max_batched_tokens=STEP, **said)
    scenario, book = api.scenario(question), Notebook()
    speed = speed_of(scenario, lay_out(scenario.model.shape, scenario.settings), book)
    memory = api.plan("llama-3.1-70b", on="a3-megagpu-8g", max_batched_tokens=STEP, **said).memory
    pace = replace(speed.prefill.paces.middle, fixed=0.0)
    near, far = (float(speed.prefill.time(float(STEP), at, pace)) for at in (0.0, 100_000.0))
    quadratic = (far - near) / (STEP * 100_000)
    hardware = scenario.hardware
    shares = hardware.prefill_efficiency.mid, hardware.decode_efficiency.mid

    def decode(sequences: float, context: float) -> float:
        return float(speed.decode.step(sequences, context, *shares).total)

    per_gpu = speed.layout.bytes_per_token_per_gpu
    loads = []
    for tier in standard_tiers(scenario, book):
        lmcache = route_of(speed, replace(tier, mechanism="lmcache", kind="dram"), book)
        loads.append((lmcache.setup, per_gpu / float(lmcache.bandwidth(1e12))))
    return Costs(
        linear=near / STEP - quadratic * STEP / 2,
        quadratic=quadratic,
        step=decode(1, 0),
        sequence=(decode(101, 0) - decode(1, 0)) / 100,
        context=(decode(100, 10_000) - decode(100, 0)) / (100 * 10_000),
        pool=float(memory.kv_tokens),
        bytes_per_token=per_gpu * scenario.settings.tp,
        host=loads[0],
        drive=loads[1],
    )


def served(test: str, prefix: int, stores: bool, in_flight: int = IN_FLIGHT) -> Means:
    """Return the means of one test, with or without the slower tiers of its best setup."""
    groups = round(TOKENS[test] / (prefix + PER_PREFIX * (QUESTION + ANSWER)))
    sizes = (HOST, DRIVE) if (test, prefix) in DRIVES else (HOST,)
    kept = tuple(Store(size / costs().bytes_per_token) for size in sizes) if stores else ()
    return Server(costs(), prefix, groups, kept, in_flight).run()


@cache
def served_both(test: str, prefix: int, in_flight: int = IN_FLIGHT) -> tuple[Means, Means]:
    """Return the means of one test without and with the slower tiers."""
    return served(test, prefix, False, in_flight), served(test, prefix, True, in_flight)


def ratio(test: str, prefix: int, in_flight: int = IN_FLIGHT) -> float:
    """Return the mean time to the first token with the slower tiers over that without."""
    without, stored = served_both(test, prefix, in_flight)
    return stored.first / without.first


def first_share(test: str, prefix: int) -> float:
    """Return the first token's share of a request's time without the slower tiers, by the simulation."""
    without, _ = served_both(test, prefix)
    return without.first / without.whole


def most_first_share(test: str, prefix: int, measured: float) -> float:
    """Return the most that this share can be by the report's own table.

    With the tiers the first token takes no more than the whole request: r t <= w e, so t / e <= w / r.
    """
    return min(1.0, WHOLE[test, prefix] / measured)


@dataclass(frozen=True)
class LoadCase:
    """One published ratio of mean times under load; it has what `offload_cases.Case` has of a ratio."""

    name: str
    number: int  # among the rows of its kind, from 1
    quality: str
    test: str
    tokens: int
    measured: float
    kind: str = "ratio"
    foreign: str = "requests in flight are stated for prefixes of 1,000 tokens only"

    @property
    def is_odd(self) -> bool:
        """Whether constants may be fitted on it; nothing is."""
        return self.number % 2 == 1

    def predict(self) -> float:
        """Return what the model says of the measured quantity."""
        return ratio(self.test, self.tokens)

    def error(self) -> float:
        """Return the relative error of the prediction."""
        return self.predict() / self.measured - 1


def load_case(row: Mapping, number: int) -> LoadCase:
    """Return a row of the report as a question."""
    test = next(words for words in TOKENS if words in row["notes"])
    measured = row["ratio_restore_over_recompute"]
    return LoadCase(row["id"], number, row["quality"], test, row["tokens"], measured)
