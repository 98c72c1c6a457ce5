"""Random traces for hypothesis: trees of requests that go on, branch, repeat and end inside others."""

from hypothesis import strategies as st

from kvcalc.replay.trace import build_trace


@st.composite
def requests(draw, most=14, longest=5):
    """Draw requests as lists of block ids whose blocks always have the same predecessor."""
    known, found, following = [[]], [], 0
    for _ in range(draw(st.integers(1, most))):
        base = draw(st.sampled_from(known))
        shared = base[: draw(st.integers(0, len(base)))]
        new = draw(st.integers(0 if shared else 1, longest))
        request = shared + list(range(following, following + new))
        following += new
        found.append(request)
        known.append(request)
    return found


@st.composite
def traces(draw, **bounds):
    """Draw a trace, its last blocks not always full; requests with one chain have one length."""
    found = draw(requests(**bounds))
    block = draw(st.sampled_from((1, 4, 16)))
    ends = {}
    for request in found:
        ends.setdefault(request[-1], draw(st.integers(1, block)))
    inner = {block_id for request in found for block_id in request[:-1]}
    inputs = [
        (len(request) - 1) * block + (block if request[-1] in inner else ends[request[-1]])
        for request in found
    ]
    names = draw(st.lists(st.sampled_from("abc"), min_size=len(found), max_size=len(found)))
    return build_trace(found, block, input_tokens=inputs, tenants=names, sessions=names)


def lists(trace):
    """Return the requests of a trace as lists of ids."""
    runs = list(zip(trace.run_first.tolist(), trace.run_blocks.tolist(), strict=True))
    spans = zip(trace.run_start[:-1], trace.run_start[1:], strict=True)
    return [[block for first, count in runs[a:b] for block in range(first, first + count)] for a, b in spans]
