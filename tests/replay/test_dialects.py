"""Each dialect: recognised from its lines, and its blocks, lengths, times, sessions and tenants."""

import numpy as np
import pytest

from kvcalc.errors import ProfileError, SettingsError
from kvcalc.replay.readers import DIALECTS, dialect_named, is_trace, read_trace
from kvcalc.replay.trace import NOWHERE
from tests.replay.conftest import expanded, found, row


def test_mooncake_counts_a_partial_last_block_and_milliseconds(read):
    trace = read([row([0, 1, 2], 1100, 0, 5), row([0, 1, 3], 1536, 2500, 7)])
    assert (trace.dialect, trace.block_tokens) == ("mooncake", 512)
    assert expanded(trace) == [[0, 1, 2], [0, 1, 3]]
    assert trace.input_tokens.tolist() == [1100, 1536]
    assert trace.output_tokens.tolist() == [5, 7]
    assert trace.time.tolist() == [0.0, 2.5]
    assert found(trace, "partial_last_block").count == 1
    assert found(trace, "chained").count == 4


def test_lengths_can_tell_another_block_size(read):
    trace = read([row([0, 1, 2, 3], 64), row([0, 1, 4], 40)])
    assert trace.block_tokens == 16
    assert found(trace, "block_size_from_lengths").count == 16


def test_blocks_that_most_lines_contradict_are_refused_with_their_line(read):
    with pytest.raises(
        ProfileError, match=r"trace\.jsonl:2: 3 blocks of 512 tokens for an input of 40"
    ) as said:
        read([row([0, 1], 1024), row([0, 1, 4], 40)])
    assert "--trace-block" in str(said.value)


def test_a_block_size_that_is_named_is_held_against_the_lengths(read):
    assert read([row([0, 1], 100)], block_tokens=64).block_tokens == 64
    with pytest.raises(ProfileError, match="2 blocks of 128 tokens for an input of 100"):
        read([row([0, 1], 100)], block_tokens=128)


@pytest.mark.parametrize("said", [None, 512])
@pytest.mark.parametrize("place", [0, 5, 9])
def test_one_line_with_too_many_blocks_can_be_left_out(read, said, place):
    lines = [row([7 * n, 7 * n + 1], 1_000, n, session_id=f"s{n}") for n in range(9)]
    lines.insert(place, row([100, 101, 102], 600, place, session_id="bad"))
    message = rf"trace\.jsonl:{place + 1}: 3 blocks of 512 tokens for an input of 600.*--skip-broken counts"
    with pytest.raises(ProfileError, match=message):
        read(lines, block_tokens=said)
    trace = read(lines, skip_broken=True, block_tokens=said)
    assert (trace.requests, trace.block_tokens, trace.accesses, trace.unique_blocks) == (9, 512, 18, 18)
    assert "bad" not in trace.sessions
    assert trace.session.tolist() == list(range(9))
    assert found(trace, "broken_lines").lines == (place + 1,)


def test_a_line_of_another_block_size_is_the_one_that_is_named(read):
    small = [row(list(range(10 * n, 10 * n + 4)), 60, n) for n in range(6)]
    with pytest.raises(ProfileError, match=r":4: 2 blocks of 16 tokens for an input of 1,000"):
        read([*small[:3], row([900, 901], 1_000, 9), *small[3:]])


def test_input_without_blocks_is_told(read):
    trace = read([row([0], 5000), row([0, 1], 1024)])
    assert found(trace, "uncovered_input").warning
    assert found(trace, "uncovered_input").lines == (1,)


def test_delta_lines_continue_their_session(read):
    lines = [
        row([7], 16, 0, 4, session_id="a"),
        row([9, 10], 600, 10, 4, session_id="a", delay=5),
        row([7], 16, 20, session_id="b", delay=5),
    ]
    trace = read(lines)
    assert trace.dialect == "mooncake-delta"
    assert expanded(trace) == [[0], [0, 1, 2], [0]]
    assert trace.input_tokens.tolist() == [16, 16 + 4 + 600, 16]
    assert trace.block_weight.tolist() == [16, 512, 88]
    assert found(trace, "delta").warning


@pytest.mark.parametrize("first", [8, 40])
def test_delta_lines_are_seen_however_many_sessions_begin_before_one_goes_on(read, first):
    lines = [row([100 * one], 512, one, session_id=f"s{one}") for one in range(first)]
    lines += [row([100 * one + 1], 512, session_id=f"s{one}", delay=1_000) for one in range(first)]
    trace = read(lines)
    assert trace.dialect == "mooncake-delta"
    assert trace.input_tokens.tolist() == [512] * first + [1_024] * first
    assert expanded(trace)[first:] == [[one, first + one] for one in range(first)]
    assert read(lines, dialect="mooncake").input_tokens.tolist() == [512] * 2 * first


def test_a_broken_line_before_the_first_delta_is_counted_once(read):
    lines = [row([100 * one], 512, one, session_id=f"s{one}") for one in range(9)]
    trace = read([*lines, row([1], -1), row([7], 512, session_id="s0", delay=9)], skip_broken=True)
    assert (trace.dialect, found(trace, "broken_lines").lines) == ("mooncake-delta", (10,))


def test_full_lines_with_a_session_are_no_delta(read):
    lines = [row([7], 500, session_id="a"), row([7, 8], 600, session_id="a", delay=5)]
    trace = read(lines)
    assert trace.dialect == "mooncake"
    assert trace.sessions == ("a",)


def bailian(chat, parent, ids, tokens, time=0.0, kind="text"):
    line = {"chat_id": chat, "parent_chat_id": parent, "timestamp": time, "type": kind, "turn": 1}
    return {**line, "input_length": tokens, "output_length": 3, "hash_ids": ids}


def test_bailian_links_requests_to_conversations(read):
    lines = [
        bailian(5, -1, [0, 1], 32, 0.5),
        bailian(9, 5, [0, 1, 2], 40, 1.5),
        bailian(11, 9, [0, 1, 2, 3], 64, 2.5, "search"),
        bailian(12, 77, [0], 16, 3.0),
    ]
    trace = read(lines)
    assert (trace.dialect, trace.block_tokens) == ("bailian", 16)
    assert trace.session.tolist() == [0, 0, 0, 1]
    assert trace.tenants == ("text", "search")
    assert trace.time.tolist() == [0.5, 1.5, 2.5, 3.0]
    assert found(trace, "parents_outside").count == 1


def test_weka_lines_are_runs_of_ids(read):
    line = {"block_size": 64, "t": 1.5, "in": 200, "out": 3, "session": "x", "tenant": "m"}
    trace = read([{**line, "hash_ids": [[1, 3]]}, {**line, "in": 330, "hash_ids": [[1, 2], [3, 1], [9, 2]]}])
    assert (trace.dialect, trace.block_tokens) == ("weka-lines", 64)
    assert expanded(trace) == [[0, 1, 2], [0, 1, 2, 3, 4]]
    assert len(trace.run_first) == 2
    assert found(trace, "dropped_last_block").count == 2


def weka(name, requests, **more):
    return {"id": name, "models": ["m"], "block_size": 64, "requests": requests, **more}


def call(t, ids, **more):
    return {"t": t, "type": "n", "model": "m", "in": 64 * len(ids), "out": 1, "hash_ids": ids, **more}


def test_weka_sessions_have_ids_of_their_own_and_nested_agents(read):
    agent = {"t": 10.0, "type": "subagent", "requests": [call(0.5, [1, 5]), call(1.5, [1, 5, 6])]}
    later = {"t": 20.0, "type": "subagent", "requests": [call(20.5, [1, 7])]}
    lines = [weka("a", [call(0.0, [1, 2]), agent, later]), weka("b", [call(0.0, [1, 2])])]
    trace = read(lines, session_every=100.0)
    assert trace.dialect == "weka"
    assert expanded(trace) == [[0, 1], [0, 2], [0, 2, 3], [0, 4], [5, 6]]
    assert trace.time.tolist() == [0.0, 10.5, 11.5, 20.5, 100.0]
    assert trace.session.tolist() == [0, 0, 0, 0, 1]
    assert trace.agent.tolist() == [0, 1, 1, 2, 0]
    assert trace.tenants == ("m",)
    assert found(trace, "nested_agents").count == 2
    assert found(trace, "session_starts").warning


def test_weka_sessions_with_global_ids_share_blocks(read):
    lines = [weka(name, [call(0.0, [1, 2])], hash_id_scope="global") for name in "ab"]
    assert expanded(read(lines)) == [[0, 1], [0, 1]]


def test_a_weka_file_is_one_document(read):
    text = (
        "{\n" + '"id": "a", "block_size": 64,\n"requests": [{"t": 0, "in": 64, "out": 1, "hash_ids": [4]}]}'
    )
    trace = read([text], name="trace_0001.json")
    assert (trace.requests, trace.block_tokens) == (1, 64)


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path, read):
    read([weka("b", [call(0.0, [1, 2])])], name="2.json")
    read([weka("a", [call(0.0, [1])])], name="1.json")
    from kvcalc.replay.readers import read_trace

    trace = read_trace(str(tmp_path))
    assert trace.sessions == ("a", "b")
    assert trace.request_blocks.tolist() == [1, 2]


@pytest.fixture
def components(tmp_path):
    lengths = {
        "1_sys_prompt": ("sys_prompt_id", {1: 100, 2: 30}),
        "2_passages": ("passage_id", {10: 50, 11: 60}),
        "3_history": ("history_id", {20: 5}),
        "4_user_input": ("user_input_id", {30: 7, 31: 8}),
        "5_web_search": ("web_search_id", {40: 9}),
    }
    for name, (key, tokens) in lengths.items():
        lines = "".join(f'{{"{key}": {one}, "token_length": {count}}}\n' for one, count in tokens.items())
        (tmp_path / f"{name}.jsonl").write_text(lines)


def rag(system, passages, question, time="5", history=()):
    parts = {"sys_prompt": system, "passages_ids": passages, "history": list(history), "user_input": question}
    tokens = {"timestamp": time, "input_length": 200, "output_length": 2, "session_id": "s"}
    return {**tokens, "hash_ids": {**parts, "web_search": []}}


@pytest.mark.usefixtures("components")
def test_ragpulse_ids_are_no_chain_hashes(read):
    trace = read([rag([1, 2], [10, 11], [30]), rag([1, 2], [11, 10], [31], "7")])
    assert (trace.dialect, trace.block_tokens) == ("ragpulse", 0)
    assert expanded(trace) == [[0, 1, 2, 3, 4], [0, 1, 5, 6, 7]]
    assert trace.block_weight.tolist() == [100, 30, 50, 60, 7, 60, 50, 8]
    # Passages 10 and 11 under both of their ids.
    assert trace.component[2] == trace.component[6]
    assert trace.component[3] == trace.component[5]
    assert trace.input_tokens.tolist() == [247, 248]
    assert found(trace, "not_chained").warning
    assert found(trace, "lengths_differ").count == 2
    # Prefix hits: components 1 and 2, 130 of 495 tokens; component hits: the passages as well, 110 more.
    assert f"{130 / 495:.4f}" in found(trace, "prefix_or_component").text
    assert f"{240 / 495:.4f}" in found(trace, "prefix_or_component").text


@pytest.mark.usefixtures("components")
def test_a_component_without_a_length_is_refused(read):
    with pytest.raises(ProfileError, match=r"trace\.jsonl:1: .*component 99 has no length"):
        read([rag([1], [99], [30])])


@pytest.mark.usefixtures("components")
def test_a_ragpulse_folder_is_one_trace_and_its_lengths(read, tmp_path):
    lines = [rag([1, 2], [10, 11], [30]), rag([1, 2], [11, 10], [31], "7")]
    alone = read(lines, "0_trace.jsonl")
    folder = read_trace(str(tmp_path))
    assert (folder.dialect, folder.requests) == ("ragpulse", 2)
    assert expanded(folder) == expanded(alone)
    assert is_trace(str(tmp_path))


def test_ragpulse_needs_its_lengths(read):
    with pytest.raises(ProfileError, match=r"1_sys_prompt.jsonl must lie beside it"):
        read([rag([1], [10], [30])])


def ended(identity, hashes, tokens, time, **more):
    request = {"request_id": identity, "output_tokens": 2, "request_received_ms": time}
    replay = {"trace_block_size": 4, "input_length": tokens, "input_sequence_hashes": hashes}
    event = {"schema": "dynamo.request.trace.v1", "event_type": "request_end", "event_time_unix_ms": time + 5}
    return {**event, **more, "request": {**request, "replay": replay}}


def test_dynamo_takes_the_ends_of_requests(read):
    big = 2**64 - 3
    lines = [
        {"event_type": "request_payload", "request_id": "one"},
        ended("one", [big, 12], 7, 1000, agent_context={"session_id": "p"}),
        {"event": ended("two", [big, 13], 8, 900)},
    ]
    trace = read(lines)
    assert (trace.dialect, trace.block_tokens) == ("dynamo", 4)
    assert expanded(trace) == [[0, 1], [0, 2]]
    assert trace.time.tolist() == [1.0, 0.9]
    assert trace.session.tolist() == [0, NOWHERE]
    assert found(trace, "other_events").count == 1
    assert found(trace, "out_of_order").lines == (3,)


def agentic(play, ids, **more):
    line = {"request_id": f"{play}{ids}", "play_id": play, "session_id": f"{play}-root", "model": "m"}
    return {
        **line,
        "input_length": 4 * len(ids),
        "output_length": 2,
        "hash_ids": ids,
        "not_before_ms": 0,
        **more,
    }


def head(scope="local", **more):
    return {
        "schema": "dynamo.agentic_mooncake",
        "version": 2,
        "block_size": 4,
        "hash_id_scope": scope,
        **more,
    }


@pytest.mark.parametrize(("scope", "expected"), [("local", [[0, 1], [2, 3]]), ("global", [[0, 1], [0, 1]])])
def test_dynamo_plays_share_ids_only_where_the_header_says_so(read, scope, expected):
    trace = read(
        [head(scope), agentic("a", [5, 6]), agentic("b", [5, 6], dependencies=[{"request_id": "a"}])]
    )
    assert trace.dialect == "dynamo-agentic"
    assert expanded(trace) == expected
    assert found(trace, "dependent_starts").count == 1


def test_dynamo_needs_a_header_it_knows(read):
    with pytest.raises(ProfileError, match="version: 3 is not known"):
        read([head() | {"version": 3}, agentic("a", [5])])
    with pytest.raises(ProfileError, match="header line"):
        read([agentic("a", [5])], dialect="dynamo-agentic")


def test_applied_compute_lengths_become_growing_chains(read):
    line = {
        "num_turns": 2,
        "input_prompt_length": 40,
        "assistant_response_length": [4, 4],
        "tool_call_output_length": [20, 8],
        "tool_call_latency": [0.5, 2.0],
        "final_assistant_response_length": 9,
    }
    trace = read([line, line])
    assert trace.dialect == "applied-compute"
    assert trace.input_tokens.tolist() == [40, 64, 76] * 2
    assert expanded(trace) == [[0, 1], [0, 1, 2, 3], [0, 1, 2, 3], [4, 5], [4, 5, 6, 7], [4, 5, 6, 7]]
    assert trace.time.tolist() == [0.0, 0.5, 2.5] * 2
    assert found(trace, "made_of_lengths").warning


def test_token_ids_are_hashed_with_all_before_them(read):
    lines = [
        {"input_tok_ids": [1, 2, 3, 4, 5], "output_tok_ids": [6, 7], "arrival_time_ns": 2_000_000_000},
        {"input_tok_ids": [1, 2, 9, 4], "output_toks": 3, "arrival_time_ns": 3_000_000_000},
        {"input_tok_ids": [9, 9, 3, 4]},
    ]
    trace = read(lines, block_tokens=2)
    assert (trace.dialect, trace.block_tokens) == ("tokens", 2)
    assert expanded(trace) == [[0, 1, 2], [0, 3], [4, 5]]
    assert trace.output_tokens.tolist() == [2, 3, 0]
    assert trace.time[:2].tolist() == [2.0, 3.0]
    assert np.isnan(trace.time[2])
    assert found(trace, "some_times").lines == (3,)
    assert found(trace, "partial_last_block").count == 1


@pytest.mark.parametrize(
    ("times", "unit", "expected"),
    [
        ((5, 7), None, 2.0),
        ((1_700_000_000, 1_700_000_002), None, 2.0),
        ((1_700_000_000_000, 1_700_000_002_500), None, 2.5),
        ((1_700_000_000_000_000, 1_700_000_002_500_000), None, 2.5),
        ((1_700_000_000 * 10**9, 1_700_000_003 * 10**9), None, 3.0),
        ((5_000, 7_000), "ms", 2.0),
    ],
)
def test_times_without_a_unit_are_told_by_their_size(read, times, unit, expected):
    trace = read([{"text": "hello", "timestamp": time} for time in times], time_unit=unit)
    assert np.diff(trace.time).tolist() == pytest.approx([expected])
    assert (found(trace, "time_unit") is None) == (unit is not None)


def test_a_dialect_with_a_unit_takes_no_other(read):
    with pytest.raises(SettingsError, match="mooncake has a unit of its own"):
        read([row([0], 512)], time_unit="s")


def test_times_may_be_dates(read):
    lines = [{"tokens": [1], "timestamp": f"2026-06-01T05:40:2{second}.500Z"} for second in (0, 3)]
    assert np.diff(read(lines).time).tolist() == [3.0]


def test_texts_are_hashed_at_four_bytes_a_token(read):
    messages = [{"role": "user", "content": "hello"}, {"role": "tool", "content": [{"text": "x"}]}]
    lines = [
        {"input": "abcdefgh12345678", "output": "yes!!", "session_id": "s", "timestamp": 1.0},
        {"input": "abcdefghXXXX", "timestamp": 2.0},
        {"messages": messages, "timestamp": 3.0},
    ]
    trace = read(lines, block_tokens=2)
    assert trace.dialect == "text"
    assert expanded(trace)[:2] == [[0, 1], [0, 2]]
    # user\nhello\ntool\nx\n: 18 bytes, 5 tokens.
    assert trace.input_tokens.tolist() == [4, 3, 5]
    assert trace.output_tokens.tolist() == [2, 0, 0]
    assert found(trace, "estimated_tokens").warning


def stored(hashes, parent=None, **more):
    return {
        "type": "BlockStored",
        "block_hashes": hashes,
        "parent_block_hash": parent,
        "block_size": 16,
        **more,
    }


def test_kv_events_become_chains_of_stored_blocks(read):
    lines = [
        {"ts": 1.0, "events": [stored([11, 12])]},
        {"ts": 2.0, "events": [stored([13], 12), {"type": "BlockRemoved", "block_hashes": [13]}]},
        {"ts": 3.0, "events": [stored([14], 12), stored([99], None, medium="CPU")]},
        [4.0, [["BlockStored", [15], 77, [], 16, None, "GPU"], ["AllBlocksCleared"]]],
    ]
    trace = read(lines)
    assert (trace.dialect, trace.block_tokens) == ("kv-events", 16)
    # The second event continues the first; the third branches off block 12 and has its chain as prefix.
    assert expanded(trace) == [[0, 1, 2], [0, 1, 3], [4, 5]]
    assert trace.input_tokens.tolist() == [48, 48, 32]
    assert trace.time.tolist() == [1.0, 3.0, 4.0]
    assert (found(trace, "removals").count, found(trace, "other_pools").count) == (2, 1)
    assert found(trace, "lost_parents").count == 1


def test_a_block_that_is_stored_again_is_a_second_request(read):
    trace = read([{"ts": 1.0, "events": [stored(["a", "b"])]}, {"ts": 2.0, "events": [stored(["b"], "a")]}])
    assert expanded(trace) == [[0, 1], [0, 1]]


def test_hashes_as_texts_and_runs_of_ids_work_in_any_dialect(read):
    assert expanded(read([row(["x", "y"], 1024), row(["x", "z"], 1000)])) == [[0, 1], [0, 2]]
    assert expanded(read([row([[0, 2]], 1024), row([[0, 1], [2, 1]], 1000)])) == [[0, 1], [0, 2]]


def test_every_dialect_can_be_named_and_says_what_it_reads():
    for kind in DIALECTS:
        assert dialect_named(kind.name) is kind
        assert kind.says
    with pytest.raises(SettingsError, match="did you mean 'mooncake'"):
        dialect_named("moncake")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("TIMESTAMP,ContextTokens,GeneratedTokens", "no block hashes"),
        ({"TIMESTAMP": "x", "ContextTokens": 5}, "Azure's trace has lengths but no block hashes"),
        ({"newly_append_tokens": 5, "prefix_tokens": 4}, "TraceLab has lengths"),
        ({"a": 1}, "no known dialect \\(columns a\\)"),
        ([1, 2], "not a JSON object"),
    ],
)
def test_what_is_no_trace_of_blocks_is_refused(read, line, message):
    with pytest.raises(ProfileError, match=message):
        read([line])


def test_token_lines_that_say_another_length_than_they_have_are_counted(read):
    lines = [{"input_tok_ids": [1, 2, 3], "input_toks": said} for said in (3, 3, 5)]
    trace = read(lines)
    assert trace.input_tokens.tolist() == [3, 3, 3]
    assert found(trace, "lengths_differ").count == 1
    assert found(trace, "lengths_differ").warning
    assert found(read(lines[:2]), "lengths_differ") is None
    with pytest.raises(ProfileError, match="input_toks: -1 is negative"):
        read([{"input_tok_ids": [1, 2, 3], "input_toks": -1}])
