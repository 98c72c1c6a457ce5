"""What a replay says beyond its rates: gaps, the knee, a loop, sessions, quotas, rounding."""

import re

import pytest

from kvcalc.errors import SettingsError
from kvcalc.output import render
from kvcalc.output.hit_picture import picture
from kvcalc.replay.answer import replay_trace
from kvcalc.replay.capacities import PerBlock, capacity_of
from kvcalc.replay.trace import build_trace


def rows(result, policy):
    return [row for row in result.rows if row.policy == policy]


def loop(length, times):
    """Return requests of one block each that go round and round."""
    return build_trace([[block] for block in list(range(length)) * times], 16)


def test_a_loop_larger_than_the_cache_is_warned_of():
    result = replay_trace(loop(10, 5), [5, 9, 10])
    assert [row.hit_blocks for row in rows(result, "lru")] == [0, 0, 40]
    assert result.scan.distance_blocks == 10
    assert result.scan.share_of_reuse == 1
    assert any(
        "a cyclic scan: 100% of all reuse" in line and "5 blocks, 9 blocks" in line
        for line in result.warnings
    )
    assert replay_trace(loop(10, 5), [10]).warnings == ()


def test_reuse_at_many_distances_is_no_loop():
    requests = [[block] for step in range(1, 40) for block in range(step)]
    assert replay_trace(build_trace(requests, 16), [5]).scan is None


def test_the_gap_is_put_down_to_the_policy_or_the_capacity():
    # A loop of 10 in a cache of 9: Belady hits nearly all, LRU nothing.
    lru = rows(replay_trace(loop(10, 5), [9]), "lru")[0]
    assert lru.gap == "policy"
    assert lru.lost_to_policy + lru.lost_to_capacity == pytest.approx(40 / 50)
    # In a cache of 1 nobody can do much.
    assert rows(replay_trace(loop(10, 5), [1]), "lru")[0].gap == "capacity"
    assert rows(replay_trace(loop(10, 5), [10]), "lru")[0].gap == "none"


def test_the_knee_is_where_the_curve_stops_paying():
    # One block is asked for again and again, nine others once more after all of them.
    requests = [[0], [0]] * 20 + [[block] for block in range(1, 10)] * 2
    knee = replay_trace(build_trace(requests, 16), [1]).knee
    assert knee.capacity_blocks == 1
    assert knee.share_of_infinite == pytest.approx(39 / 48)


def test_marginal_value_is_the_slope_of_the_exact_curve():
    result = replay_trace(loop(10, 5), [5], bytes_per_token=2**30 / 16)
    assert [point.gained_tokens_per_block for point in result.curve if point.capacity_blocks == 9] == [640]
    gib = [point.gained_per_gib for point in result.curve if point.capacity_blocks == 9]
    assert gib == [pytest.approx(40 / 50)]  # a block is a GiB


def test_hits_are_within_a_session_or_across_sessions():
    trace = build_trace([[0, 1], [0, 2], [0, 2]], 16, sessions=["a", "b", "b"])
    # The second request hits block 0, which its session never had; the third hits both, which it had.
    lru = rows(replay_trace(trace, [9]), "lru")[0]
    assert (lru.within_session, lru.across_sessions) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert rows(replay_trace(build_trace([[0]]), [9]), "lru")[0].within_session is None


def test_quotas_cost_what_sharing_would_have_hit():
    # Tenant a loops over 3 blocks, b asks for one; of 4 blocks a hard half of 2 hits nothing for a.
    requests = [[0], [1], [2], [9]] * 5
    trace = build_trace(requests, 1, tenants=["a", "a", "a", "b"] * 5)
    result = replay_trace(trace, [4], quota="hard")
    hard = next(row for row in result.rows if row.quota == "hard")
    assert hard.quota_cost == pytest.approx(12 / 20)
    assert [(one.tenant, one.hit_tokens, one.quota_blocks) for one in hard.tenants] == [
        ("a", 0, 2),
        ("b", 4, 2),
    ]
    own = replay_trace(trace, [4], quota="hard", shares={"a": 0.75, "b": 0.25})
    assert next(row for row in own.rows if row.quota == "hard").quota_cost == 0


def test_a_floor_keeps_a_tenant_from_being_pushed_out():
    # b's block would be evicted by a's stream of new blocks before it comes again.
    requests = [[0], [10], [11], [12], [13], [0]]
    trace = build_trace(requests, 1, tenants=["b", "a", "a", "a", "a", "b"])
    result = replay_trace(trace, [2], quota="floor", shares={"a": 0.5, "b": 0.5})
    found = {row.quota: row.hit_blocks for row in rows(result, "lru")}
    assert found == {"shared": 0, "floor": 1}


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"quota": "hard", "shares": {"c": 0.5}}, "--tenant-quota: unknown tenant 'c'"),
        ({"quota": "hard", "shares": {"a": 0.9, "b": 0.9}}, "the shares add up to 180%"),
        ({"shares": {"a": 0.5}}, "--tenant-quota: needs --quota floor or hard"),
        ({"quota": "har"}, "--quota: unknown word 'har', did you mean 'hard'"),
    ],
)
def test_quotas_that_make_no_sense_are_refused(said, message):
    with pytest.raises(SettingsError, match=message):
        replay_trace(build_trace([[0], [1]], tenants=["a", "b"]), [2], **said)


def test_what_whole_blocks_hide_is_bounded():
    # Blocks of 16: the second request leaves the first inside its second block of 10 tokens.
    result = replay_trace(build_trace([[0, 1], [0, 2]], 16, input_tokens=[26, 26]), [9])
    assert result.rounding.shortest_prefix == 16
    assert result.rounding.lost_tokens_at_most == 10
    assert replay_trace(build_trace([[0]], 16), [9]).rounding.lost_tokens_at_most == 0


def test_capacities_state_their_unit():
    trace = build_trace([[0, 1]], 512)
    sizes = PerBlock(1_000.0)
    read = {
        "5859 blocks": 5859,
        "1 block": 1,
        "16Mi tokens": 16 * 1024**2 // 512,
        "10,000,000 tokens": 19_531,
        "64k tokens": 125,
        "1.5 MB": 1500,
        "50 %": 1,
    }
    for text, blocks in read.items():
        assert capacity_of(text, trace, sizes).blocks == blocks


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5859", "has no unit; write '5859 blocks'"),
        ("16M", "has no unit"),
        ("16M tokens", "ambiguous"),
        ("40 GB", "the bytes of a block are unknown"),
        ("100 tokens", "holds no block of 512 tokens"),
        ("40 GHz", "40 GHz"),
        ("0 blocks", "holds no block"),
    ],
)
def test_capacities_that_cannot_be_read_are_refused(text, message):
    with pytest.raises(SettingsError, match=message):
        capacity_of(text, build_trace([[0]], 512), None)


def test_blocks_of_different_sizes_are_held_in_tokens():
    from dataclasses import replace

    import numpy as np

    # Components of 100, 50 and 10 tokens; a cache of 110 tokens holds the last two requests' heads.
    trace = build_trace([[0, 1], [2], [0, 1]], 1)
    trace = replace(
        trace, block_tokens=0, block_weight=np.array([100, 50, 10]), input_tokens=np.array([150, 10, 150])
    )
    lru = {row.capacity_blocks: row.hit_tokens for row in rows(replay_trace(trace, [110, 159, 160]), "lru")}
    assert lru == {110: 100, 159: 100, 160: 150}
    curve = replay_trace(trace, [160]).curve
    assert {point.capacity_blocks: round(point.hit_rate_tokens * 310) for point in curve}[160] == 150
    with pytest.raises(SettingsError, match="policy arc: needs blocks of one size"):
        replay_trace(trace, [160], ["arc"])


def test_rules_protect_what_is_about_to_finish_and_cool_down():
    # One session has a turn of 100 tokens to go and is protected; one that is finished goes.
    requests = [[0, 1], [10, 11], [20, 21], [0, 1]]
    trace = build_trace(
        requests, 16, sessions=["a", "b", "c", "a"], time=[0.0, 1.0, 2.0, 3.0], output_tokens=[10, 1, 1, 100]
    )
    result = replay_trace(trace, [4], ["rules"])
    assert rows(result, "rules")[0].hit_blocks == 2
    assert rows(result, "lru")[0].hit_blocks == 0


def test_rules_need_times():
    with pytest.raises(SettingsError, match="policy rules: needs times"):
        replay_trace(build_trace([[0]]), [1], ["rules"])


def test_cost_aware_eviction_spares_deep_blocks_and_takes_leaves_alone():
    # Two chains, one long and one short, and a newcomer: the tail of neither head may go first.
    requests = [[0, 1, 2], [10], [20], [0, 1, 2]]
    found = rows(replay_trace(build_trace(requests, 4096), [4], ["cost"]), "cost")[0]
    assert found.hit_blocks == 3  # 10, which is cheap to compute again, went


def test_tiers_are_told_apart():
    trace = build_trace([[0], [1], [0], [0]], 1)
    result = replay_trace(
        trace, [1], tiers=(("dram", 1),), inclusion="exclusive", write="write_back", bytes_per_token=8.0
    )
    tiered = next(row for row in result.rows if row.tiers)
    # 0 comes back from the slower tier, then hits in the fast one.
    assert [(part.tier, part.hit_tokens, part.restored_bytes) for part in tiered.tiers] == [
        ("cache", 1, 0),
        ("dram", 1, 8),
    ]
    assert tiered.restored_bytes == 8


def test_selective_writes_leave_out_what_is_touched_once():
    trace = build_trace([[0], [1], [2], [0]], 1)
    for inclusion, write, expected in (
        ("inclusive", "write_through", 1),
        ("inclusive", "write_back", 1),
        ("inclusive", "selective", 0),
        ("exclusive", "write_back", 1),
        ("exclusive", "selective", 0),
    ):
        result = replay_trace(trace, [1], tiers=(("dram", 3),), inclusion=inclusion, write=write)
        assert next(row for row in result.rows if row.tiers).hit_blocks == expected, (inclusion, write)


def test_exclusive_tiers_cannot_be_written_through():
    said = {"inclusion": "exclusive", "write": "write_through"}
    with pytest.raises(SettingsError, match="exclusive tiers hold no block twice"):
        replay_trace(build_trace([[0]]), [1], tiers=(("dram", 3),), **said)


def test_one_gib_more_never_brings_more_than_there_is():
    # A block of a MiB: a GiB more holds all ten, so that it brings all 40 of 50 hits, from any size.
    result = replay_trace(loop(10, 5), [5], bytes_per_token=2**16)
    gained = {point.capacity_blocks: point.gained_per_gib for point in result.curve}
    assert gained[1] == pytest.approx(0.8)
    assert gained[9] == pytest.approx(0.8)
    assert gained[10] == 0


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"touch": "head"}, "touch=head, lookup=atomic and oversize=truncate"),
        ({"lookup": "sequential"}, "touch=tail, lookup=sequential and oversize=truncate"),
        ({"oversize": "pin"}, "oversize=pin"),
        ({"oversize": "bypass", "touch": "head"}, "oversize=bypass"),
    ],
)
def test_where_there_is_no_curve_it_says_why(said, why):
    result = replay_trace(loop(10, 5), [5], **said)
    assert (result.curve, result.knee) == ((), None)
    assert f"With {why} a smaller cache can hold blocks that a larger one does not" in result.no_curve
    shown = " ".join(render(result).split())
    assert "oversize=thrash has one" in shown
    assert "the whole curve" not in shown
    with pytest.raises(SettingsError, match=r"give two capacities or more .with .*oversize=thrash has one"):
        picture(result, "misses.png")


@pytest.mark.parametrize("said", [{}, {"touch": "head", "oversize": "thrash"}])
def test_where_there_is_a_curve_nothing_is_missing(said):
    result = replay_trace(loop(10, 5), [5], **said)
    assert result.curve
    assert result.no_curve is None
    assert "and the whole curve" in " ".join(render(result).split())


def test_tiers_and_quotas_say_what_they_mean():
    trace = build_trace([[0], [1]] * 5, 16, tenants=["a", "b"] * 5)
    said = {"tiers": (("dram", 4),), "inclusion": "exclusive", "write": "write_back", "quota": "hard"}
    lines = replay_trace(trace, [2], **said).assumptions
    assert "inclusion=exclusive: a block is in one tier alone, so that tiers add up" in lines
    assert "write=write_back: a block goes to the next tier when the faster one evicts it" in lines
    assert any(line.startswith("quota=hard: a tenant has its part alone") for line in lines)
    assert not any(line.startswith(("inclusion", "quota")) for line in replay_trace(trace, [2]).assumptions)


def test_a_tier_that_adds_nothing_is_warned_of():
    warned = "dram: 4 blocks are no more than the 5 of a faster tier"
    tiers = (("dram", 4), ("nvme", 9))
    found = replay_trace(loop(10, 5), [5], tiers=tiers)
    assert sum(line.startswith(warned) for line in found.warnings) == 1
    assert [part.hit_tokens for row in found.rows for part in row.tiers if part.tier == "dram"] == [0]
    assert not any("adds nothing" in line for line in replay_trace(loop(10, 5), [3], tiers=tiers).warnings)
    apart = replay_trace(loop(10, 5), [5], tiers=tiers, inclusion="exclusive", write="write_back")
    assert not any("adds nothing" in line for line in apart.warnings)


@pytest.mark.parametrize("size", [5, 10**7])
def test_tiers_leave_the_table_a_row_for_each_policy(size):
    trace = build_trace([[block] for block in range(60)] * 3, 512, tenants=["a", "b"] * 90)
    tiers = tuple(
        (name, f"{n * size} blocks") for name, n in (("dram", 20), ("nvme", 300), ("object", 4_000))
    )
    said = {"tiers": tiers, "quota": "floor", "bytes_per_token": 131_072, "policies": ["arc"]}
    shown = render(replay_trace(trace, [size, 7 * size], **said)).splitlines()
    start = next(
        place for place, line in enumerate(shown) if line.split()[:3] == ["capacity", "policy", "hits"]
    )
    rows = shown[start + 1 : start + 14]
    assert all("%" in row for row in rows)
    assert [row.startswith("  (1) ") for row in rows].count(True) == 1
    assert [row.startswith("  (2) ") for row in rows].count(True) == 1
    assert sum("lru, tiers" in row for row in rows) == 2
    assert f"  (1) largest of {size} blocks, {20 * size} blocks" in "\n".join(shown)


def test_a_shared_prefix_that_the_ids_rule_out_is_refused():
    trace = build_trace([[0, 7, 8, 1], [0, 7, 8, 2], [0, 7, 8]], 16, input_tokens=[64, 64, 48])
    assert replay_trace(trace, [9], refine=4, shared_prefix=48).rows
    with pytest.raises(SettingsError, match=r"--shared-prefix: 49 tokens, .* all requests share 48 at most"):
        replay_trace(trace, [9], refine=4, shared_prefix=49)
    other = build_trace([[0, 1], [2, 3]], 16, input_tokens=[32, 32])
    with pytest.raises(SettingsError, match="all requests share 15 at most"):
        replay_trace(other, [9], refine=4, shared_prefix=16)


def test_tiers_in_python_are_texts_or_pairs():
    said = {"inclusion": "exclusive"}
    texts = replay_trace(loop(10, 5), [5], tiers=["dram=20 blocks"], **said)
    assert texts.rows == replay_trace(loop(10, 5), [5], tiers=[["dram", "20 blocks"]], **said).rows
    assert texts.inputs["write"] == "write_back"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"tiers": ["dram"]}, "tiers: 'dram' is no tier; write"),
        ({"tiers": [{"dram": 3}]}, "tiers: {'dram': 3} is no tier"),
        ({"sample": "x"}, "sample: expected a whole number from 1 on, got 'x'"),
        ({"workers": 0}, "workers: expected a whole number from 1 on, got 0"),
        ({"capacity": [3]}, "capacity: capacities is its name here"),
        ({"policy": ["arc"]}, "policy: policies is its name here"),
        ({"skip_broken": True}, "skip_broken: it is of the file; read it with kvcalc.replay.readers"),
        ({"model": "llama-3.1-8b"}, "model: pass sizing or bytes_per_token"),
        ({"tuch": "head"}, "tuch: unknown switch, did you mean 'touch'"),
        ({"tires": []}, "tires: unknown switch, did you mean 'tiers'"),
    ],
)
def test_what_python_says_wrongly_is_one_line(said, message):
    with pytest.raises(SettingsError, match=re.escape(message)):
        replay_trace(loop(10, 5), [5], **said)


@pytest.mark.parametrize("said", ["-5 blocks", "0.5 blocks", "1e3 blocks"])
def test_parts_of_blocks_are_no_capacity(said):
    with pytest.raises(SettingsError, match=f"capacity: '{said}' is no whole number of blocks from 1 on"):
        capacity_of(said, loop(3, 2), None)
