"""What `quota reclaim` plans, with every figure worked by hand."""

import numpy as np
import pytest

from kvcalc.errors import SettingsError
from kvcalc.planning.notebook import Notebook
from kvcalc.quota.applying import without_blocks
from kvcalc.quota.document import of_document
from kvcalc.quota.fixed import Allowed
from kvcalc.quota.rates import Given, Rates, rates_of
from kvcalc.quota.reclaim import Request, reclaim

RATES = Rates(out=1e6, back=2e6, setup=0.01, recompute=lambda new, cached: new * 1e-3, step_time=0.02)


def plan(ledger, tenant="b", size=None, rates=RATES, **said):
    allowed = {
        name: said.pop(name) for name in ("compress", "evict_tail", "keep_tokens", "preempt") if name in said
    }
    request = Request(tenant, size=size, allowed=Allowed(**allowed), **said)
    result, after, _ = reclaim(ledger, request, rates, Notebook())
    return result, after


def session(name, blocks, state="suspended", tokens=None, **said):
    count = sum(last - first + 1 for first, last in blocks)
    return {"id": name, "tenant": "b", "state": state, "tokens": count * 16 if tokens is None else tokens,
            "blocks": blocks, **said}  # fmt: skip


def alone(small, *sessions, **pool):
    """A ledger of tenant b's sessions only."""
    return of_document(
        small | {"sessions": list(sessions), "shared": [], "pinned": [], "pool": small["pool"] | pool},
        "l.yaml",
    )


def test_reclaiming_one_of_two_who_share_frees_only_what_is_private_and_the_other_is_charged_more(ledger):
    result, after = plan(ledger, "b", 57_000.0)
    (step,) = result.steps
    assert (step.means, step.session, step.blocks, step.bytes) == ("offload", "s2", 26, 26_000)
    assert step.block_ids == ((500, 525),)
    assert not result.reached
    assert {(item.reason, item.blocks) for item in result.unreclaimable} == {("pinned", 8), ("shared", 23)}
    charged = {item.tenant: (item.before, item.after) for item in result.charges}
    assert charged["a"] == (172_500, 188_000)
    assert charged["b"] == (41_500, 0)
    assert any(
        "charge of a jumps by 15,500 bytes and exceeds its quota by 38,000" in w for w in result.warnings
    )
    assert after.used_bytes == 188_000


def test_an_offload_costs_the_way_out_now_and_the_way_back_by_its_chance(ledger):
    (step,) = plan(ledger, "b", 26_000.0)[0].steps
    assert step.seconds == pytest.approx(26_000 / 1e6)
    assert step.later_seconds == pytest.approx(0.3 * (0.01 + 26_000 / 2e6))
    assert step.cost_seconds == pytest.approx(step.seconds + step.later_seconds)
    assert step.link_bytes == 26_000


def test_no_more_blocks_go_than_are_needed_and_the_leaf_goes_first(ledger):
    (step,) = plan(ledger, "b", 9_500.0)[0].steps
    assert (step.blocks, step.block_ids) == (10, ((516, 525),))


def test_the_fixed_order_goes_from_free_to_offload_to_compress_to_evict(small):
    # Room in DRAM: 0.9 x 20 kB - 8 kB = 10 blocks.
    ledger = alone(
        small,
        session("old", [[0, 3]], "finished", idle="9 s"),
        session("cold", [[10, 29]], idle="60 s", p_reuse=0.5),
        dram="20 kB",
        dram_used="8 kB",
    )
    result, after = plan(ledger, "b", 24_000.0, evict_tail=True)
    assert [(s.means, s.blocks) for s in result.steps] == [("free", 4), ("offload", 10), ("compress", 5)]
    free, offload, compress = result.steps
    assert free.cost_seconds == 0
    assert offload.block_ids == ((20, 29),)
    assert compress.block_ids == ((15, 19),)
    assert compress.seconds == pytest.approx(10_000 / 1e6 + 5_000 / 2e6)  # ten out, five back
    assert compress.link_bytes == 15_000
    # What is left may not be evicted: the tail of this context lies in DRAM.
    assert [(item.means, item.blocks, item.why) for item in result.left] == [
        ("evict_tail", 5, "what is left of compressed blocks")
    ]
    assert result.watermark.room == 10_000
    assert (result.watermark.offloaded, result.watermark.compressed) == (10_000, 5_000)
    assert result.watermark.kept_out == 10_000
    assert after.host.used == 18_000
    assert any("lossy" in warning for warning in result.warnings)


def test_without_the_watermark_nothing_is_compressed(small):
    ledger = alone(small, session("cold", [[10, 29]], p_reuse=0.5), dram="20 kB", dram_watermark=1.0)
    result, _ = plan(ledger, "b", 20_000.0)
    assert [(s.means, s.blocks) for s in result.steps] == [("offload", 20)]


def test_a_tail_is_evicted_only_when_allowed_and_never_below_what_is_kept(small):
    ledger = alone(small, session("long", [[10, 29]], p_reuse=0.5), dram="0 B")
    shut, _ = plan(ledger, "b", 20_000.0, compress=False)
    assert shut.steps == ()
    assert shut.left[0].why == "the lower tier has no room, and tails may not be evicted"
    result, _ = plan(ledger, "b", 20_000.0, compress=False, evict_tail=True, keep_tokens=256)
    (step,) = result.steps
    assert (step.means, step.blocks, step.block_ids) == ("evict_tail", 4, ((26, 29),))
    assert step.cost_seconds == pytest.approx(0.5 * 4 * 16 * 1e-3)


def test_running_sessions_are_preempted_only_when_asked_and_as_a_whole(ledger):
    shut, _ = plan(ledger, "a", 10_000.0)
    assert shut.steps == ()
    assert {item.reason for item in shut.unreclaimable} == {"pinned", "shared", "running"}
    result, after = plan(ledger, "a", 10_000.0, preempt=True)
    (step,) = result.steps
    assert (step.means, step.blocks) == ("preempt", 157)
    assert step.cost_seconds == pytest.approx((3000 - 31 * 16) * 1e-3)  # the shared prefix is hit again
    assert after.used_bytes == 57_000


def test_a_block_in_a_transfer_stays(small):
    small["leased"] = [[510, 512]]
    result, _ = plan(of_document(small, "l.yaml"), "b", 57_000.0)
    assert result.freed_blocks == 23
    assert ("leased", 3) in {(item.reason, item.blocks) for item in result.unreclaimable}


def test_blocks_with_a_copy_below_are_dropped_at_once_and_restored_later(small):
    data = small | {"copies": [[500, 525]]}
    (step,) = plan(of_document(data, "l.yaml"), "b", 26_000.0)[0].steps
    assert (step.means, step.seconds, step.link_bytes) == ("free", 0, 0)
    assert step.later_seconds == pytest.approx(0.3 * (0.01 + 26_000 / 2e6))


def test_an_inactive_tenants_cold_blocks_are_free(small):
    small["tenants"]["b"]["active"] = False
    (step,) = plan(of_document(small, "l.yaml"), "b", 5_000.0)[0].steps
    assert (step.means, step.blocks) == ("free", 5)


def test_a_low_chance_of_reuse_makes_dropping_cheaper_than_the_fixed_order(small):
    # Offload: 10 ms out a block, back never; evict: 1 % of 16 ms a block.
    ledger = alone(small, session("cold", [[10, 19]], p_reuse=0.01))
    rates = Rates(out=1e5, back=1e5, setup=0.0, recompute=lambda new, cached: new * 1e-3)
    result, _ = plan(ledger, "b", 10_000.0, rates, evict_tail=True)
    assert [s.means for s in result.steps] == ["offload"]
    assert result.cost_seconds == pytest.approx(0.1 + 0.01 * 0.1)
    least = result.least_cost
    assert [s.means for s in least.steps] == ["evict_tail"]
    assert least.cost_seconds == pytest.approx(0.01 * 160 * 1e-3)
    assert least.saves == pytest.approx(result.cost_seconds - least.cost_seconds)
    assert least.method == "exact"


def test_deleting_a_tenant_releases_references_one_by_one_and_the_prefix_is_still_served(small):
    small["sessions"].append(
        {"id": "s3", "tenant": "b", "state": "finished", "tokens": 496, "blocks": [[0, 30]]}
    )
    ledger = of_document(small, "l.yaml")
    seen = [int(ledger.references[20])]
    for name in ("s2", "s3"):
        nothing = np.zeros(0, dtype=np.int64)
        ledger = without_blocks(ledger, nothing, [ledger.sessions.ids.index(name)])
        seen.append(int(ledger.references[20]))
        assert ledger.used[:31].all()
    assert seen == [3, 2, 1]
    _, left = plan(of_document(small, "l.yaml"), "b", everything=True)
    assert left.sessions.ids == ("s1", "s2")  # the finished s3 is forgotten
    assert left.used_bytes == 188_000
    assert left.used[:188].all()


def test_deleting_all_tenants_leaves_only_the_pins(ledger):
    _, without_b = plan(ledger, "b", everything=True)
    _, left = plan(without_b, "a", everything=True, preempt=True)
    assert left.used_bytes == 8_000
    assert left.used[:8].all()


def test_everything_of_a_tenant_lets_go_of_shared_blocks_too(ledger):
    result, after = plan(ledger, "b", everything=True)
    assert result.asked_bytes == 57_000
    assert int(after.references[20]) == 1


def test_to_quota_asks_for_what_is_over_it(small):
    small["tenants"]["b"]["quota"] = "30 kB"
    result, _ = plan(of_document(small, "l.yaml"), "b", to_quota=True)
    assert result.asked_bytes == 41_500 - 30_000
    assert result.freed_blocks == 12
    (charge,) = [item for item in result.charges if item.tenant == "b"]
    assert charge.over == 0


def test_what_waits_must_fit_the_free_blocks_afterwards(small):
    small["pool"]["blocks"] = 526
    small["waiting"] = [{"id": "big", "tokens": 16 * 339}, {"id": "little", "tokens": 16}]
    ledger = of_document(small, "l.yaml")  # 526 - 214 = 312 free
    result, _ = plan(ledger, "b", 26_000.0)
    assert (result.placement.request, result.placement.groups[0].needs) == ("big", 339)
    assert not result.usable_after
    assert result.placement.rebalance.startswith("1 more blocks")
    assert plan(ledger, "b", 26_000.0, waiting_tokens=16 * 338)[0].usable_after


def test_a_hybrid_request_needs_blocks_in_every_group():
    data = {
        "groups": {
            "full": {"tokens": 16, "bytes": 1000},
            "state": {"tokens": 16, "bytes": 4000, "state": True},
        },
        "pool": {"blocks": {"full": 50, "state": 2}},
        "tenants": {"b": {}},
        "sessions": [
            {
                "id": "x",
                "tenant": "b",
                "state": "finished",
                "tokens": 64,
                "blocks": {"full": [[0, 3]], "state": []},
            },
            {
                "id": "y",
                "tenant": "b",
                "state": "running",
                "tokens": 16,
                "blocks": {"full": [4], "state": [0]},
            },
            {
                "id": "z",
                "tenant": "b",
                "state": "running",
                "tokens": 16,
                "blocks": {"full": [5], "state": [1]},
            },
        ],
        "waiting": [{"id": "next", "tokens": 100}],
    }
    result, _ = plan(of_document(data, "h.yaml"), "b", 4_000.0)
    rooms = {room.group: (room.needs, room.free, room.short) for room in result.placement.groups}
    assert rooms == {"full": (7, 48, 0), "state": (1, 0, 1)}
    assert not result.usable_after
    assert "1 more blocks of state (4,000 bytes)" in result.placement.rebalance
    assert "moved to it from the pool of full, which keeps 41,000 bytes free" in result.placement.rebalance
    assert "lie in the wrong group" in result.placement.rebalance


def test_decodes_over_quota_are_preempted_or_let_grow_side_by_side(small):
    small["tenants"]["a"]["quota"] = "100 kB"
    small["sessions"][0]["remaining"] = 500
    result, _ = plan(of_document(small, "l.yaml"), "a", 1_000.0, arrivals=0.5)
    found = result.decodes
    assert found.over == 72_500
    assert found.growth == (219 - 188) * 1_000  # 3,500 tokens are 219 blocks
    assert found.peak == 172_500 + 31_000
    assert found.preempt_sessions == ("s1",)
    assert found.preempt_seconds == pytest.approx((3000 - 496) * 1e-3)
    assert found.grow_seconds == pytest.approx(500 * 0.02)
    assert found.held_back == pytest.approx(5)
    assert found.waited_seconds == pytest.approx(0.5 * 10**2 / 2)
    assert found.verdict.startswith("preempting costs less")


def test_without_rates_a_plan_says_what_it_assumes(ledger):
    book = Notebook()
    rates = rates_of(Given(), ledger, None, (), book)
    assert {source.kind for source in book.sources.values()} == {"assumed"}
    assert len(book.warnings) == 2
    assert rates.recompute(12_500.0, 0.0) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"tenant": "c", "size": 1.0}, "no tenant of ledger.yaml is named 'c'"),
        ({"tenant": "a"}, "one of --bytes, --to-quota and --all"),
        ({"tenant": "a", "size": 1.0, "to_quota": True}, "one of --bytes, --to-quota and --all"),
    ],
)
def test_a_question_without_an_answer_is_refused(ledger, said, message):
    with pytest.raises(SettingsError, match=message):
        reclaim(ledger, Request(**said), RATES, Notebook())
