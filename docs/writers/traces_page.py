"""docs/traces.md: the formats of request traces that are read, and what is checked in each."""

from collections.abc import Iterable

from docs.writers.markdown import code, document, prose, table
from kvcalc.replay.readers import DIALECTS, bailian, dynamo, kv_events, mooncake, ragpulse, tokens, weka

SOURCES = (mooncake, bailian, weka, ragpulse, dynamo, tokens, kv_events)
"""One module a family of dialects, in the order of the page."""


def page() -> str:
    """Return the page."""
    return document(
        "Traces of requests",
        "`kvcalc/replay/readers`",
        "`kvcalc replay TRACE`, `kvcalc plan --trace TRACE` and the `arrivals: {trace: FILE}` of `kvcalc "
        "evict simulate` read these files: plain, gzip or zstd (extra `zstd`), by what they hold and not "
        "by their names; a folder is read as one trace, in the order of its file names (in a folder of "
        "RAGPulse the five files of component lengths are no requests). The dialect is "
        "told from the first lines; `--dialect` names it. Lines are read one at a time, with `orjson` "
        "where it is installed (extra `fast`).",
        prose(
            "Figure 9 of Mooncake's FAST'25 paper is replayed with `kvcalc replay "
            "mooncake_conversation_trace.jsonl --refine 16 --shared-prefix 880 --touch head "
            "--oversize thrash`, and that of its synthetic trace without a shared prefix."
        ),
        "## Dialects",
        table(["`--dialect`", "what a line has", "tokens of a block"], _dialects(), "lll"),
        "## What each reader says",
        *(block for module in SOURCES for block in _module(module)),
        "## What is checked",
        prose(
            "Every id must be a chain hash: always behind the same block, so that it stands for a whole "
            "prefix. Where ids are not (RAGPulse's are not, nor hashes of single blocks), each is taken "
            "together with all before it, and the report says so, with the share that a cache of single "
            "components would hit beside the share that a prefix cache hits."
        ),
        prose(
            "Told as well, with counts and first lines: times out of order, times that several requests "
            "share, last blocks that are not full, input that no block covers, ids twice in a request, "
            "requests without blocks, sessions without start times, tokens that are estimates."
        ),
        prose(
            "Refused, with file, line and key: lines that are not JSON, missing or negative lengths, block "
            "ids that are neither numbers nor texts, another block size than the lines before, more blocks "
            "than the input has, empty files and compressed files that are cut off. `--skip-broken` counts "
            "such lines, says so, and goes on. Traces with lengths alone (Azure, BurstGPT, TraceLab) are "
            "refused by name: what a cache hits cannot be known from them."
        ),
        "## What only the user knows",
        prose(
            "Times of token ids and texts have no fixed unit: numbers as large as times since 1970 are "
            "taken for those, in seconds, milliseconds, microseconds or nanoseconds, others for seconds, "
            "and the report says which; `--time-unit` says it. Nested WEKA sessions have no start: all "
            "start at once, or `--session-every` after each other, which decides what a finite cache hits. "
            "`--trace-block` gives the tokens of a block where the file does not and its lengths fit "
            "several."
        ),
        "## In the engine's blocks",
        prose(
            "With `--model` hits are counted in blocks that the engine can hold. Its larger blocks, such "
            "as the hundreds of tokens of hybrids, are put together from the trace's: two requests share "
            "as many as their shared blocks prove. Of finer blocks a trace says nothing, so that its own "
            "are kept and hits are a lower bound, which the report says. Replays in blocks of different "
            "sizes are never compared."
        ),
    )


def _dialects() -> Iterable[list[str]]:
    for kind in DIALECTS:
        size = f"{kind.usual_block}, or as the lengths say" if kind.usual_block else "as the file says"
        yield [code(kind.name), prose(kind.says), _SIZES.get(kind.name, size)]


_SIZES = {
    "ragpulse": "a length each",
    "mooncake-delta": f"{mooncake.Mooncake.usual_block}, the last of a line partial",
    "tokens": f"`--trace-block`, else {tokens.USUAL_BLOCK}",
    "text": f"`--trace-block`, else {tokens.USUAL_BLOCK}; {tokens.BYTES_PER_TOKEN} bytes a token",
    "applied-compute": f"`--trace-block`, else {dynamo.AGENT_BLOCK}",
}


def _module(module: object) -> Iterable[str]:
    text = str(module.__doc__).strip()
    head, _, rest = text.partition("\n\n")
    yield prose(" ".join(head.split()))
    if rest:
        yield prose(" ".join(rest.split()))
