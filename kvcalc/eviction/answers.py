"""`kvcalc evict`: files and options in, results out; joins the readers, the models and the simulator."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from kvcalc.api import scenario
from kvcalc.catalog import models
from kvcalc.catalog.eviction_rules import read_rules
from kvcalc.catalog.scenarios import Question, Said, engine_settings, given_tiers, read_value
from kvcalc.catalog.sequences import read_sequences
from kvcalc.catalog.simulation import SimulationFile, read_simulation
from kvcalc.engines import lay_out
from kvcalc.errors import SettingsError, did_you_mean
from kvcalc.eviction.policies import COST, RANKED
from kvcalc.eviction.pricing import (
    BLOCK,
    TIME_PER_TOKEN,
    Prices,
    block_of,
    from_layout,
    from_numbers,
    from_speed,
)
from kvcalc.eviction.ranking import Case, rank, waiting_time
from kvcalc.eviction.results import RankResult, SimulateResult, Victim
from kvcalc.eviction.rules import Rules
from kvcalc.eviction.sequences import RUNNING, LiveSequence
from kvcalc.eviction.simulation import LOADS, SWEEP, Progress, Setup, simulate
from kvcalc.eviction.steps import StepTimes, constant, modelled
from kvcalc.eviction.tactics import KEPT, Host, Limits
from kvcalc.keys import key
from kvcalc.planning.memory import memory_of, step_sequences, step_tokens
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.speed import Speed, speed_of
from kvcalc.scenario import Scenario, TierUse

DEADLINE = 60.0
"""Longest total time [second] of a good request where the file says none; assumed."""

MOST_SEQUENCES, MOST_TOKENS = 256, 2048
"""Sequences [1] and tokens [token] of one step where neither an engine nor a file says: vLLM's defaults
for cards below 70 GiB, https://docs.vllm.ai/en/latest/configuration/optimization/"""


def evict_rank(
    file: str,
    question: Question,
    policy: str = COST,
    rules: str | None = None,
    need: float | None = None,
    bytes_per_token: float | None = None,
) -> RankResult:
    """Answer who of the live sequences in a file goes, in which order and mode, and why.

    Parameters
    ----------
    file : sequences, as CSV, JSON, JSONL or YAML
    question : model, machine, tiers and options, as far as they are given
    policy : lru, ratio, priority, rules or cost
    rules : a `kv_eviction` file
    need : bytes to be freed; None ranks everybody
    bytes_per_token : KV of one token [byte], instead of a model's
    """
    if policy not in RANKED:
        raise SettingsError(f"--policy: unknown policy {policy!r:.60}{did_you_mean(policy, RANKED)}")
    if need is not None and bytes_per_token is None and question.model is None:
        raise SettingsError("--need: how much a sequence frees is unknown; give --bytes-per-token or --model")
    sequences, own = read_sequences(file), read_rules(rules) if rules else Rules()
    book = Notebook()
    speed, prices = _prices(question, bytes_per_token, sequences, book)
    if own.preempt_mode == "swap" and not prices.hosts and policy != COST:
        raise SettingsError(f"{rules}: preempt_mode swap needs a tier; give --tier 'dram=512 GB@54 GB/s'")
    queue = _queue(question, speed, sequences, need, prices, book) if policy == COST else None
    found = rank(Case(sequences, policy, own, prices, need, queue))
    sized = bytes_per_token is not None or question.model is not None
    victims = found.victims if sized else tuple(_unsized(victim) for victim in found.victims)
    return RankResult(
        inputs=_rank_inputs(file, question, policy, rules, need, bytes_per_token, prices),
        sources=book.sources,
        warnings=tuple(book.warnings),
        assumptions=tuple(book.assumptions),
        policy=policy,
        need=need,
        victims=victims,
        protected=found.protected,
        kept=found.kept,
        freed_bytes=found.freed if sized else None,
        cost=found.cost,
        queue_cost=queue,
        fallback=found.fallback,
    )


def _unsized(victim: Victim) -> Victim:
    return replace(victim, freed_bytes=None)


def _prices(
    question: Question,
    bytes_per_token: float | None,
    sequences: tuple[LiveSequence, ...],
    book: Notebook,
) -> tuple[Speed | None, Prices]:
    """Return the speed models where model and machine are known, and the prices by what is known."""
    rate = _said(question, "prefill_rate")
    block = int(_said(question, "block_size") or BLOCK)
    if question.model is not None and question.hardware is not None:
        speed = _speed(scenario(_for_decode(question, sequences)), book)
        prices = from_speed(speed, _hosts(question, speed.scenario))
        if bytes_per_token is not None:
            prices = replace(from_numbers(bytes_per_token, 0.0, block, prices.hosts), prefill=prices.prefill)
        book.assume("bytes are those of one GPU, and recompute times those of a prefill that runs alone")
        return speed, prices
    if rate is None:
        book.assume(
            f"recompute takes {TIME_PER_TOKEN * 1e3:g} ms a token; --prefill-rate, or --model with --on, "
            "replaces it"
        )
    time = TIME_PER_TOKEN if rate is None else 1 / rate
    hosts = _hosts(question, None)
    if bytes_per_token is not None or question.model is None:
        return None, from_numbers(bytes_per_token or 1.0, time, block, hosts)
    layout = lay_out(models.load(question.model).shape, engine_settings(question))
    return None, from_layout(layout, time, block, hosts)


def _said(question: Question, name: str) -> float | None:
    return read_value(key(name), question.said[name]) if name in question.said else None


def _for_decode(question: Question, sequences: tuple[LiveSequence, ...]) -> Question:
    """Return the question with the workload that the live sequences are."""
    done = max(1, round(float(np.mean([s.tokens_done for s in sequences]))))
    left = max(1, round(float(np.mean([s.tokens_remaining for s in sequences]))))
    said = {
        "prompt": Said(done, "tokens_done", numbers=True),
        "generate": Said(left, "tokens_remaining", numbers=True),
    }
    return replace(question, said={**said, **question.said})


def _speed(asked: Scenario, book: Notebook) -> Speed:
    return speed_of(asked, lay_out(asked.model.shape, asked.settings), book)


def _hosts(question: Question, asked: Scenario | None) -> tuple[tuple[str, Host], ...]:
    """Return the tiers that victims may be swapped to; the way out is no faster than the link."""
    link = math.inf if asked is None else asked.hardware.device_to_host.bandwidth
    return tuple((tier.name, _host(tier, link)) for tier in given_tiers(question))


def _host(tier: TierUse, link: float) -> Host:
    return Host(
        out=min(tier.bandwidth, link),
        back=tier.bandwidth,
        capacity=math.inf if tier.capacity is None else tier.capacity,
        setup=tier.setup or 0.0,
    )


def _queue(
    question: Question,
    speed: Speed | None,
    sequences: tuple[LiveSequence, ...],
    need: float | None,
    prices: Prices,
    book: Notebook,
) -> float | None:
    """Return how long the new request would wait if nobody was evicted, where that is known."""
    given = _said(question, "queue")
    if given is not None or speed is None or need is None:
        return given
    running = [sequence for sequence in sequences if sequence.state == RUNNING]
    if not running:
        return None
    hardware = speed.scenario.hardware
    context = float(np.mean([sequence.tokens_done for sequence in running]))
    batch = speed.decode.stage_batch(float(len(running)))
    step = float(
        speed.decode.step(
            batch, context, hardware.prefill_efficiency.mid, hardware.decode_efficiency.mid
        ).total
    )
    book.assume(f"the running sequences gain a token every {step * 1e3:.3g} ms, by the decode model")
    return waiting_time(running, need, prices, step)


def _rank_inputs(
    file: str,
    question: Question,
    policy: str,
    rules: str | None,
    need: float | None,
    bytes_per_token: float | None,
    prices: Prices,
) -> dict[str, Any]:
    return {
        "file": file,
        "policy": policy,
        "rules": rules,
        "need": need,
        "model": question.model,
        "on": question.hardware,
        "bytes_per_token": bytes_per_token,
        "block_size": prices.block,
        **{name: read_value(key(name), said) for name, said in question.said.items() if name != "block_size"},
        "tiers": {name: {"bandwidth": host.back, "setup": host.setup} for name, host in prices.hosts},
    }


def evict_simulate(
    file: str,
    seed: int | None = None,
    requests: int | None = None,
    progress: Progress | None = None,
) -> SimulateResult:
    """Answer what each policy does to the requests of a simulation file.

    Parameters
    ----------
    file : a `simulate.yaml`
    seed, requests : replace what the file says of them
    progress : told how many requests are done, of how many
    """
    said, book = read_simulation(file, seed, requests), Notebook()
    limits, times = _machine(said, file, book)
    if said.deadline is None:
        book.assume(
            f"a request is good when it takes {DEADLINE:g} s or less; `deadline` in the file replaces it"
        )
    loads = LOADS if said.loads is None else said.loads
    setup = Setup(
        requests=said.requests,
        rate=said.rate,
        limits=limits,
        times=times,
        tactics=said.tactics,
        deadline=DEADLINE if said.deadline is None else said.deadline,
        loads=loads,
    )
    _assume(said, setup, book)
    found = simulate(setup, progress)
    return SimulateResult(
        inputs=_simulate_inputs(file, said, setup),
        sources=book.sources,
        warnings=tuple(book.warnings),
        assumptions=tuple(book.assumptions),
        rows=found.rows,
        stability=found.stability,
        limits=found.limits,
        findings=found.findings,
        lru_is_enough=found.lru_is_enough,
        advice=found.advice,
    )


def _machine(said: SimulationFile, file: str, book: Notebook) -> tuple[Limits, StepTimes]:
    """Return pool and step times: of a model on a machine, or of bare numbers."""
    question = said.question
    if question.model is None and question.hardware is None:
        return _bare_machine(said, file)
    asked = scenario(question)
    speed = _speed(asked, book)
    memory = memory_of(asked, speed.layout, book)
    if not memory.kv_tokens or not memory.kv_pool:
        raise SettingsError(f"{file}: no memory is left for KV, so that there is nothing to simulate")
    block = block_of(speed.layout, BLOCK)
    hosts = _hosts(question, asked)
    limits = Limits(
        blocks=max(1, int(memory.kv_tokens // block)),
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


def _max_len(asked: Scenario) -> int | None:
    """Return the longest sequence: as the user set it, else the model's own."""
    longest = asked.model.shape.max_tokens
    return asked.settings.max_len if "max_len" in asked.given else longest


def _bare_machine(said: SimulationFile, file: str) -> tuple[Limits, StepTimes]:
    question = said.question
    pool, per_token = _said(question, "pool"), said.bytes_per_token
    if pool is None or per_token is None or said.step is None:
        raise SettingsError(f"{file}: give model and on, or the bare numbers pool, bytes_per_token and step")
    block, rate = int(_said(question, "block_size") or BLOCK), _said(question, "prefill_rate")
    hosts = _hosts(question, None)
    longest = _said(question, "max_len")
    limits = Limits(
        blocks=max(1, int(pool // (per_token * block))),
        block=block,
        bytes_per_token=per_token,
        watermark=said.watermark,
        max_len=None if longest is None else int(longest),
        host=hosts[0][1] if hosts else None,
    )
    most = int(_said(question, "max_seqs") or MOST_SEQUENCES)
    budget = int(_said(question, "max_batched_tokens") or MOST_TOKENS)
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
    if any(tactic.mode == "tail" for tactic in setup.tactics):
        book.assume(f"a dropped tail leaves {KEPT:.0%} of the blocks, unless `keep` says otherwise")
    if len(said.requests) > SWEEP:
        book.assume(f"other loads than the one asked are simulated with the first {SWEEP:,} requests")
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
        "loads": list(setup.loads),
        "deadline": setup.deadline,
        "watermark": setup.limits.watermark,
        "pool": setup.limits.blocks * setup.limits.block * setup.limits.bytes_per_token,
        "block_size": setup.limits.block,
        "max_seqs": setup.times.most,
        "max_batched_tokens": setup.times.budget,
    }
