"""Reading, refusing and writing ledgers."""

import copy
import json

import jsonschema
import numpy as np
import pytest

from kvcalc.errors import ProfileError
from kvcalc.output import schema
from kvcalc.quota.document import of_document, read_ledger
from kvcalc.quota.writing import document_of, write_ledger


def test_references_follow_from_the_sessions(ledger):
    assert ledger.references[[0, 30, 31, 500]].tolist() == [2, 2, 1, 1]
    assert int(ledger.used.sum()) == 188 + 26  # 0..187, and 500..525 beside the shared 31
    assert ledger.free_blocks() == (1000 - 214,)


@pytest.mark.parametrize("suffix", [".yaml", ".json", ".parquet"])
def test_a_written_ledger_is_read_back(ledger, tmp_path, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow", reason="Parquet is an extra")
    file = tmp_path / f"ledger{suffix}"
    write_ledger(file, ledger)
    again = read_ledger(file)
    for name in ("holder", "block", "pinned", "leased", "copied"):
        assert np.array_equal(getattr(again, name), getattr(ledger, name))
    assert again.tenants == ledger.tenants
    assert again.host == ledger.host
    assert again.sessions.ids == ledger.sessions.ids
    assert np.array_equal(again.sessions.idle, ledger.sessions.idle, equal_nan=True)


def test_a_hybrid_ledger_is_read_back_from_parquet(tmp_path):
    pytest.importorskip("pyarrow", reason="Parquet is an extra")
    ledger = of_document(hybrid(), "hybrid.yaml")
    write_ledger(tmp_path / "h.parquet", ledger)
    again = read_ledger(tmp_path / "h.parquet")
    assert again.groups == ledger.groups
    assert sorted(zip(again.holder, again.block, strict=True)) == sorted(
        zip(ledger.holder, ledger.block, strict=True)
    )


def test_sessions_may_lie_in_a_parquet_file_beside_the_ledger(small, ledger, tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet is an extra")
    import pyarrow.parquet as parquet

    table = pyarrow.table(
        {
            "id": ["s1", "s2"],
            "tenant": ["a", "b"],
            "state": ["running", "suspended"],
            "tokens": [3000, 900],
            "blocks": [list(range(188)), [*range(31), *range(500, 526)]],
        }
    )
    parquet.write_table(table, tmp_path / "sessions.parquet")
    (tmp_path / "l.json").write_text(json.dumps(small | {"sessions": "sessions.parquet"}))
    assert np.array_equal(read_ledger(tmp_path / "l.json").block, ledger.block)


def test_the_shipped_schema_accepts_what_is_read_and_written(small, ledger):
    rules = json.loads((schema.FOLDER / "ledger-1.json").read_text(encoding="utf-8"))
    jsonschema.validate(small, rules)
    jsonschema.validate(document_of(ledger), rules)
    jsonschema.validate(hybrid(), rules)
    for wrong in ({"pool": {"blocks": 0}}, {"sessions": [{"id": "x"}]}, {"colour": "red"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(small | wrong, rules)


def hybrid():
    return {
        "groups": {
            "full": {"tokens": 784, "bytes": 1000},
            "state": {"tokens": 784, "bytes": 3000, "state": True},
        },
        "pool": {"blocks": {"full": 10, "state": 3}},
        "tenants": {"a": {}},
        "sessions": [
            {"id": "x", "tenant": "a", "state": "finished", "tokens": 1000,
             "blocks": {"full": [[0, 1]], "state": [0]}},
            {"id": "y", "tenant": "a", "state": "running", "tokens": 17,
             "blocks": {"full": [2], "state": [1]}},
        ],
    }  # fmt: skip


def edited(small, path, value):
    data = copy.deepcopy(small)
    place = data
    for step in path[:-1]:
        place = place[step]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return data


WRONG = [
    (("sessions", 0, "blocks"), [[0, 1000]], ["sessions[0] (s1)", "block 1000 does not exist"]),
    (("sessions", 0, "blocks"), [[9, 3]], ["s1", "[9, 3] runs backwards"]),
    (("sessions", 0, "blocks"), [[0, 187], 5], ["s1", "block 5 is held twice"]),
    (("sessions", 0, "blocks"), [[0, 20]], ["shared", "block 21", "1 session holds it"]),
    (("sessions", 0, "blocks"), ["x"], ["s1", "block numbers", "'x'"]),
    (("sessions", 0, "blocks"), [[0, 100]], ["s1", "3000 tokens", "188 blocks"]),
    (("sessions", 1, "id"), "s1", ["sessions", "'s1' stands twice"]),
    (("sessions", 1, "tenant"), "bb", ["s2", "tenant", "'bb'", "'b'"]),
    (("sessions", 1, "state"), "suspend", ["s2", "'suspended'"]),
    (("sessions", 1, "tokens"), -1, ["s2", "tokens", "-1"]),
    (("sessions", 1, "p_reuse"), 1.5, ["s2", "p_reuse", "1.5"]),
    (("sessions", 1, "idle"), "-3 s", ["s2", "idle", "-3"]),
    (("sessions", 1, "idle"), 120, ["s2", "idle", "no unit"]),
    (("sessions", 1, "colour"), "red", ["s2", "colour", "unknown key"]),
    (("shared",), [[0, 30], [600, 601]], ["shared", "block 600", "0 sessions hold it"]),
    (("shared",), [[0, 29]], ["shared", "block 30", "s1 and s2"]),
    (("shared",), [{"blocks": [[0, 30]], "references": 3}], ["shared[0]", "3 references", "2 sessions"]),
    (("pinned",), [[0, 1000]], ["pinned", "block 1000 does not exist"]),
    (("pinned",), [3, [2, 4]], ["pinned", "block 3 is listed twice"]),
    (("copies",), [[700, 701]], ["copies", "block 700"]),
    (("tenants", "b", "quota"), "7 kB", ["tenants.b.quota", "7,000", "pinned", "8,000"]),
    (("tenants", "a", "quota"), "-1 GB", ["tenants.a.quota", "-1 GB"]),
    (("tenants", "a", "quota"), 20, ["tenants.a.quota", "no unit"]),
    (("tenants", "a", "qota"), "1 GB", ["tenants.a.qota", "'quota'"]),
    (("tenants", "a", "floor"), "151 kB", ["tenants.a.floor", "above the quota"]),
    (("block", "bytes"), -5, ["block.bytes", "-5"]),
    (("block", "tokens"), 0, ["block.tokens", "0"]),
    (("pool", "blocks"), -1, ["pool.blocks", "-1"]),
    (("pool", "blocks"), {}, ["pool.blocks", "for each group"]),
    (("pool", "blocks"), 10**30, ["pool.blocks", "less than"]),
    (("pool", "dram_watermark"), 1.2, ["pool.dram_watermark", "1.2"]),
    (("pool", "dram_used"), "1 GB", ["pool.dram_used", "more than"]),
    (("tenants",), None, ["tenants", "missing"]),
]


@pytest.mark.parametrize(("path", "value", "said"), WRONG, ids=[f"{w[0]}={w[1]}"[:60] for w in WRONG])
def test_a_ledger_that_contradicts_itself_is_refused_with_file_key_and_id(small, path, value, said):
    with pytest.raises(ProfileError) as caught:
        of_document(edited(small, path, value), "ledger.yaml")
    message = str(caught.value)
    assert message.startswith("ledger.yaml")
    assert "\n" not in message
    assert [part for part in said if part not in message] == []


def test_without_a_list_of_shared_blocks_sharing_follows_from_the_tables(small):
    ledger = of_document(edited(small, ("shared",), None), "ledger.yaml")
    assert int((ledger.references > 1).sum()) == 31


def test_a_pin_behind_a_block_that_is_not_pinned_is_pointed_out(small):
    ledger = of_document(edited(small, ("pinned",), [[4, 7]]), "ledger.yaml")
    assert "block 4 of session s1 is pinned but the block before it is not" in ledger.notes[0]


def test_groups_of_one_pool_must_have_pages_of_one_size():
    data = hybrid() | {"pool": {"blocks": 100}}
    with pytest.raises(ProfileError, match="pages of one size"):
        of_document(data, "hybrid.yaml")


def test_a_quota_may_be_given_in_tokens(small):
    data = edited(small, ("tenants", "a", "quota"), "32k tokens")
    tenant = of_document(data, "ledger.yaml").tenants[0]
    assert tenant.by_tokens
    assert tenant.quota == pytest.approx(32_000 * 1000 / 16)
