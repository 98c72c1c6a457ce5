"""Hit counters by source: who served the tokens, what moved, and whether both agree."""

from collections.abc import Iterator
from dataclasses import dataclass

from kvcalc.errors import DomainError
from kvcalc.formulas.queueing import link_utilization
from kvcalc.launch.checks.check import Finding
from kvcalc.wording import size_text

TOLERANCE = 0.02
"""Relative difference up to which counters agree [1]: they are read one after another while a server
runs; five published runs that were stopped first close exactly."""


UNATTRIBUTED = Finding(
    "error",
    "no hits by source: an improvement cannot be attributed to a tier below the GPU",
    "read vllm:external_prefix_cache_hits beside vllm:prefix_cache_hits",
)
"""What is said of a gain whose hits nobody counted by where they came from."""


@dataclass(frozen=True)
class Counters:
    """What a server counted between two moments; None where it was not read.

    Tokens as vLLM counts them: `prefix_*` in the GPU's own prefix cache, `external_*` in tiers below.
    """

    prefix_queries: float  # tokens looked up
    prefix_hits: float  # of these, found on the GPU
    external_queries: float | None = None  # tokens looked up below it
    external_hits: float | None = None  # of these, found there
    load_bytes: float | None = None  # copied to the GPUs
    load_time: float | None = None  # while copies ran [second]
    interval: float | None = None  # between the two moments [second]

    @property
    def passed_on(self) -> float:
        """Tokens that the GPU did not have and that are looked up below."""
        return self.prefix_queries - self.prefix_hits

    @property
    def recomputed(self) -> float | None:
        """Tokens that no tier had; None without counters of the tiers."""
        if self.external_hits is None:
            return None
        return self.passed_on - self.external_hits

    @property
    def bandwidth(self) -> float | None:
        """Bytes over the time that copies ran [byte/second]; None where either was not read."""
        if not self.load_bytes or not self.load_time:
            return None
        return self.load_bytes / self.load_time


def audit(
    counters: Counters, bytes_per_token: float, link: float | None = None, links: int = 1
) -> tuple[Finding, ...]:
    """Return what the counters contradict.

    Parameters
    ----------
    counters : what was counted
    bytes_per_token : KV of one token as it is stored, all ranks together [byte/token]
    link : what one link to the host delivers [byte/second]; None leaves bandwidths unchecked
    links : how many links the bytes came over

    Raises
    ------
    DomainError
        If more tokens hit than were looked up.
    """
    if counters.prefix_hits > counters.prefix_queries:
        raise DomainError("prefix_hits exceeds prefix_queries: the counters are not of one interval")
    return (*_sources(counters), *_bytes(counters, bytes_per_token), *_rates(counters, link, links))


def _sources(counters: Counters) -> Iterator[Finding]:
    passed_on, hits = counters.passed_on, counters.external_hits
    asked = counters.external_queries
    if asked is not None and abs(asked - passed_on) > TOLERANCE * max(passed_on, 1.0):
        yield Finding(
            "error",
            f"external queries are {asked:,.0f} and the GPU passed on {passed_on:,.0f} tokens "
            f"({counters.prefix_queries:,.0f} looked up less {counters.prefix_hits:,.0f} hits): not one "
            "interval, or not one deployment",
            "read all counters at the same two moments",
        )
    if hits is None:
        yield UNATTRIBUTED
    elif hits == 0 and counters.prefix_hits > 0:
        yield Finding(
            "error",
            f"all {counters.prefix_hits:,.0f} hits are the GPU's own and none came from below: what was "
            "measured is the GPU's prefix cache",
            "a working set larger than the GPU's pool, or a reset of the GPU's cache alone",
        )
    elif hits < counters.prefix_hits:
        share = hits / (hits + counters.prefix_hits)
        yield Finding(
            "warning",
            f"{share:.1%} of the hit tokens came from below the GPU: most of what is gained is the GPU's own",
            "compare with the tier off and the same GPU hits",
        )
    recomputed = counters.recomputed
    if recomputed is not None and recomputed < -TOLERANCE * max(passed_on, 1.0):
        yield Finding(
            "error",
            f"{hits:,.0f} external hits exceed the {passed_on:,.0f} tokens that were passed on",
            "read all counters at the same two moments",
        )


def _bytes(counters: Counters, bytes_per_token: float) -> Iterator[Finding]:
    if counters.load_bytes is None or counters.external_hits is None:
        return
    expected = counters.external_hits * bytes_per_token
    if abs(counters.load_bytes - expected) > TOLERANCE * max(expected, bytes_per_token):
        ratio = counters.load_bytes / expected if expected else float("inf")
        yield Finding(
            "error",
            f"{counters.load_bytes:,.0f} bytes were loaded and {counters.external_hits:,.0f} external hits "
            f"take {expected:,.0f} at {bytes_per_token:,.0f} bytes a token: {ratio:.3g} times as many",
            "whole slots, TP copies and padding count in some metrics; divide by the layout first",
        )


def _rates(counters: Counters, link: float | None, links: int) -> Iterator[Finding]:
    rate = counters.bandwidth
    if link is None:
        return
    if rate is not None and rate > link * links:
        yield Finding(
            "error",
            f"{size_text(rate)}/s was computed and {links} link(s) deliver {size_text(link * links)}/s: "
            "part of the tokens did not come over the link",
            "count the bytes that were moved, not the tokens that hit",
        )
    if counters.load_bytes is not None and counters.interval:
        use = float(link_utilization(1.0 / counters.interval, counters.load_bytes / (link * links)))
        if use >= 1:
            yield Finding(
                "error",
                f"loads keep the link busy for {use:.2f} times the interval (rho): waiting grows without "
                "end, and no mean restore time exists",
                "fewer hits a second from this tier, or more links",
            )
