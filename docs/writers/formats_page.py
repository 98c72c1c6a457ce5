"""docs/formats.md: every storage format of the KV cache, from `kvcalc.shapes.formats`."""

from collections.abc import Sequence

from docs.writers.markdown import code, codes, document, prose, table
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
        "Storage formats of the KV cache",
        "`kvcalc/shapes/formats.py`",
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
    )


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
