"""The options of ``kvcalc quota``: one alias each, and those of a plan to get bytes back as one record."""

from typing import Annotated

import typer

from kvcalc.cli.options import On, Set, Tiers
from kvcalc.records import record

Ledger = Annotated[str, typer.Argument(metavar="LEDGER", help="A ledger: .yaml, .json or .parquet.")]
Rule = Annotated[
    str, typer.Option("--rule", metavar="fractional|owner|full", help="How shared blocks are charged.")
]
Tenant = Annotated[
    str | None, typer.Option("--tenant", metavar="TENANT", help="From whom to get bytes back.")
]
Bytes = Annotated[str | None, typer.Option("--bytes", metavar="BYTES", help="How much, e.g. '10 GB'.")]
ToQuota = Annotated[bool, typer.Option("--to-quota", help="As much as it is over its quota.")]
All = Annotated[bool, typer.Option("--all", help="Everything: the tenant is deleted.")]
EvictTail = Annotated[bool, typer.Option("--evict-tail", help="Allow to drop tails of suspended contexts.")]
Keep = Annotated[
    str | None, typer.Option("--keep", metavar="TOKENS", help="Never evict the first so many tokens [0].")
]
Preempt = Annotated[bool, typer.Option("--preempt", help="Allow to preempt running sessions.")]
NoCompress = Annotated[bool, typer.Option("--no-compress", help="Do not compress past the DRAM watermark.")]
Ratio = Annotated[
    str | None, typer.Option("--compress-ratio", metavar="NUMBER", help="How many times smaller [2].")
]
Request = Annotated[
    str | None,
    typer.Option("--request", metavar="TOKENS", help="Length of the request that waits [the ledger's]."),
]
Arrivals = Annotated[
    str | None,
    typer.Option("--arrivals", metavar="RATE", help="Requests that a closed admission holds back."),
]
Model = Annotated[
    str | None, typer.Option("--model", metavar="MODEL", help="Prices by this model, with --on.")
]
Bandwidth = Annotated[
    str | None, typer.Option("--bandwidth", metavar="RATE", help="Rate of the host link, each way.")
]
Setup = Annotated[
    str | None, typer.Option("--setup", metavar="TIME", help="Lookup and submission of a restore.")
]
PrefillRate = Annotated[
    str | None,
    typer.Option("--prefill-rate", metavar="RATE", help="Prefill speed, e.g. '12000 token/s'."),
]
StepTime = Annotated[
    str | None, typer.Option("--step-time", metavar="TIME", help="One decode step, e.g. '20 ms'.")
]
After = Annotated[
    str | None, typer.Option("--after", metavar="FILE", help="Write the ledger after the plan.")
]
Check = Annotated[
    bool, typer.Option("--check", help="Exit with 1 when the bytes are not reached or not usable.")
]


@record
class ReclaimOptions:
    """How much to get back from whom, what is allowed for it, and what the steps are priced by."""

    tenant: Tenant = None
    bytes: Bytes = None
    to_quota: ToQuota = False
    all: All = False
    rule: Rule = "fractional"
    evict_tail: EvictTail = False
    keep: Keep = None
    preempt: Preempt = False
    no_compress: NoCompress = False
    compress_ratio: Ratio = None
    request: Request = None
    arrivals: Arrivals = None
    model: Model = None
    on: On = None
    tier: Tiers = None
    bandwidth: Bandwidth = None
    setup: Setup = None
    prefill_rate: PrefillRate = None
    step_time: StepTime = None
    set: Set = None
