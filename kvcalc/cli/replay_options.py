"""The options of ``kvcalc replay`` that say what to replay, one field each."""

from typing import Annotated

import typer

from kvcalc.cli.options import On, Set
from kvcalc.records import record
from kvcalc.replay.policies import ALWAYS, CHOICES
from kvcalc.replay.semantics import WORDS

Text = str | None
Texts = list[str] | None

_BESIDE = f"{', '.join(ALWAYS[:-1])} and {ALWAYS[-1]}: {', '.join(CHOICES)}"


def _words(switch: str) -> str:
    return "|".join(WORDS[switch])


TraceFile = Annotated[
    str, typer.Argument(metavar="TRACE", help="Requests with block ids: .jsonl, .jsonl.gz, or a folder.")
]
ChartFile = Annotated[
    Text, typer.Option("--chart-file", metavar="FILE", help="Draw the misses into a .png or .svg file.")
]
Capacities = Annotated[
    Texts,
    typer.Option(
        "--capacity",
        metavar="SIZE",
        help="Of the cache: '5859 blocks', '16Mi tokens', '40 GB', or '10 %' of all blocks. Repeatable.",
    ),
]
Policies = Annotated[Texts, typer.Option("--policy", metavar="NAME", help=f"Beside {_BESIDE}. Repeatable.")]
Touch = Annotated[str, typer.Option("--touch", metavar=_words("touch"), help="Block touched first.")]
Oversize = Annotated[
    str,
    typer.Option("--oversize", metavar=_words("oversize"), help="A request longer than the cache."),
]
Weight = Annotated[
    str, typer.Option("--weight", metavar=_words("weight"), help="What hit rates are shares of.")
]
PartialBlock = Annotated[
    str,
    typer.Option("--partial-block", metavar=_words("partial_block"), help="A last block that is not full."),
]
Output = Annotated[
    str, typer.Option("--output", metavar=_words("output"), help="Generated tokens, for the next turn.")
]
Warmup = Annotated[
    str, typer.Option("--warmup", metavar="SHARE", help="First requests that are not counted.")
]
Lookup = Annotated[
    str, typer.Option("--lookup", metavar=_words("lookup"), help="A request at once, or by block.")
]
Order = Annotated[
    str, typer.Option("--order", metavar=_words("order"), help="By arrival, or as in the file.")
]
Hits = Annotated[
    str, typer.Option("--hits", metavar=_words("hits"), help="Up to the first miss, or all blocks.")
]
Refine = Annotated[
    Text,
    typer.Option("--refine", metavar="TOKENS", help="Upper estimate for finer blocks of so many tokens."),
]
SharedPrefix = Annotated[
    Text,
    typer.Option("--shared-prefix", metavar="TOKENS", help="That all requests share, for --refine [0]."),
]
BytesPerToken = Annotated[Text, typer.Option("--bytes-per-token", metavar="BYTES", help="KV of one token.")]
SlowerTiers = Annotated[
    Texts,
    typer.Option(
        "--tier",
        metavar="NAME=SIZE[@RATE]",
        help="A slower tier behind the cache: 'dram=512 GB'; with --on 'dram=512 GB@54 GB/s'. Repeatable.",
    ),
]
Inclusion = Annotated[str, typer.Option("--inclusion", metavar="inclusive|exclusive", help="Of the tiers.")]
Write = Annotated[
    Text,
    typer.Option(
        "--write",
        metavar="write_through|selective|write_back",
        help="When a block goes to the next tier [write_through; exclusive: write_back].",
    ),
]
Quota = Annotated[
    str, typer.Option("--quota", metavar="shared|floor|hard", help="How tenants share the cache.")
]
Shares = Annotated[
    Texts,
    typer.Option(
        "--tenant-quota", metavar="NAME=SHARE", help="A tenant's part of the cache [equal]. Repeatable."
    ),
]
RulesFile = Annotated[
    Text, typer.Option("--rules", metavar="FILE", help="A kv_eviction file, for policy rules.")
]
Sample = Annotated[
    Text, typer.Option("--sample", metavar="BLOCKS", help="Follow so many blocks at most, chosen by hash.")
]
Workers = Annotated[
    Text, typer.Option("--workers", metavar="N", help="Processes to use [as the work needs].")
]
Scheduler = Annotated[
    Text,
    typer.Option("--scheduler", metavar="ADDRESS", help="A Dask scheduler, e.g. tcp://host:8786."),
]
Model = Annotated[
    Text, typer.Option("--model", metavar="MODEL", help="A model, whose layout gives the bytes.")
]


@record
class ReplayOptions:
    """What the caches are, how the trace is read as requests, and whose bytes and times count."""

    capacity: Capacities = None
    policy: Policies = None
    touch: Touch = WORDS["touch"][0]
    oversize: Oversize = WORDS["oversize"][0]
    weight: Weight = WORDS["weight"][0]
    partial_block: PartialBlock = WORDS["partial_block"][0]
    output: Output = WORDS["output"][0]
    warmup: Warmup = "0"
    lookup: Lookup = WORDS["lookup"][0]
    order: Order = WORDS["order"][0]
    hits: Hits = WORDS["hits"][0]
    refine: Refine = None
    shared_prefix: SharedPrefix = None
    bytes_per_token: BytesPerToken = None
    tier: SlowerTiers = None
    inclusion: Inclusion = "inclusive"
    write: Write = None
    quota: Quota = "shared"
    tenant_quota: Shares = None
    rules: RulesFile = None
    sample: Sample = None
    workers: Workers = None
    scheduler: Scheduler = None
    model: Model = None
    on: On = None
    set: Set = None
