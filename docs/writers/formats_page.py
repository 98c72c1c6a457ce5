"""docs/formats.md: every storage format, of the KV cache and of weights."""

from collections.abc import Sequence

from docs.writers.markdown import code, codes, document, prose, table
from kvcalc.parameters.formats import NAMED
from kvcalc.parameters.ggml import HEAD, MIXTURES, TYPES
from kvcalc.shapes.formats import ENGINES, FORMATS, Format, RowBytes, Side, slot_bytes

WIDTH = 128
"""Width of the head that the first table counts."""

LATENTS = {"512 + 64": (512, 64), "448 + 64": (448, 64)}
"""Widths of latent and rotary part: DeepSeek V2 to V3.2, and V4."""

PLAIN = ("bf16", "fp8_e4m3")
"""Formats that latent rows have too, for comparison."""


def page() -> str:
    """Return the page."""
    per_head = [form for form in FORMATS if not form.latent_only]
    latent = [form for form in FORMATS if form.latent_only or form.name in PLAIN]
    return document(
        "Storage formats of the KV cache and of weights",
        "`kvcalc/shapes/formats.py`, `kvcalc/parameters/formats.py` and `kvcalc/parameters/ggml.py`",
        "*Payload* is the values alone. *Stored* adds scales and padding, all that occupies memory or is "
        "sent. "
        "`--kv-dtype` takes the name or one of its other spellings; llama.cpp takes keys and values "
        "apart with "
        "`--k-type` and `--v-type`.",
        f"## One KV head of {WIDTH} values, one token",
        "Bytes. A slot is the key and the value of one head together; where a format rounds slots up, "
        "the slot is "
        "more than the sum of its rows.",
        table(
            [
                *("format", "key payload", "key stored", "value payload", "value stored"),
                *("slot stored", "bits a value", "engines", "other spellings"),
            ],
            map(_head_row, per_head),
            "lrrrrrrll",
        ),
        "## One latent row of multi-head latent attention, one token",
        "Bytes of the latent and its rotary part together, `payload / stored`.",
        table(
            ["format", *LATENTS, "engines"],
            [[code(form.name), *_latent(form), codes(_engines(form))] for form in latent],
            "lrrl",
        ),
        "## Where the figures come from",
        table(["format", "source"], [[code(form.name), prose(form.source)] for form in FORMATS]),
        "## Weights",
        "What `--weights-dtype` takes. The first names hold for the matrices that engines quantize; "
        "embeddings, output head, routers and norms stay in 16 bits.",
        table(["format", "bits a value, without scales"], _weights(), "lr"),
        "The types of ggml hold for every matrix, as `llama-quantize --pure` writes them, with routers and "
        "norms in fp32. Rows that their blocks do not divide fall back to smaller ones, as in llama.cpp.",
        table(["type", "values a block", "bytes a block", "bits a value"], _blocks(), "lrrr"),
        "The mixtures of `llama-quantize`, without an importance matrix, keep the output head in "
        f"{code(HEAD)} and give more bits to some of the matrices: {codes(MIXTURES)}. For Llama "
        "3.1 8B their sizes equal those that llama.cpp prints (it lists no `q3_k_m`). Its "
        "exceptions for 70B models and for mixtures of 8 experts are left out, less than 1 % of a file.",
    )


def _weights() -> list[list[str]]:
    return [[code(form.name), f"{form.bits:g}"] for form in NAMED.values()]


def _blocks() -> list[list[str]]:
    return [
        [code(name), str(kind.block), str(kind.size), f"{8 * kind.size / kind.block:g}"]
        for name, kind in TYPES.items()
    ]


def _head_row(form: Format) -> list[str]:
    key, value = form.packing("key").row(1, WIDTH), form.packing("value").row(1, WIDTH)
    slot = slot_bytes(form.name, [("key", 1, WIDTH), ("value", 1, WIDTH)])
    numbers = (
        key.payload,
        key.stored,
        value.payload,
        value.stored,
        slot.stored,
        slot.stored * 8 / (2 * WIDTH),
    )
    return [
        code(form.name),
        *(f"{number:g}" for number in numbers),
        codes(_engines(form)),
        codes(form.aliases),
    ]


def _latent(form: Format) -> list[str]:
    rows: list[Sequence[tuple[Side, float, int]]] = [
        [("key", 1, latent), ("rope", 1, rope)] for latent, rope in LATENTS.values()
    ]
    return [_pair(slot_bytes(form.name, row)) for row in rows]


def _pair(size: RowBytes) -> str:
    return f"{size.payload:g} / {size.stored:g}"


def _engines(form: Format) -> Sequence[str]:
    """Return the engines that take a format, in the order in which all are listed."""
    return [engine for engine in ENGINES if engine in form.engines]
