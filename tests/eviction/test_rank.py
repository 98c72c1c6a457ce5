"""Whom to evict: the worked examples, protection, modes, prices and shared blocks."""

from dataclasses import replace

import numpy as np
import pytest

from kvcalc.eviction.pricing import from_numbers
from kvcalc.eviction.ranking import Case, rank, waiting_time
from kvcalc.eviction.rules import Rules
from kvcalc.eviction.sequences import LiveSequence
from kvcalc.eviction.tactics import Host

TOKEN = 131_072  # bytes of KV, Llama 3.1 8B
PRICES = from_numbers(TOKEN, 0.08e-3, 16)

A = LiveSequence("A", 30_000, 8_000)
B = LiveSequence("B", 2_000, 1_000)
C = LiveSequence("C", 26_000, 200)
MB = 10**6


def answer(*sequences, policy="ratio", need=100 * MB, rules=None, prices=PRICES, queue=None):
    return rank(Case(sequences, policy, rules or Rules(), prices, need, queue))


def ids(rows):
    return [row.id for row in rows]


@pytest.mark.parametrize("policy", ["ratio", "rules", "cost", "priority"])
def test_of_the_worked_examples_b_goes_and_c_is_protected(policy):
    found = answer(A, B, C, policy=policy)
    assert ids(found.victims) == ["B"]
    assert ids(found.protected) == ["C"]
    assert ids(found.kept) == ["A"]
    assert found.fallback is None


def test_the_ratios_of_the_worked_examples():
    # domain: 30,000 / 8,000, 2,000 / 1,000 and 26,000 / 200
    found = answer(A, B, C, need=None, rules=Rules(protect=()))
    assert {victim.id: victim.ratio for victim in found.victims} == {"A": 3.75, "B": 2.0, "C": 130.0}
    assert ids(found.victims) == ["B", "A", "C"]


def test_with_a_and_c_alone_the_rules_queue_the_new_request():
    found = answer(A, C, policy="rules")
    assert found.victims == ()
    assert ids(found.protected) == ["C"]
    assert found.fallback == "queue_new_request"


def test_a_stalled_one_goes_under_the_rules():
    stalled = replace(A, idle_seconds=10.0)
    found = answer(stalled, C, policy="rules")
    assert ids(found.victims) == ["A"]
    assert "long_stalled" in found.victims[0].reason
    assert answer(replace(A, idle_seconds=9.9), C, policy="rules").victims == ()


@pytest.mark.parametrize(("done", "goes"), [(16_384, True), (16_383, False)])
def test_long_begins_at_its_limit(done, goes):
    found = answer(LiveSequence("x", done, 9_000, idle_seconds=60.0), policy="rules")
    assert bool(found.victims) is goes


@pytest.mark.parametrize(
    ("done", "left", "goes"), [(4_095, 2_047, True), (4_096, 2_047, False), (4_095, 2_048, False)]
)
def test_short_with_little_remaining_ends_at_its_limits(done, left, goes):
    assert bool(answer(LiveSequence("x", done, left), policy="rules").victims) is goes


@pytest.mark.parametrize("policy", ["lru", "ratio", "priority", "rules", "cost"])
def test_protection_beats_order(policy):
    short = LiveSequence("short", 1_000, 300)
    found = answer(short, policy=policy)
    assert found.victims == ()
    assert found.protected[0].reason == "near completion: 300 tokens to go < 512"
    assert found.fallback == "queue_new_request"


@pytest.mark.parametrize(("left", "safe"), [(511, True), (512, False)])
def test_near_completion_ends_at_its_limit(left, safe):
    assert bool(answer(LiveSequence("x", 1_000, left)).protected) is safe


@pytest.mark.parametrize(("ago", "safe"), [(20.0, True), (29.9, True), (31.0, False), (30.0, False)])
def test_cooldown(ago, safe):
    found = answer(replace(B, evicted_seconds_ago=ago))
    assert bool(found.protected) is safe
    assert bool(found.victims) is not safe


def test_a_tenant_of_high_priority_is_protected():
    found = answer(replace(B, priority=1.0, tenant="board"), A)
    assert ids(found.protected) == ["B"]
    assert "of tenant board" in found.protected[0].reason
    assert ids(found.victims) == ["A"]


def test_among_others_the_lowest_priority_goes():
    low, high = replace(A, id="low", priority=-2.0), replace(A, id="high", priority=-1.0)
    assert ids(answer(high, low, policy="priority").victims) == ["low"]


def test_lru_takes_the_one_that_was_idle_longest():
    first, second = replace(A, id="first", idle_seconds=5.0), replace(A, id="second", idle_seconds=7.0)
    assert ids(answer(first, second, policy="lru").victims) == ["second"]


@pytest.mark.parametrize("policy", ["lru", "ratio", "priority", "rules", "cost"])
def test_what_is_finished_is_free_and_goes_first(policy):
    done = LiveSequence("done", 1_000, 0, state="finished")
    found = answer(A, B, done, policy=policy, need=TOKEN * 1_008)  # 63 blocks of 16
    assert ids(found.victims) == ["done"]
    assert (found.victims[0].cost, found.victims[0].mode, found.victims[0].ratio) == (0.0, "free", None)


def test_recompute_of_all_and_of_a_tail_by_the_same_function():
    # domain: 32,000 tokens at 0.08 ms are 2.56 s; with 30,000 kept 2,000 are 0.16 s
    done, kept = np.array([32_000.0, 32_000.0]), np.array([0.0, 30_000.0])
    assert PRICES.recompute(done, kept) == pytest.approx([2.56, 0.16], rel=1e-12)
    whole = answer(LiveSequence("x", 32_000, 9_000), need=32_000 * TOKEN)
    assert whole.victims[0].cost == pytest.approx(2.56)
    tail = answer(
        LiveSequence("x", 32_000, 9_000), need=2_000 * TOKEN, rules=Rules(preempt_mode="tail")
    ).victims[0]
    assert tail.cost == pytest.approx(0.16)
    assert (tail.mode, tail.dropped_tokens, tail.freed_bytes) == ("tail", 2_000, 2_000 * TOKEN)


def test_a_tail_is_whole_blocks():
    # 10 tokens of need take one block of 16; the last block of 1,000 tokens is the 63rd.
    tail = answer(LiveSequence("x", 1_000, 9_000), need=10 * TOKEN, rules=Rules(preempt_mode="tail")).victims[
        0
    ]
    assert tail.freed_bytes == 16 * TOKEN
    assert tail.dropped_tokens == 1_000 - 62 * 16


def test_shared_blocks_free_nothing_and_are_not_computed_again():
    # 2,000 tokens in 125 blocks, 100 of them shared: 25 blocks go, 400 tokens are computed again.
    found = answer(replace(B, blocks=125, shared_blocks=100))
    victim = found.victims[0]
    assert victim.freed_bytes == 25 * 16 * TOKEN
    assert victim.dropped_tokens == 400
    assert victim.cost == pytest.approx(400 * 0.08e-3)
    assert found.fallback == "queue_new_request"  # 52 MB of 100


def test_who_shares_all_blocks_stays_and_it_is_said_why():
    found = answer(replace(B, blocks=125, shared_blocks=125))
    assert found.victims == ()
    assert found.kept[0].reason == "all its blocks are shared: freeing one holder frees nothing"


def test_victims_go_until_the_need_is_met_and_no_further():
    small = [LiveSequence(f"s{i}", 1_600, 1_000 + i) for i in range(5)]
    found = answer(*small, need=3 * 1_600 * TOKEN)
    assert len(found.victims) == 3
    assert found.freed == 3 * 1_600 * TOKEN
    assert found.cost == pytest.approx(sum(victim.cost for victim in found.victims))


def test_a_need_that_cannot_be_met_is_said():
    found = answer(A, B, C, need=10**12)
    assert ids(found.victims) == ["B", "A"]
    assert found.freed < 10**12
    assert found.fallback == "queue_new_request"


FAST = (("dram", Host(out=25e9, back=25e9)),)
SLOW = (("nvme", Host(out=0.5e9, back=0.5e9)),)


@pytest.mark.parametrize(("hosts", "mode"), [(FAST, "swap"), (SLOW, "recompute"), ((), "recompute")])
def test_cost_takes_each_victim_in_its_cheapest_mode(hosts, mode):
    # 2,000 tokens are 262 MB: 21 ms over 25 GB/s both ways, 1.05 s over 0.5 GB/s, 160 ms computed.
    prices = from_numbers(TOKEN, 0.08e-3, 16, hosts)
    victim = answer(B, policy="cost", need=2_000 * TOKEN, prices=prices).victims[0]
    assert victim.mode == mode
    assert victim.cost == pytest.approx({"swap": 2 * 2_000 * TOKEN / 25e9, "recompute": 0.16}[mode])


def test_the_tier_that_is_back_soonest_and_has_room_is_taken():
    tight = (("dram", Host(25e9, 25e9, capacity=100 * MB)), ("cxl", Host(10e9, 10e9)))
    found = answer(B, policy="cost", need=2_000 * TOKEN, prices=from_numbers(TOKEN, 0.08e-3, 16, tight))
    assert "to cxl and back" in found.victims[0].reason


def test_cost_prefers_the_tail_that_is_needed_to_a_whole_sequence():
    found = answer(A, policy="cost", need=160 * TOKEN)
    assert (found.victims[0].mode, found.victims[0].dropped_tokens) == ("tail", 160)


def test_cost_lets_those_stay_whom_a_later_victim_makes_superfluous():
    # The cheap small ones free too little; the large one alone is enough.
    hosts = (("dram", Host(25e9, 25e9)),)
    found = answer(A, B, policy="cost", need=2_500 * TOKEN, prices=from_numbers(TOKEN, 0.8, 16, hosts))
    assert ids(found.victims) == ["A"]


@pytest.mark.parametrize(("queue", "goes"), [(0.2, True), (0.1, False)])
def test_an_expensive_victim_stays_while_queueing_is_cheaper(queue, goes):
    found = answer(B, policy="cost", need=2_000 * TOKEN, queue=queue)  # 0.16 s
    assert bool(found.victims) is goes
    assert (found.fallback is None) is goes
    if not goes:
        assert found.kept[0].reason == "queueing the new request costs 0.1 s, less than its victims would"


def test_queueing_costs_the_time_until_enough_has_ended():
    # After 200 steps 26,000 tokens are free, after 1,000 steps 2,000 more.
    assert waiting_time((A, B, C), 26_000 * TOKEN, PRICES, 0.01) == pytest.approx(2.0)
    assert waiting_time((A, B, C), 27_000 * TOKEN, PRICES, 0.01) == pytest.approx(10.0)
    assert waiting_time((A, B, C), 10**12, PRICES, 0.01) is None


def test_queue_mode_evicts_nobody_but_frees_what_is_finished():
    done = LiveSequence("done", 1_000, 0, state="finished")
    found = answer(B, done, rules=Rules(preempt_mode="queue"), need=500 * MB)
    assert ids(found.victims) == ["done"]
    assert found.fallback == "queue_new_request"


def test_limits_of_the_rules_can_be_set():
    assert answer(B, policy="rules", rules=Rules(short=2_000)).victims == ()
    assert answer(C, rules=Rules(near_completion=100)).victims != ()


def test_every_line_says_why():
    found = answer(A, B, C, policy="rules")
    assert found.victims[0].reason == (
        "short_low_remaining: 2,000 done < 4,096, 1,000 to go < 2,048; all of it is computed again"
    )
    assert all(row.reason for row in (*found.protected, *found.kept))
