import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kvcalc.engines import EngineSettings, lay_out
from kvcalc.engines.inverse import longest_context, most_sequences, smallest_pool
from kvcalc.errors import DomainError
from kvcalc.shapes.components import Component, Growth, ModelShape, Tensor
from kvcalc.shapes.families.attention import kv_component

GIB = 2**30
STATE = (Tensor("state", 2, 64, storage="state"),)

growths = st.one_of(
    st.just(Growth("linear")),
    st.builds(Growth, st.sampled_from(["window", "chunk"]), st.integers(2, 60)),
    st.builds(Growth, st.just("strided"), st.integers(2, 9)),
)


@st.composite
def layouts(draw):
    """Draw a small model of one to three kinds of layers under some engine and block size."""
    parts = [
        kv_component("part", range(start, start + 1), draw(st.sampled_from([1, 2])), 16, 16, 2, growth)
        for start, growth in enumerate(draw(st.lists(growths, min_size=1, max_size=3)))
    ]
    if draw(st.booleans()):
        parts.append(Component("recurrent", (len(parts),), STATE, Growth("constant", 1)))
    shape = ModelShape("small", "small", tuple(parts), len(parts), 32, 2, 1000)
    engine = draw(st.sampled_from(["generic", "sglang", "llama.cpp", "transformers"]))
    block = draw(st.sampled_from([None, 1, 7, 16]))
    return lay_out(shape, EngineSettings(engine=engine, block_size=block))


@given(layouts(), st.floats(0, 200_000), st.integers(1, 5))
def test_longest_context_is_what_trying_every_length_finds(layout, size, sequences):
    found = longest_context(layout, size, sequences)
    tried = range(1, 700)
    fitting = [tokens for tokens in tried if float(layout.occupied(tokens)) * sequences <= size]
    best = max(fitting, default=0)
    if found is None or found >= tried.stop:
        assert best == tried.stop - 1
    else:
        assert found == best


@given(layouts(), st.floats(0, 200_000), st.integers(1, 300))
def test_most_sequences_is_what_adding_one_by_one_finds(layout, size, tokens):
    one = float(layout.occupied(tokens))
    assume(one > 0)
    count = 0
    while one * (count + 1) <= size:
        count += 1
    assert most_sequences(layout, size, tokens) == count


@given(layouts(), st.integers(1, 300), st.integers(1, 20))
def test_the_smallest_pool_holds_what_was_asked_and_not_a_byte_less(layout, tokens, sequences):
    size = smallest_pool(layout, tokens, sequences)
    assume(size > 0)  # a row per group of tokens, and no whole group yet
    assert most_sequences(layout, size, tokens) == sequences
    assert most_sequences(layout, size - 1, tokens) == sequences - 1
    assert layout.sessions(size, tokens) == sequences
    longest = longest_context(layout, size, sequences)
    assert longest is None or longest >= tokens


def dense(layers, heads, query_heads):
    part = kv_component("full_attention", range(layers), heads, 128, 128, query_heads)
    return lay_out(ModelShape("d", "llama", (part,), layers, 1, query_heads, 131072), EngineSettings())


def test_seventy_two_billion():
    layout = dense(80, 8, 64)  # 327,680 bytes per token
    assert smallest_pool(layout, 32_768, 4) == 40 * GIB
    assert most_sequences(layout, 160e9, 32_768) == 14
    assert longest_context(layout, 40 * GIB, 4) == 32_768
    assert longest_context(layout, 40 * GIB - 1, 4) == 32_767
    assert longest_context(layout, 327_679) == 0


def test_a_full_window_is_not_charged_again():
    # 1 full and 5 window layers of 64 tokens: 128 bytes a row, so 64 rows of 5 and then rows of 1
    parts = (
        kv_component("full_attention", range(1), 2, 16, 16, 2),
        kv_component("sliding_window", range(1, 6), 2, 16, 16, 2, Growth("window", 64)),
    )
    layout = lay_out(ModelShape("w", "w", parts, 6, 1, 2, 4096), EngineSettings())
    assert longest_context(layout, 5 * 64 * 128 + 1000 * 128) == 1000


def test_a_state_has_no_longest_context():
    part = Component("recurrent", (0,), STATE, Growth("constant", 1))
    layout = lay_out(ModelShape("s", "s", (part,), 1, 1, 0, None), EngineSettings())
    assert longest_context(layout, GIB) is None
    assert longest_context(layout, 1) == 0
    assert most_sequences(layout, 1000 * 2 * 64 * 2, 10**9) == 1000


def test_no_session_fits_in_memory_that_the_weights_have_overdrawn():
    assert dense(1, 1, 16).sessions(-1e9, 100) == 0


@pytest.mark.parametrize("ask", [{"tokens": 0}, {"tokens": 1, "sequences": 0}])
def test_counts_must_be_positive(ask):
    with pytest.raises(DomainError, match="must be at least 1, got 0"):
        smallest_pool(dense(1, 1, 1), **ask)
