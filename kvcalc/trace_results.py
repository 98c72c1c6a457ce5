"""What a plan says of a trace that was replayed at its own capacities."""

from typing import Annotated

from kvcalc.quantity import Bytes, Count, PerSecond, Seconds, Share, Tokens
from kvcalc.records import record

ALL, BEYOND, NOTHING = "all", "beyond", "nothing"
Adds = Annotated[str, (ALL, BEYOND, NOTHING)]
"""What a place keeps beside faster ones: blocks they do not hold, the same and more, or just the same."""


@record
class TraceLevel:
    """Everything up to one place that keeps prompts: the GPUs, or a tier with all that is faster."""

    place: str  # gpu, or the tier's name
    capacity: Bytes | None  # of this place alone, for the whole replica; null: nobody says, taken as endless
    capacity_tokens: Tokens | None  # of prompts that it keeps, for the whole replica
    adds: Adds  # beside faster places: all of it, what is beyond them, or nothing
    hit_rate_tokens: Share  # of the input, hit here or faster
    own_rate_tokens: Share  # of the input, hit here and not faster
    requests_with_hits: Share  # of all requests, here or faster
    ttft_mean: Seconds  # to the first token, by the models of this plan, without waiting
    recompute_avoided: Seconds  # of prefill, over the trace


@record
class HitChoice:
    """One way to say what hits, and what it means for the tiers."""

    source: Annotated[str, ("trace", "said", "default")]  # replayed, by options or the scenario, or neither
    hit: Share  # of the prompt, for requests that hit
    hit_rate: Share  # of the requests
    hit_rate_tokens: Share  # of all input: both together
    verdicts: tuple[str, ...]  # one a tier: its name and verdict


@record
class TraceHits:
    """Hit rates that were replayed, beside those that the plan would have assumed."""

    trace: str  # its file
    dialect: str  # whose format it is
    requests: Count  # of the trace
    block_tokens: Tokens | None  # in which hits are counted; null where blocks differ
    request_rate: PerSecond | None  # of the trace; null without times
    infinite_hit_rate_tokens: Share  # of the input, where nothing is ever evicted
    levels: tuple[TraceLevel, ...]  # fastest first
    assumed: HitChoice  # without the trace
    replayed: HitChoice  # what the plan goes by
    ttft_mean_without: Seconds  # where nothing is cached
    findings: tuple[str, ...]  # what was found in the file and changes the meaning of the numbers
