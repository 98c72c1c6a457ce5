"""The simulator on traces that fit a sheet of paper: every number here was worked by hand.

A decode step takes 1 s whatever is in it, prefill 0.5 s a token, a block holds one token.
"""

import numpy as np
import pytest

from kvcalc.eviction.tactics import Host, Tactic
from tests.eviction.conftest import requests, serve


def test_one_request_alone():
    # 4 tokens of prefill until 2 s give the first token; two more steps end at 4 s.
    record = serve(requests((0, 4, 3)), blocks=10)
    assert record.first.tolist() == [2.0]
    assert record.end.tolist() == [4.0]
    assert record.processed == 4 + 2


def test_a_request_of_one_token_ends_with_its_prefill():
    record = serve(requests((1, 4, 1)), blocks=10)
    assert record.end.tolist() == [3.0]
    assert record.gaps.count == 0


def test_a_prompt_longer_than_the_budget_is_prefilled_in_chunks():
    # 6 of 8 tokens in 3 s, the other 2 in 1 s.
    record = serve(requests((0, 8, 2)), blocks=10)
    assert record.first.tolist() == [4.0]
    assert record.end.tolist() == [5.0]


def test_decode_and_prefill_share_a_step():
    # The second arrives at 3.5 s, in the first's step from 3 to 4 s.  From 4 s on a step of 1 s decode
    # takes in a chunk of 4 tokens: 2 s, the longer of both, in which the first gets its token too.
    record = serve(requests((0, 6, 9), (3.5, 4, 2)), blocks=100)
    assert record.first.tolist() == [3.0, 6.0]
    assert record.end.tolist() == [12.0, 7.0]


def test_the_head_of_the_queue_waits_for_blocks():
    # The second needs 5 blocks; 10 less 6 are not enough until the first ends at 4 s.
    record = serve(requests((0, 6, 2), (0, 5, 1)), blocks=10)
    assert record.end.tolist() == [4.0, 6.5]


TWO = ((0, 3, 4), (0, 3, 4))
"""Two requests in 8 blocks: both prefilled at 3 s, both with 4 tokens at 4 s, when nothing is free."""


def test_recompute_of_the_first_admitted():
    # The first goes at 4 s; the second ends at 6 s; the first computes 5 tokens again until 8.5 s, of
    # which 4 had been computed, and ends a step later.
    record = serve(requests(*TWO), 8, Tactic("lru", "lru"))
    assert record.end.tolist() == [9.5, 6.0]
    assert record.evictions.tolist() == [1, 0]
    assert record.recomputed.tolist() == [4, 0]
    assert record.processed == 2 * (3 + 3) + 4
    assert record.pause.tolist() == [4.5, 0.0]


@pytest.mark.parametrize("policy", ["ratio", "priority"])
def test_equal_sequences_the_last_admitted_goes(policy):
    record = serve(requests(*TWO), 8, Tactic(policy, policy))
    assert record.end.tolist() == [6.0, 9.5]


def test_a_dropped_tail_is_all_that_is_computed_again():
    # Half of 4 blocks stay, so that 3 tokens are computed from 6 s to 7.5 s, 2 of them again.
    record = serve(requests(*TWO), 8, Tactic("tail", "lru", "tail"))
    assert record.end.tolist() == [8.5, 6.0]
    assert record.recomputed.tolist() == [2, 0]


def test_a_swap_computes_nothing_again_but_waits_for_the_link():
    # 4 bytes out until 5 s, and back from 6 s to 7 s; two steps are left.
    record = serve(requests(*TWO), 8, Tactic("swap", "lru", "swap"), host=Host(out=4.0, back=4.0))
    assert record.end.tolist() == [9.0, 6.0]
    assert record.recomputed.sum() == 0
    assert record.swapped == 4.0
    assert record.pause.tolist() == [4.0, 0.0]


def test_a_full_host_leaves_recompute():
    full = Host(out=4.0, back=4.0, capacity=3.0)
    record = serve(requests(*TWO), 8, Tactic("swap", "lru", "swap"), host=full)
    assert record.end.tolist() == [9.5, 6.0]
    assert record.swapped == 0.0


def test_queueing_waits_for_room_for_all_that_a_request_will_hold():
    # Each holds 6 tokens at the end, so that the second starts only at 1.5 + 3 = 4.5 s.
    record = serve(requests(*TWO), 8, Tactic("queue", "queue"))
    assert record.first.tolist() == [1.5, 6.0]
    assert record.end.tolist() == [4.5, 9.0]
    assert record.evictions.sum() == 0


def test_the_watermark_keeps_blocks_free_for_those_who_run():
    # Together: 6 tokens until 3 s, then the other 2 beside a step of 1 s.  Where 3 of 10 blocks stay
    # free, 10 - 5 - 3 are too few for the second until the first ends at 2.5 + 1 s.
    load = requests((0, 5, 2), (0, 3, 1))
    assert serve(load, 10).end.tolist() == [4.0, 4.0]
    assert serve(load, 10, watermark=0.3).end.tolist() == [3.5, 5.0]


def test_a_request_is_cut_where_the_pool_ends():
    # 8 blocks hold 3 tokens of prompt and 5 of the 6 generated: the last one needs no room.
    record = serve(requests((0, 3, 20)), blocks=8)
    assert record.generated.tolist() == [6]
    assert record.truncated.tolist() == [True]


def test_a_prompt_that_can_never_fit_is_refused_at_the_door():
    record = serve(requests((0, 9, 1), (0, 2, 1)), blocks=8)
    assert record.rejected.tolist() == [True, False]
    assert np.isnan(record.end[0])
    assert record.end[1] == 1.0
