"""docs/accuracy.md: how often kvcalc equals each source of truth, as the tests recorded it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docs.writers import scatter
from docs.writers.markdown import code, document, escape, table
from docs.writers.offload_section import offload_blocks
from docs.writers.pictures import Picture
from docs.writers.prefill_section import prefill_blocks

RECORD = Path(__file__).resolve().parents[1] / "accuracy.json"
MEMORY = RECORD.with_name("available_memory.json")


@dataclass(frozen=True, slots=True)
class Oracle:
    """A source of truth: what stands in it, what is compared, and when a row counts as equal."""

    title: str
    truth: str
    compared: str
    equal: str


EXACT = "to the byte"
CORPUS = "a corpus of real config.json files"
LOG = "within half of the last printed digit; whole numbers exactly"
FITTED = (
    "As above, but one setting that the log does not state was chosen to match. These rows support a "
    "formula and "
    "are no independent test."
)
RESTORES = (
    "published measurements of vLLM, LMCache, llm-d, Mooncake and others; the odd rows were fitted on, the "
    "even ones are compared"
)
WITHIN = "within 30 %, which counts as equal here; see [how far to trust it](#how-far-to-trust-the-restores)"

ORACLES = {
    "corpus": Oracle(
        "Files understood",
        CORPUS,
        "whether a file is understood in full; the others are refused by name, never sized with another "
        "formula",
        "understood",
    ),
    "transformers-cache": Oracle(
        "KV bytes that transformers allocates",
        f"transformers 5.24 builds each model of {CORPUS} without weights and runs it forward at several "
        "lengths; "
        "the tensors of its cache are summed",
        "all bytes of the cache at every length, with `--engine transformers`",
        EXACT,
    ),
    "transformers-slope": Oracle(
        "KV bytes a token, and constant bytes, of transformers",
        "as above",
        "bytes of a further token beyond every window, and bytes of full windows and states",
        EXACT,
    ),
    "vllm": Oracle(
        "Blocks and concurrency of vLLM on Hopper",
        "vLLM 0.33's own sizing code over the corpus: 40 GiB, TP 1, 2, 4 and 8, KV auto and fp8",
        "bytes of a block, blocks, tokens, sequences at once, smallest block",
        EXACT,
    ),
    "vllm-blackwell": Oracle(
        "Blocks and concurrency of vLLM on Blackwell",
        "as above, on compute capability 10",
        "as above",
        EXACT,
    ),
    "vllm-states": Oracle(
        "Recurrent states of one rank under vLLM",
        "the state shapes and precisions in the same run",
        "elements of convolution and recurrence on each rank, and whether they are fp32",
        "exactly",
    ),
    "logs-vllm": Oracle(
        "Numbers that vLLM servers printed",
        "public logs of real servers, vLLM 0.5 to 0.33",
        "GPU and CPU blocks, KV tokens, concurrency, needed memory, longest context, block sizes",
        LOG,
    ),
    "logs-vllm-fitted": Oracle("Numbers of vLLM servers, fitted", FITTED, "as above", "as above"),
    "logs-sglang": Oracle(
        "Sizes that SGLang servers printed", "public logs of real servers", "sizes of each buffer", LOG
    ),
    "logs-sglang-fitted": Oracle("Sizes of SGLang servers, fitted", FITTED, "as above", "as above"),
    "logs-llama.cpp": Oracle(
        "Sizes that llama.cpp printed", "public logs of real runs", "cells and sizes of each buffer", LOG
    ),
    "transformers-parameters": Oracle(
        "Parameters",
        "the modules that transformers 5.24 builds",
        "parameters of the whole model",
        "exactly",
    ),
    "transformers-active": Oracle(
        "Active parameters", "as above", "parameters that one token passes through", "exactly"
    ),
    "vllm-weights": Oracle(
        "Weight bytes of one rank",
        "the weights that vLLM 0.33 allocates on each rank, TP 1, 2, 4 and 8",
        "bytes of a rank, quantized checkpoints included",
        "within 1 %; vLLM adds scales and padding of its own",
    ),
    "offload-ttft_pair": Oracle(
        "Restores, whole",
        RESTORES,
        "time to the first token of a hit, its own prefill included, by the model alone",
        WITHIN,
    ),
    "offload-restore_only": Oracle("Restores without a recompute beside them", RESTORES, "as above", WITHIN),
    "offload-ratio": Oracle(
        "Restores as a share of the recompute",
        RESTORES,
        "modelled restore over modelled recompute",
        WITHIN,
    ),
    "offload-transfer": Oracle(
        "Transfers from prefill to decode workers", RESTORES, "time of the transfer", WITHIN
    ),
    "offload-bandwidth_vs_block": Oracle(
        "Bandwidth by the size of a piece", RESTORES, "bytes per second of copies", WITHIN
    ),
    "offload-throughput_vs_hit": Oracle(
        "Throughput by the share of hits", RESTORES, "prompt tokens per second of a batch", WITHIN
    ),
}
"""The name that a test records under -> what stands behind it, in the order of the page."""


PICTURES = (
    (scatter.SIZES, "Bytes of the cache under transformers, and tokens or blocks of a pool under vLLM"),
    (scatter.WEIGHTS, "Parameters, and bytes of the weights on one rank"),
    (scatter.MEMORIES, "Memory that vLLM left for KV, and buffers that SGLang and llama.cpp printed"),
    (scatter.RESTORES, "Times of restores and transfers, and rates"),
    (
        scatter.PREFILLS,
        "Times to the first token, and prefill alone, by GPU; only rows that were not fitted on",
    ),
)


def pictures() -> dict[str, Picture]:
    """Return the pictures by file name."""
    return scatter.pictures()


def page() -> str:
    """Return the page."""
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    known = [name for name in ORACLES if name in record]
    rows = [_row(name, record[name]) for name in known]
    return document(
        "Accuracy",
        "`docs/accuracy.json`, which `pytest tests/truth --record-accuracy` writes",
        "What kvcalc says, against what engines and libraries themselves allocate or print. Nothing here "
        "was typed "
        "by hand: the tests that compare write the counts, and fail when a count is no longer what they "
        "measure.",
        "*Excused* rows differ for a known reason: the other side did something else, kvcalc does not "
        "count a part, or it "
        "refuses. Each is listed below. *Missed* rows differ without a reason. Row names are files of "
        "the corpus, or the model and address "
        "of a log.",
        table(["compared with", "rows", "equal", "excused", "missed"], rows, "lrrrr"),
        "## Predicted against real",
        "Each point is a row that was compared, on the line where both are equal or beside it; rows that "
        "would lie on each other are drawn once. Off the line lie the excused rows, which are listed below "
        "with their reasons, and times and memory that are modelled. The points are in "
        "`accuracy_points.json`, `prefill_accuracy.json` and `available_memory.json`, which the tests write.",
        *(block for file, what in PICTURES for block in (f"{what}:", f"![{what}]({file})")),
        *(block for name in known for block in _details(name, record[name])),
        *_memory(),
        *offload_blocks(),
        *prefill_blocks(),
        "## What is not measured",
        "- Other times. Decode times are modelled, and shown as a range; see "
        "[hardware.md](hardware.md) for how each share is known.\n"
        "- The parts of memory besides weights and KV, one by one. They are modelled and assumed; `--pool` "
        "replaces them.\n"
        "- Attention families for which no engine could be run and no log is known. Their bytes are "
        "worked by hand "
        "from the model's source, and held by tests.",
    )


def _row(name: str, found: Mapping[str, Any]) -> list[str]:
    title = ORACLES[name].title
    counts = (found["compared"], found["equal"], len(found["excused"]), len(found["misses"]))
    return [f"[{title}](#{name.replace('.', '')})", *(f"{count:,}" for count in counts)]


def _details(name: str, found: Mapping[str, Any]) -> list[str]:
    oracle = ORACLES[name]
    facts = (("Truth", oracle.truth), ("Compared", oracle.compared), ("Equal", oracle.equal))
    blocks = [
        f"## {name}",
        f"{oracle.title}: {found['equal']:,} of {found['compared']:,} rows are equal.",
        "\n".join(f"- **{word}:** {text}" for word, text in facts),
    ]
    unequal = [[escape(row), escape(why)] for row, why in found["excused"].items()]
    unequal += [[escape(row), "**missed**"] for row in found["misses"]]
    if unequal:
        blocks.append(table([f"rows that differ ({code(name)})", "why"], unequal))
    return blocks


def _memory() -> list[str]:
    """Return what was left for KV in logs beside what the memory model leaves, where that was recorded."""
    if not MEMORY.exists():
        return []
    found = json.loads(MEMORY.read_text(encoding="utf-8"))
    return [
        "## Memory left for KV",
        f"vLLM prints how much memory is left for KV. Over {found['counted']} logs that name GPU, model "
        "and version, the "
        f"memory model is off by {found['median']:.1%} in the median and {found['worst']:.1%} at worst, "
        "at each "
        "version's defaults. Rows that leave the GPU or the checkpoint open are shown and not counted.",
        table(
            ["model", "GPU", "TP", "log", "printed", "modelled", "off", "counted", "why"],
            map(_memory_row, found["rows"]),
            "llrlrrrll",
        ),
    ]


def _memory_row(row: Mapping[str, Any]) -> list[str]:
    log = f"[log]({row['log']})" if row["log"].startswith("http") else escape(row["log"])
    known = row["predicted_gib"] is not None
    modelled, off = (f"{row['predicted_gib']:g} GiB", f"{row['residual']:+.1%}") if known else ("-", "-")
    why = escape(row["why"] or "")
    if "utilization" in row:
        why += f" (with {row['utilization']:g}: {row['residual_at_it']:+.1%})"
    who = [escape(row["model"]), escape(row["gpu"]), str(row["tp"]), log]
    return [*who, f"{row['logged_gib']:g} GiB", modelled, off, "yes" if row["counted"] else "no", why]
