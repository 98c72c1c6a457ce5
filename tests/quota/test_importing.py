"""Ledgers of events and of traces."""

import json

import numpy as np
import pytest

from kvcalc.errors import ProfileError, SettingsError
from kvcalc.quota.importing import Wanted, import_file


def stored(hashes, parent=None, medium="GPU", **said):
    return {
        "type": "BlockStored",
        "block_hashes": hashes,
        "parent_block_hash": parent,
        "token_ids": [],
        "block_size": 16,
        "medium": medium,
        **said,
    }


def load(tmp_path, lines, **wanted):
    file = tmp_path / "events.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in lines))
    return import_file(file, Wanted("1 kB", **wanted))


def chains(ledger):
    return {
        name: ledger.block[ledger.holder == index].tolist() for index, name in enumerate(ledger.sessions.ids)
    }


def test_chains_share_the_prefix_that_they_have_in_common(tmp_path):
    ledger = load(tmp_path, [stored([1, 2, 3]), stored([4, 5], parent=2)])
    assert chains(ledger) == {"chain-3": [0, 1, 2], "chain-5": [0, 1, 3, 4]}
    assert ledger.references.tolist() == [2, 2, 1, 1, 1]
    assert ledger.sessions.tokens.tolist() == [48, 64]


def test_removed_blocks_are_gone_and_their_numbers_are_used_again(tmp_path):
    removed = {"type": "BlockRemoved", "block_hashes": [3], "medium": "GPU"}
    ledger = load(tmp_path, [stored([1, 2, 3]), removed, stored([7], parent=2)])
    assert chains(ledger) == {"chain-7": [0, 1, 2]}
    cleared = load(tmp_path, [stored([1, 2]), {"type": "AllBlocksCleared"}, stored([9])])
    assert chains(cleared) == {"chain-9": [0]}


def test_a_copy_in_a_lower_tier_is_a_copy(tmp_path):
    ledger = load(tmp_path, [stored([1, 2, 3]), stored([1, 2], medium="CPU"), stored([8], medium="CPU")])
    assert ledger.copied.tolist() == [0, 1]


def test_batches_as_msgspec_writes_them_and_events_by_time(tmp_path):
    lines = [
        [1.0, [["BlockStored", [1, 2], None, [], 16, None, "GPU"]]],
        {"ts": 5.0, "events": [stored([3], parent=2)]},
        {"ts": 9.0, "events": [stored([4], parent=3)]},
    ]
    ledger = load(tmp_path, lines, at="6 s")
    assert chains(ledger) == {"chain-3": [0, 1, 2]}
    assert ledger.sessions.idle.tolist() == [1.0]


def test_salts_and_adapters_are_tenants(tmp_path):
    ledger = load(
        tmp_path, [stored([1], cache_salt="x"), stored([2], lora_name="y"), stored([3])], quota="1 GB"
    )
    assert [tenant.name for tenant in ledger.tenants] == ["_default", "x", "y"]
    assert {tenant.quota for tenant in ledger.tenants} == {1e9}


def test_a_trace_leaves_what_plain_lru_keeps_leaves_first(tmp_path):
    # Four blocks: [1 2 3] then [1 4 5]; 3 and then 2, the leaves of the first, make room.
    lines = [
        {"timestamp": 0, "input_length": 3, "output_length": 1, "hash_ids": [1, 2, 3]},
        {"timestamp": 1000, "input_length": 3, "output_length": 1, "hash_ids": [1, 4, 5]},
        {"timestamp": 5000, "input_length": 1, "output_length": 1, "hash_ids": [9]},
    ]
    ledger = load(tmp_path, lines, blocks="4", at="2 s")
    assert sorted(len(chain) for chain in chains(ledger).values()) == [2, 3]
    assert int(ledger.used.sum()) == 4
    assert np.unique(ledger.sessions.idle).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("lines", "wanted", "message"),
    [
        ([{"type": "BlockSaved"}], {}, r"events.jsonl:1: unknown event 'BlockSaved'"),
        (
            [stored([1]), {"type": "BlockRemoved", "block_hashes": [2]}],
            {},
            "events.jsonl:2: .*2 was never stored",
        ),
        ([stored([1]), stored([2]) | {"block_size": 32}], {}, "events.jsonl:2: block_size: 32"),
        ([stored("x")], {}, "expected a list of hashes"),
        ([stored([1, 2, 3])], {"blocks": "2"}, "--blocks: 2 are fewer than the 3"),
        ([stored([1])], {"blocks": "many"}, "--blocks: expected a whole number"),
        ([{"timestamp": "a", "hash_ids": [1]}], {}, "events.jsonl:1: timestamp"),
        ([7], {}, "events.jsonl:1: expected an event"),
    ],
)
def test_what_is_no_event_is_refused(tmp_path, lines, wanted, message):
    with pytest.raises((ProfileError, SettingsError), match=message):
        load(tmp_path, lines, **wanted)
