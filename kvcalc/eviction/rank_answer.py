"""`kvcalc evict rank`: a file of live sequences and options in, victims with their reasons out."""

from dataclasses import replace
from typing import Any

import numpy as np

from kvcalc.api import question_of, scenario
from kvcalc.catalog import models
from kvcalc.catalog.eviction_rules import read_rules
from kvcalc.catalog.scenarios import Question, Said, engine_settings, quantity, read_value
from kvcalc.catalog.sequences import read_sequences
from kvcalc.engines import lay_out
from kvcalc.errors import KvcalcError, SettingsError, did_you_mean
from kvcalc.eviction.asked import hosts_of, models_of, said_number
from kvcalc.eviction.policies import COST, RANKED
from kvcalc.eviction.pricing import BLOCK, TIME_PER_TOKEN, Prices, from_layout, from_numbers, from_speed
from kvcalc.eviction.ranking import Case, Ranking, rank, waiting_time
from kvcalc.eviction.results import FREE, RankResult, Victim
from kvcalc.eviction.rules import Rules
from kvcalc.eviction.sequences import RUNNING, LiveSequence
from kvcalc.formulas.eviction import price_ratio, recompute_time
from kvcalc.formulas.pressure import victim_price
from kvcalc.keys import key
from kvcalc.planning.notebook import Call, Notebook
from kvcalc.planning.speed import Speed


def evict_rank(
    file: str,
    *,
    model: str | None = None,
    on: str | None = None,
    policy: str = COST,
    rules: str | None = None,
    need: float | str | None = None,
    bytes_per_token: float | str | None = None,
    **said: Any,  # noqa: ANN401 - any key's value
) -> RankResult:
    """Answer who of the live sequences in a file goes, in which order and mode, and why.

    Arguments are those of `kvcalc evict rank`, as text with units or as numbers in base units.
    """
    return rank_calls(file, question_of(model, on, **said), policy, rules, need, bytes_per_token)[0]


def rank_calls(
    file: str,
    question: Question,
    policy: str = COST,
    rules: str | None = None,
    need: float | str | None = None,
    bytes_per_token: float | str | None = None,
) -> tuple[RankResult, tuple[Call, ...]]:
    """Answer who of the live sequences in a file goes, together with the formulas as they were called.

    Parameters
    ----------
    file : sequences, as CSV, JSON, JSONL or YAML
    question : model, machine, tiers and options, as far as they are given
    policy : lru, ratio, priority, rules or cost
    rules : a `kv_eviction` file
    need : to be freed, as text with a unit or in bytes; None ranks everybody
    bytes_per_token : KV of one token, as text or in bytes, instead of a model's
    """
    need = None if need is None else _amount(need, "--need")
    bytes_per_token = None if bytes_per_token is None else _amount(bytes_per_token, "--bytes-per-token")
    if policy not in RANKED:
        raise SettingsError(f"--policy: unknown policy {policy!r:.60}{did_you_mean(policy, RANKED)}")
    if question.hardware is not None and question.model is None:
        raise SettingsError("--on: needs --model, whose bytes and times it is for")
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
    _note(found, sequences, policy, prices, book)
    result = RankResult(
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
    return result, tuple(book.calls)


def _note(
    found: Ranking, sequences: tuple[LiveSequence, ...], policy: str, prices: Prices, book: Notebook
) -> None:
    """Note the formulas behind each victim, for `--explain`."""
    by_id = {sequence.id: sequence for sequence in sequences}
    for victim in found.victims:
        sequence, done = by_id[victim.id], float(by_id[victim.id].tokens_done)
        if victim.mode == FREE:
            continue
        if sequence.tokens_remaining:
            book.run(price_ratio, tokens_done=done, tokens_remaining=float(sequence.tokens_remaining))
        if victim.mode != "swap" and prices.time_per_token is not None:
            kept = done - float(victim.dropped_tokens)
            book.run(recompute_time, tokens=done, time_per_token=prices.time_per_token, kept=kept)
        if policy == COST:
            book.run(victim_price, cost=float(victim.cost or 0.0), freed=float(victim.freed_bytes or 0.0))


def _amount(value: float | str, option: str) -> float:
    """Read bytes: a number of the library, or text with a unit; per token a bare number will do."""
    if isinstance(value, str) and option == "--bytes-per-token":
        value = value.strip().removesuffix("/token").strip()
        value = f"{value} B" if value.replace(".", "", 1).isdigit() else value
    try:
        return quantity(Said(value, option, numbers=True), "byte")
    except KvcalcError as error:
        raise type(error)(f"{option}: {error}") from None


def _unsized(victim: Victim) -> Victim:
    return replace(victim, freed_bytes=None)


def _prices(
    question: Question,
    bytes_per_token: float | None,
    sequences: tuple[LiveSequence, ...],
    book: Notebook,
) -> tuple[Speed | None, Prices]:
    """Return the speed models where model and machine are known, and the prices by what is known."""
    rate = said_number(question, "prefill_rate")
    block = int(said_number(question, "block_size") or BLOCK)
    if question.model is not None and question.hardware is not None:
        speed = models_of(scenario(_for_decode(question, sequences)), book)
        prices = from_speed(speed, hosts_of(question, speed.scenario))
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
    hosts = hosts_of(question, None)
    if bytes_per_token is not None or question.model is None:
        return None, from_numbers(bytes_per_token or 1.0, time, block, hosts)
    layout = lay_out(models.load(question.model).shape, engine_settings(question))
    return None, from_layout(layout, time, block, hosts)


def _for_decode(question: Question, sequences: tuple[LiveSequence, ...]) -> Question:
    """Return the question with the workload that the live sequences are."""
    done = max(1, round(float(np.mean([s.tokens_done for s in sequences]))))
    left = max(1, round(float(np.mean([s.tokens_remaining for s in sequences]))))
    said = {
        "prompt": Said(done, "tokens_done", numbers=True),
        "generate": Said(left, "tokens_remaining", numbers=True),
    }
    return replace(question, said={**said, **question.said})


def _queue(
    question: Question,
    speed: Speed | None,
    sequences: tuple[LiveSequence, ...],
    need: float | None,
    prices: Prices,
    book: Notebook,
) -> float | None:
    """Return how long the new request would wait if nobody was evicted, where that is known."""
    given = said_number(question, "queue")
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
