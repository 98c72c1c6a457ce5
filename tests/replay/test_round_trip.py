"""The same requests written in every dialect are the same trace."""

import json
from itertools import groupby

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvcalc.replay.readers import Asked, read_trace
from kvcalc.replay.trace import build_trace
from tests.replay.conftest import expanded

SIZE = 8
"""Tokens of a block."""

# Each request is a word; its blocks are its prefixes, so that equal ids mean equal prefixes.
words = st.lists(st.text("abc", min_size=1, max_size=6), min_size=1, max_size=8)


def ids_of(words):
    known = {}
    return [[known.setdefault(word[: end + 1], len(known)) for end in range(len(word))] for word in words]


def coded(ids):
    """Return ids as runs [first, count]."""
    runs = []
    for _, group in groupby(enumerate(ids), key=lambda item: item[1] - item[0]):
        part = [block for _, block in group]
        runs.append([part[0], len(part)])
    return runs


def mooncake(ids):
    for place, one in enumerate(ids):
        yield {
            "timestamp": 1000 * place,
            "input_length": SIZE * len(one),
            "hash_ids": one,
            "block_size": SIZE,
        }


def bailian(ids):
    for place, one in enumerate(ids):
        about = {"chat_id": place, "parent_chat_id": -1, "timestamp": place, "turn": 1}
        yield {**about, "input_length": SIZE * len(one), "output_length": 1, "hash_ids": one}


def weka_lines(ids):
    for place, one in enumerate(ids):
        yield {"t": place, "in": SIZE * len(one), "out": 1, "block_size": SIZE, "hash_ids": coded(one)}


def weka(ids):
    calls = [{"t": place, "in": SIZE * len(one), "out": 1, "hash_ids": one} for place, one in enumerate(ids)]
    yield {"id": "s", "block_size": SIZE, "hash_id_scope": "local", "requests": calls}


def dynamo(ids):
    for place, one in enumerate(ids):
        hashes = [2**63 + 7919 * block for block in one]
        replay = {"trace_block_size": SIZE, "input_length": SIZE * len(one), "input_sequence_hashes": hashes}
        request = {"request_received_ms": 1000 * place, "output_tokens": 1, "replay": replay}
        yield {"schema": "dynamo.request.trace.v1", "event_type": "request_end", "request": request}


def agentic(ids):
    yield {"schema": "dynamo.agentic_mooncake", "version": 2, "block_size": SIZE, "hash_id_scope": "local"}
    for place, one in enumerate(ids):
        about = {"request_id": str(place), "play_id": "p", "session_id": "s", "not_before_ms": 1000 * place}
        yield {**about, "input_length": SIZE * len(one), "output_length": 1, "hash_ids": one}


def hashes_as_text(ids):
    for row in mooncake(ids):
        yield {**row, "hash_ids": [f"h{block}" for block in row["hash_ids"]]}


WRITERS = {
    one.__name__: one for one in (mooncake, bailian, weka_lines, weka, dynamo, agentic, hashes_as_text)
}
quiet = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)


@pytest.mark.parametrize("name", WRITERS)
@quiet
@given(words)
def test_every_dialect_tells_the_same_trace(tmp_path, name, words):
    file = tmp_path / "t.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in WRITERS[name](ids_of(words))))
    # Bailian's lines do not say their block size, and single blocks fit many.
    found = read_trace(str(file), asked=Asked(block_tokens=SIZE))
    expected = build_trace(ids_of(words), SIZE)
    assert expanded(found) == expanded(expected)
    assert found.block_tokens == SIZE
    assert found.input_tokens.tolist() == expected.input_tokens.tolist()
    assert found.time.tolist() == [float(place) for place in range(len(words))]


@quiet
@given(words)
def test_token_ids_give_the_chains_that_hashes_would(tmp_path, words):
    file = tmp_path / "t.jsonl"
    tokens = [[ord(letter) for letter in word for _ in range(SIZE)] for word in words]
    file.write_text("".join(json.dumps({"prompt_token_ids": one}) + "\n" for one in tokens))
    found = read_trace(str(file), asked=Asked(block_tokens=SIZE))
    assert expanded(found) == expanded(build_trace(ids_of(words), SIZE))
