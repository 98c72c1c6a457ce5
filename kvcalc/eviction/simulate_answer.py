"""`kvcalc evict simulate`: a file in, what each policy does to its requests out."""

from typing import Any

import numpy as np

from kvcalc.api import scenario
from kvcalc.catalog.simulation import MOST_REQUESTS, SimulationFile, read_simulation
from kvcalc.errors import SettingsError
from kvcalc.eviction.asked import hosts_of, models_of, said_number
from kvcalc.eviction.pricing import BLOCK, TIME_PER_TOKEN, block_of
from kvcalc.eviction.results import SimulatedRow, SimulateResult
from kvcalc.eviction.simulation import SWEEP, Progress, Setup, simulate
from kvcalc.eviction.stability import Demand, stability_of
from kvcalc.eviction.steps import StepTimes, constant, modelled
from kvcalc.eviction.tactics import KEPT, Limits
from kvcalc.formulas.eviction import is_thrashing
from kvcalc.planning.memory import memory_of, step_sequences, step_tokens
from kvcalc.planning.notebook import Call, Notebook
from kvcalc.scenario import Scenario

DEADLINE = 60.0
"""Longest total time [second] of a good request where the file says none; assumed."""

MOST_SEQUENCES, MOST_TOKENS = 256, 2048
"""Sequences [1] and tokens [token] of one step where neither an engine nor a file says: vLLM's defaults
for cards below 70 GiB, https://docs.vllm.ai/en/latest/configuration/optimization/"""


def evict_simulate(
    file: str,
    seed: int | str | None = None,
    requests: int | str | None = None,
    progress: Progress | None = None,
) -> SimulateResult:
    """Answer what each policy does to the requests of a simulation file, as `kvcalc evict simulate` does."""
    return simulate_calls(file, seed, requests, progress)[0]


def simulate_calls(
    file: str,
    seed: int | str | None = None,
    requests: int | str | None = None,
    progress: Progress | None = None,
) -> tuple[SimulateResult, tuple[Call, ...]]:
    """Answer what each policy does to a file's requests, together with the formulas as they were called.

    Parameters
    ----------
    file : a `simulate.yaml`
    seed, requests : replace what the file says of them
    progress : told how many requests are done, of how many
    """
    count = _count(requests, "--requests", least=2)
    said, book = read_simulation(file, _count(seed, "--seed", least=0), count), Notebook()
    limits, times = _machine(said, file, book)
    if said.deadline is None:
        book.assume(
            f"a request is good when it takes {DEADLINE:g} s or less; `deadline` in the file replaces it"
        )
    setup = Setup(
        requests=said.requests,
        rate=said.rate,
        limits=limits,
        times=times,
        tactics=said.tactics,
        deadline=DEADLINE if said.deadline is None else said.deadline,
        loads=said.loads,
    )
    _assume(said, setup, book)
    found = simulate(setup, progress)
    _note(found.rows, setup, book)
    result = SimulateResult(
        inputs=_simulate_inputs(file, said, setup),
        sources=book.sources,
        warnings=tuple(book.warnings),
        assumptions=tuple(book.assumptions),
        rows=found.rows,
        stability=found.stability,
        turning_rate=found.turning_rate,
        limits=found.limits,
        findings=found.findings,
        lru_is_enough=found.lru_is_enough,
        advice=found.advice,
    )
    return result, tuple(book.calls)


def _note(rows: tuple[SimulatedRow, ...], setup: Setup, book: Notebook) -> None:
    """Note the closed forms at the load that was asked and the thrash rule by policy, for `--explain`."""
    stability_of(setup.rate, Demand.of(setup.requests, setup.times), setup.limits, setup.times, book.run)
    for row in rows:
        if row.load == 1:
            evictions, share = float(row.evictions_per_second), float(row.recomputed_share)
            book.run(is_thrashing, evictions=evictions, recomputed=share)


def _machine(said: SimulationFile, file: str, book: Notebook) -> tuple[Limits, StepTimes]:
    """Return pool and step times: of a model on a machine, or of bare numbers."""
    question = said.question
    if question.model is None and question.hardware is None:
        return _bare_machine(said, file)
    asked = scenario(question)
    speed = models_of(asked, book)
    memory = memory_of(asked, speed.layout, book)
    if not memory.kv_tokens or not memory.kv_pool:
        raise SettingsError(f"{file}: no memory is left for KV, so that there is nothing to simulate")
    block = block_of(speed.layout, BLOCK)
    hosts = hosts_of(question, asked)
    limits = Limits(
        blocks=_blocks(float(memory.kv_tokens), block, file),
        block=block,
        bytes_per_token=float(memory.kv_pool / memory.kv_tokens),
        watermark=said.watermark,
        max_len=_max_len(asked),
        host=hosts[0][1] if hosts else None,
    )
    load = said.requests
    held = float(np.average(load.prompt + load.generate / 2, weights=load.generate))
    if said.step is not None:
        return limits, constant(said.step, step_sequences(asked), TIME_PER_TOKEN, step_tokens(asked))
    return limits, modelled(speed, step_sequences(asked), step_tokens(asked), held)


def _blocks(tokens: float, block: int, file: str) -> int:
    """Return how many blocks so many tokens of a pool make."""
    if tokens < block:
        raise SettingsError(f"{file}: the pool holds {tokens:.0f} tokens, less than one block of {block}")
    return int(tokens // block)


def _max_len(asked: Scenario) -> int | None:
    """Return the longest sequence: as the user set it, else the model's own."""
    longest = asked.model.shape.max_tokens
    return asked.settings.max_len if "max_len" in asked.given else longest


def _bare_machine(said: SimulationFile, file: str) -> tuple[Limits, StepTimes]:
    question = said.question
    pool, per_token = said_number(question, "pool"), said.bytes_per_token
    if pool is None or per_token is None or said.step is None:
        raise SettingsError(f"{file}: give model and on, or the bare numbers pool, bytes_per_token and step")
    block, rate = int(said_number(question, "block_size") or BLOCK), said_number(question, "prefill_rate")
    hosts = hosts_of(question, None)
    longest = said_number(question, "max_len")
    limits = Limits(
        blocks=_blocks(pool / per_token, block, file),
        block=block,
        bytes_per_token=per_token,
        watermark=said.watermark,
        max_len=None if longest is None else int(longest),
        host=hosts[0][1] if hosts else None,
    )
    most = int(said_number(question, "max_seqs") or MOST_SEQUENCES)
    budget = int(said_number(question, "max_batched_tokens") or MOST_TOKENS)
    return limits, constant(said.step, most, TIME_PER_TOKEN if rate is None else 1 / rate, budget)


def _assume(said: SimulationFile, setup: Setup, book: Notebook) -> None:
    limits, times = setup.limits, setup.times
    book.assume(
        f"one engine instance with {limits.blocks:,} blocks of {limits.block} tokens, at most {times.most} "
        f"sequences and {times.budget:,} tokens a step; admission leaves {limits.spare:,} blocks free"
    )
    book.assume(
        "a policy knows how many tokens are still to come; lru, ratio, priority and cost protect nobody "
        "unless the file says so; queue waits until the pool has room for all that a request will hold"
    )
    book.assume(
        "where nobody may go, sequences that need a block wait for one and admission is closed; if nothing "
        "can go on, the one admitted last is evicted"
    )
    if any(tactic.mode == "tail" for tactic in setup.tactics):
        book.assume(f"a dropped tail leaves {KEPT:.0%} of the blocks, unless `keep` says otherwise")
    if len(said.requests) > SWEEP:
        book.assume(f"other loads than the one asked are simulated with the first {SWEEP:,} requests")
    prompts, longest = setup.requests.prompt, limits.longest
    if (prompts > longest).any():
        share = (prompts > longest).mean()
        told = f"{share:.0%} of the prompts are longer than the {longest:,} tokens that one sequence may hold"
        book.warn(f"{told}, and are rejected")
    elif (prompts + setup.requests.generate - 1 > longest).any():
        cut = (prompts + setup.requests.generate - 1 > longest).mean()
        book.warn(f"{cut:.0%} of the requests are cut at the {longest:,} tokens that one sequence may hold")
    if any(tactic.mode == "swap" for tactic in setup.tactics) and limits.host is None:
        book.warn("no tier is given, so that swap becomes recompute; name one under `tiers`")


def _simulate_inputs(file: str, said: SimulationFile, setup: Setup) -> dict[str, Any]:
    return {
        "file": file,
        "model": said.question.model,
        "on": said.question.hardware,
        "rate": setup.rate,
        "requests": len(setup.requests),
        "seed": said.seed,
        "trace": said.trace,
        "prompt": float(np.mean(setup.requests.prompt)),
        "generate": float(np.mean(setup.requests.generate)),
        "policies": [tactic.name for tactic in setup.tactics],
        "loads": None if setup.loads is None else list(setup.loads),
        "deadline": setup.deadline,
        "watermark": setup.limits.watermark,
        "pool": setup.limits.blocks * setup.limits.block * setup.limits.bytes_per_token,
        "block_size": setup.limits.block,
        "max_seqs": setup.times.most,
        "max_batched_tokens": setup.times.budget,
    }


def _count(value: int | str | None, option: str, least: int) -> int | None:
    if value is None:
        return None
    text = str(value).strip()
    if not (text.isascii() and text.isdigit() and least <= int(text) <= MOST_REQUESTS):
        raise SettingsError(f"{option}: {text!r:.60} is not a whole number from {least} to {MOST_REQUESTS:,}")
    return int(text)
