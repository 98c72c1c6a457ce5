"""What `quota show` says, with every figure worked by hand."""

from pathlib import Path

import pytest

from kvcalc.quota.api import show_file
from kvcalc.quota.document import of_document
from kvcalc.quota.show import show

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "ledgers"


def rows(result):
    return {row.tenant: row for row in result.rows}


def test_three_rules_charge_a_shared_prefix_of_31_blocks(ledger):
    result, _ = show(ledger)
    a, b = rows(result)["a"], rows(result)["b"]
    assert (a.blocks, b.blocks) == (188, 57)
    assert (a.charged_full, b.charged_full) == (188_000, 57_000)
    assert (a.charged_owner, b.charged_owner) == (188_000, 26_000)  # s1 stands first in the file
    assert (a.charged_fractional, b.charged_fractional) == (172_500, 41_500)  # 157 + 31/2, 26 + 31/2
    assert a.charged_fractional + b.charged_fractional == result.pool.used == 214_000
    assert result.rule == "fractional"
    assert result.pool.saved_by_sharing == 31_000


def test_references_count_and_not_tenants(small):
    small["sessions"].append(
        {"id": "s3", "tenant": "b", "state": "finished", "tokens": 496, "blocks": [[0, 30]]}
    )
    result, _ = show(of_document(small, "ledger.yaml"))
    assert rows(result)["b"].charged_fractional == pytest.approx(26_000 + 31_000 * 2 / 3)


def test_a_pinned_prefix_is_used_but_never_reclaimable(ledger):
    row = rows(show(ledger)[0])["b"]
    assert row.pinned == 8_000
    assert row.unreclaimable == 31_000  # eight pinned, the others shared
    assert (row.free, row.offload, row.preempt) == (0, 26_000, 0)
    assert row.compress == 13_000
    alone = rows(show(ledger)[0])["a"]
    assert (alone.preempt, alone.unreclaimable) == (157_000, 31_000)


def test_a_thousand_sessions_of_17_tokens_take_two_thousand_blocks_of_16():
    data = {
        "block": {"tokens": 16, "bytes": 16},
        "pool": {"blocks": 3000},
        "tenants": {"a": {}},
        "sessions": [
            {"id": i, "tenant": "a", "state": "suspended", "tokens": 17, "blocks": [[2 * i, 2 * i + 1]]}
            for i in range(1000)
        ],
    }
    (row,) = show(of_document(data, "short.yaml"))[0].rows
    assert (row.blocks, row.tokens, row.resident_tokens) == (2000, 17_000, 17_000)
    assert (row.used, row.token_bytes, row.unfilled) == (32_000, 17_000, 15_000)
    assert row.fragmentation == 15_000 / 32_000


@pytest.mark.parametrize("pool", [{"blocks": 2000}, {"blocks": {"full": 1000, "window": 1000}}])
def test_a_hybrid_model_with_blocks_of_784_shows_a_thousand_blocks_a_group(pool):
    shared = isinstance(pool["blocks"], int)
    data = {
        "groups": {
            "full": {"tokens": 784, "bytes": 784},
            "window": {"tokens": 784, "bytes": 784, "window": 4096},
        },
        "pool": pool,
        "tenants": {"a": {}},
        "sessions": [
            {"id": i, "tenant": "a", "state": "running", "tokens": 17,
             "blocks": {"full": [i], "window": [1000 + i if shared else i]}}
            for i in range(1000)
        ],
    }  # fmt: skip
    result, _ = show(of_document(data, "hybrid.yaml"))
    assert [group.blocks for group in result.groups] == [1000, 1000]
    assert result.rows[0].tokens == 17_000
    assert result.rows[0].unfilled == 2 * 1000 * (784 - 17)


def test_the_figures_of_the_domain_come_out_of_the_example_ledgers():
    seven, _ = show_file(EXAMPLES / "batch-7b.yaml")
    assert seven.bytes_per_token == 57_344  # 56 KiB: 28 layers x 2 x 4 heads x 128 x 2 bytes
    assert seven.pool.used == 60_129_542_144  # 60.13 GB, 56.0 GiB
    assert seven.pool.used == 56 * 2**30
    big, _ = show_file(EXAMPLES / "contexts-72b.yaml")
    assert big.bytes_per_token == 327_680  # 320 KiB
    assert big.pool.used == 40 * 2**30 == 42_949_672_960
    fit = {row.tenant: row.fit_p95 for row in big.admission}
    assert fit == {"four": None, "decimal": 14, "binary": 16}


def test_promises_beyond_the_pool_are_said(small):
    small["tenants"] = {
        "a": {"quota": "800 kB", "floor": "700 kB"},
        "b": {"quota": "700 kB", "floor": "500 kB"},
    }
    result, _ = show(of_document(small, "ledger.yaml"))
    assert (result.pool.quotas, result.pool.bytes) == (1_500_000, 1_000_000)
    assert result.pool.oversubscription == 1.5
    assert any("1.5 times the pool" in warning for warning in result.warnings)
    assert any("floors add up to 1.2 times" in warning for warning in result.warnings)


def test_a_tenant_over_quota_is_said(small):
    small["tenants"]["a"]["quota"] = "100 kB"
    result, _ = show(of_document(small, "ledger.yaml"))
    assert rows(result)["a"].over == 72_500
    assert "a is over quota" in result.warnings


def test_a_quota_in_tokens_does_not_count_the_gap(small):
    # s1: 188 blocks x 16 = 3,008 slots with 3,000 tokens, half of 31 shared blocks: 172,500 - 8 x 62.5 B
    small["tenants"]["a"]["quota"] = "1000 tokens"
    result, _ = show(of_document(small, "ledger.yaml"))
    assert rows(result)["a"].over == pytest.approx(172_500 - 8 * 62.5 - 62_500)


def test_a_soft_quota_overshoots_by_what_arrives_between_two_checks(small):
    small["tenants"]["b"] |= {"kind": "soft", "arrivals": "2/s", "check": "5 s"}
    (row,) = [row for row in show(of_document(small, "ledger.yaml"))[0].admission if row.tenant == "b"]
    assert row.length_p50 == 900
    assert row.session_bytes_p50 == 57_000  # 57 blocks
    assert row.fit_p50 == 1  # 60 kB / 57 kB
    assert row.overshoot == 2 * 57_000 * 5


def test_a_busy_neighbour_takes_the_hits_of_a_quiet_one_unless_a_floor_keeps_them(small):
    small["tenants"] = {
        "a": {"writes": "90 kB/s", "reuse_gap": "1 s"},
        "b": {"writes": "1 kB/s", "floor": "60 kB", "reuse_gap": "30 s"},
    }
    result, _ = show(of_document(small, "ledger.yaml"))
    loud, quiet = result.neighbours
    assert loud.survives_shared == pytest.approx(992 / 91)  # pool less pins, over what both write
    assert (loud.hits_shared, quiet.hits_shared) == (True, False)
    assert (quiet.survives_floor, quiet.hits_floor) == (60, True)
    assert any("its own floor would keep it" in warning for warning in result.warnings)
