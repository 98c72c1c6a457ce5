"""Published or measured claims: whether arithmetic allows them, and what they leave out."""

from collections.abc import Iterator
from dataclasses import dataclass

from kvcalc.errors import DomainError
from kvcalc.formulas.queueing import link_utilization
from kvcalc.formulas.transfer import effective_bandwidth
from kvcalc.launch.checks.check import Finding
from kvcalc.launch.checks.piece_size import COPY_SETUP
from kvcalc.shapes.components import ModelShape
from kvcalc.wording import size_text

TOLERANCE = 0.05
"""Relative difference within which a claim agrees with arithmetic [1]; above the rounding of a printed
three-digit number, below the 7 % between GB and GiB."""

EVIDENCE = frozenset({"table", "text", "digitised", "derived", "vendor"})
"""Ways in which a published number can be had."""


@dataclass(frozen=True)
class Claim:
    """One restore as it is told, in base units; None where it is not told."""

    bytes: float | None = None  # moved
    time: float | None = None  # of the restore [second]
    ttft: float | None = None  # with the restore [second]
    baseline: float | None = None  # TTFT of a recompute [second]
    device_hit: float | None = None  # TTFT when the GPU itself has the prefix [second]
    speedup: float | None = None  # as it is told
    piece: float | None = None  # bytes of one copy
    link: float | None = None  # what the link delivers in large copies [byte/second]
    links: int = 1
    requests: int = 1  # that arrived together, if `time` is a mean over them
    rate: float | None = None  # requests per second
    tier_capacity: float | None = None  # bytes of a faster tier above the one that is named
    working_set: float | None = None  # bytes of all that was read
    device_hits: float | None = None  # tokens that the GPU's own prefix cache had
    tier_hits: float | None = None  # tokens that came from below it
    quality: str = "table"  # how the numbers were had

    @property
    def is_gain(self) -> bool:
        """Whether it tells of an improvement, whatever that is put down to."""
        faster = self.ttft is not None and self.baseline is not None and self.ttft < self.baseline
        return faster or self.speedup is not None


def check_claim(claim: Claim) -> tuple[Finding, ...]:
    """Return what speaks against a claim.

    Raises
    ------
    DomainError
        If it has no evidence: a draft's placeholders are no numbers.
    """
    if claim.quality not in EVIDENCE:
        raise DomainError(
            f"a {claim.quality!r} has no numbers to check; valid are {', '.join(sorted(EVIDENCE))}"
        )
    return (*_bandwidth(claim), *_ratio(claim), *_hit(claim), *_load(claim), *_tier(claim), *_hits(claim))


def _bandwidth(claim: Claim) -> Iterator[Finding]:
    if claim.bytes is None or claim.time is None or claim.link is None:
        return
    rate, most = claim.bytes / claim.time, claim.link * claim.links
    if rate > most * (1 + TOLERANCE):
        yield Finding(
            "error",
            f"{size_text(claim.bytes)} in {claim.time:.3g} s is {size_text(rate)}/s and {claim.links} "
            f"link(s) deliver {size_text(most)}/s: not all of it was moved",
        )
    elif claim.piece is not None:
        reached = float(effective_bandwidth(claim.piece, claim.link, COPY_SETUP)) * claim.links
        if rate > reached * (1 + TOLERANCE):
            yield Finding(
                "error",
                f"copies of {claim.piece / 1024:.3g} KiB one after another reach {size_text(reached)}/s "
                f"of a {size_text(claim.link)}/s link, not {size_text(rate)}/s: the rate of large "
                "copies was used",
                "the rate at the size of the pieces",
            )


def _ratio(claim: Claim) -> Iterator[Finding]:
    if claim.speedup is None:
        return
    if claim.baseline is None:
        yield Finding(
            "error",
            f"{claim.speedup:g} times as fast as what? Without the time of the baseline a ratio is no time",
            "the TTFT of a recompute on the same machine",
        )
        return
    if claim.device_hit is not None and claim.speedup > claim.baseline / claim.device_hit * (1 + TOLERANCE):
        yield Finding(
            "error",
            f"{claim.speedup:g} times as fast is more than the GPU's own hit is "
            f"({claim.baseline / claim.device_hit:.3g} times)",
            "compare with a baseline of the same machine and model",
        )
    if claim.ttft is not None and abs(claim.baseline / claim.ttft / claim.speedup - 1) > TOLERANCE:
        yield Finding(
            "error",
            f"{claim.baseline:.3g} s over {claim.ttft:.3g} s is {claim.baseline / claim.ttft:.3g}, not "
            f"{claim.speedup:g}",
        )


def _hit(claim: Claim) -> Iterator[Finding]:
    if claim.ttft is not None and claim.device_hit is not None and claim.ttft < claim.device_hit:
        yield Finding(
            "error",
            f"a restore with a TTFT of {claim.ttft:.3g} s is faster than the GPU's own hit of "
            f"{claim.device_hit:.3g} s, which every restore ends with: the two were not measured alike",
            "warm both up, and measure them in one run",
        )


def _load(claim: Claim) -> Iterator[Finding]:
    if claim.rate is not None and claim.time is not None:
        use = float(link_utilization(claim.rate, claim.time, claim.links))
        if use >= 1:
            yield Finding(
                "error",
                f"{claim.rate:g} requests/s of {claim.time:.3g} s each keep the link busy {use:.2f} times "
                "(rho): their times grow with the length of the run and have no mean",
                "a rate below saturation",
            )
    if claim.requests > 1:
        yield Finding(
            "warning",
            f"the mean over {claim.requests} requests that arrive together holds their queue as well: one "
            f"alone takes about 2/({claim.requests} + 1) of it where the link serves one after another",
            "one request at a time",
        )


def _tier(claim: Claim) -> Iterator[Finding]:
    if claim.tier_capacity is None or claim.working_set is None:
        return
    if claim.working_set <= claim.tier_capacity:
        yield Finding(
            "error",
            f"the working set of {size_text(claim.working_set)} fits the {claim.tier_capacity / 1e9:.3g} "
            "GB of the tier above: that one was measured",
            "a working set larger than the tier above, or that tier emptied first",
        )


def _hits(claim: Claim) -> Iterator[Finding]:
    own, below = claim.device_hits, claim.tier_hits
    if below is None:
        return
    if below == 0:
        yield Finding(
            "error",
            "no hit token came from below the GPU: what was measured is the GPU's prefix cache, or no hit at "
            "all",
            "a working set larger than the GPU's pool, or a reset of the GPU's cache alone",
        )
    elif own is not None and own > below:
        yield Finding(
            "warning",
            f"{below / (below + own):.1%} of the hit tokens came from below the GPU: most of what is gained "
            "is the GPU's own",
            "compare with the tier off and the same GPU hits",
        )


def check_reduction(before: float, after: float, printed: float) -> tuple[Finding, ...]:
    """Return whether a printed reduction is that of the two numbers beside it.

    Parameters
    ----------
    before, after : the two numbers
    printed : the share that is printed, 0.49 for "-49 %"

    Examples
    --------
    >>> check_reduction(0.98, 0.56, 0.49)[0].message
    '0.98 to 0.56 is 42.9 % less, not 49.0 %'
    """
    real = 1 - after / before
    if abs(real - printed) <= ROUNDING:
        return ()
    return (
        Finding("error", f"{before:g} to {after:g} is {real * 100:.1f} % less, not {printed * 100:.1f} %"),
    )


ROUNDING = 0.01
"""Difference of two shares that rounding to whole percent explains [1]."""


def explain_bytes_per_token(
    shape: ModelShape, claimed: float, right: float, tp: int = 1
) -> tuple[Finding, ...]:
    """Return which known mistake turns the right bytes per token into the claimed ones.

    Parameters
    ----------
    shape : the model
    claimed : what is said [byte/token]
    right : what kvcalc counts for one copy [byte/token]
    tp : tensor-parallel ranks, in case a rank's share or all copies were meant
    """
    if abs(claimed / right - 1) <= TOLERANCE:
        return ()
    known = {
        said: ratio for said, ratio in _mistakes(shape, tp) if abs(claimed / right / ratio - 1) <= TOLERANCE
    }
    reason = next(iter(known), "no known mistake explains it; a profile should be checked")
    return (
        Finding("error", f"{claimed:,.0f} bytes a token are claimed and {right:,.0f} are kept: {reason}"),
    )


def _mistakes(shape: ModelShape, tp: int) -> Iterator[tuple[str, float]]:
    """Yield each mistake with the factor that it makes."""
    for part in shape.components:
        latent = any(tensor.name == "latent" for tensor in part.entry)
        if latent and part.attention is not None:
            heads = part.attention.query_heads
            width = part.attention.key_dim + part.attention.value_dim
            kept = sum(tensor.elements for tensor in part.entry)
            yield "the latent was counted as full heads (MLA as MHA)", heads * width / kept
            yield "K and V were counted as wide as the hidden state (MLA as MHA)", 2 * shape.hidden / kept
            shown = f"one K and one V of {part.attention.value_dim} a head were counted instead of the latent"
            yield shown, 2 * heads * part.attention.value_dim / kept
        elif part.kv_heads and part.attention is not None and part.attention.query_heads > part.kv_heads:
            factor = part.attention.query_heads / part.kv_heads
            yield (
                f"{part.attention.query_heads} query heads were counted instead of {part.kv_heads} KV heads",
                factor,
            )
    if tp > 1:
        yield f"it is one of {tp} ranks' share", 1 / tp
        yield f"it counts the copies of {tp} ranks", float(tp)
    yield "kibibytes were written as bytes", 1 / 1024
    yield "one byte an element was counted instead of two", 0.5
    yield "four bytes an element were counted instead of two", 2.0
    yield "one layer was counted instead of all", 1 / shape.layers
    yield "K or V alone was counted", 0.5
    yield "it is in another unit (1024^2 or 1024^3 against powers of ten)", 2**30 / 1e9
