"""What tenants hold of a shared KV pool, and what getting bytes back costs."""

from kvcalc.formulas._domain import at_least_one, ceil_div, excess, not_negative, positive, refuse, share
from kvcalc.formulas.transfer import burst_time
from kvcalc.quantity import Bytes, BytesPerSecond, Count, PerSecond, Seconds, Share, Tokens


def block_count(tokens: Tokens, block: Tokens) -> Count:
    r"""How many blocks does a sequence need for its tokens?

    .. math:: N = \lceil n / b \rceil

    Parameters
    ----------
    tokens : n, tokens whose KV is kept [token]
    block : b, tokens of one block [token]

    Raises
    ------
    DomainError
        If `tokens` is negative or `block` is not positive.

    Notes
    -----
    A sliding window keeps at most its width, a recurrent state one block whatever the length; a model
    with several KV groups needs its blocks in every group.

    References
    ----------
    Definition; vLLM: cdiv(num_tokens, block_size) in `SingleTypeKVCacheManager.get_num_blocks_to_allocate`.

    Examples
    --------
    >>> print(block_count(17, 16), block_count(17, 784))
    2.0 1.0
    """
    return ceil_div(not_negative(tokens, "tokens"), positive(block, "block"))


def unfilled_bytes(blocks: Count, block: Tokens, tokens: Tokens, size: Bytes) -> Bytes:
    r"""How many bytes of the held blocks have no token in them?

    .. math:: F = \left(N - \frac{n}{b}\right) D

    Parameters
    ----------
    blocks : N, blocks held [1]
    block : b, tokens of one block [token]
    tokens : n, tokens that are in these blocks [token]
    size : D, bytes of one block [byte]

    Raises
    ------
    DomainError
        If an argument is negative, `block` is not positive, or the tokens are more than the blocks hold.

    Notes
    -----
    What a quota in blocks charges and a quota in tokens does not see.

    References
    ----------
    Definition: bytes by blocks less bytes by tokens.

    Examples
    --------
    1,000 sessions of 17 tokens in blocks of 16, one byte a token:

    >>> print(unfilled_bytes(2000, 16, 17_000, 16.0))
    15000.0
    """
    filled = not_negative(tokens, "tokens") / positive(block, "block")
    empty = not_negative(blocks, "blocks") - filled
    return refuse(empty, empty < 0, "more tokens than the blocks hold") * not_negative(size, "size")


def fractional_charge(size: Bytes, own: Count, references: Count) -> Bytes:
    r"""How many bytes of a shared block is one tenant charged, divided by references?

    .. math:: c = D \frac{r_t}{r}

    Parameters
    ----------
    size : D, bytes of the block [byte]
    own : r_t, references of this tenant's sessions [1]
    references : r, references of all sessions [1]

    Raises
    ------
    DomainError
        If an argument is negative, `references` is not positive, or `own` is more than `references`.

    Notes
    -----
    The charges of all tenants add up to the block.  When one of them lets go, the charge of the others
    jumps although nothing was allocated.

    References
    ----------
    Definition: 1 / references each.

    Examples
    --------
    >>> print(fractional_charge(917_504, 1, 2))
    458752.0
    """
    total = positive(references, "references")
    part = refuse(not_negative(own, "own"), own > references, "own references are more than all references")
    return not_negative(size, "size") * part / total


def tier_room(capacity: Bytes, watermark: Share, used: Bytes) -> Bytes:
    r"""How many bytes may still be offloaded into a tier before its watermark?

    .. math:: F = \max(0, w\, C - u)

    Parameters
    ----------
    capacity : C, bytes of the tier [byte]
    watermark : w, share of the tier that may be filled [1]
    used : u, bytes in it [byte]

    Raises
    ------
    DomainError
        If `capacity` or `used` is negative, or `watermark` is outside (0, 1].

    Notes
    -----
    Past the watermark blocks are compressed or stay.

    References
    ----------
    Definition.

    Examples
    --------
    >>> print(tier_room(200e9, 0.9, 150e9))
    3e+10
    """
    limit = share(watermark, "watermark") * not_negative(capacity, "capacity")
    return excess(limit, not_negative(used, "used"))  # a tier may be fuller than its watermark


def offload_cost(
    size: Bytes, out: BytesPerSecond, back: BytesPerSecond, reuse: Share = 1.0, setup: Seconds = 0.0
) -> Seconds:
    r"""What does offloading blocks cost: the way out now, and the way back if they are needed again?

    .. math:: c = \frac{D}{B_{out}} + p \left(t_0 + \frac{D}{B_{back}}\right)

    Parameters
    ----------
    size : D, bytes to offload [byte]
    out : B_{out}, rate from device to host [byte/second]
    back : B_{back}, rate from host to device [byte/second]
    reuse : p, chance that they are needed again [1]
    setup : t_0, fixed time of a restore [second]

    Raises
    ------
    DomainError
        If `size` or `setup` is negative, a bandwidth is not positive, or `reuse` is outside [0, 1].

    Notes
    -----
    The way out may overlap compute.  Blocks that the lower tier holds already cost only the way back.

    References
    ----------
    Definition: bytes over bandwidth each way, the second one weighted by its chance.

    Examples
    --------
    >>> print(offload_cost(1e9, 50e9, 50e9, 0.5))
    0.03
    """
    back_again = not_negative(setup, "setup") + burst_time(size, back)
    return burst_time(size, out) + _chance(reuse) * back_again


def drop_cost(recompute: Seconds, reuse: Share) -> Seconds:
    r"""What does dropping blocks cost that nothing else holds?

    .. math:: c = p\, T_{again}

    Parameters
    ----------
    recompute : T_{again}, time to compute them again, or to restore a copy of them [second]
    reuse : p, chance that they are needed again [1]

    Raises
    ------
    DomainError
        If `recompute` is negative, or `reuse` is outside [0, 1].

    Notes
    -----
    Where p is low this is less than the way out to the host: then dropping comes before offloading,
    whatever order an operator has written down.

    References
    ----------
    Expected cost.

    Examples
    --------
    >>> print(drop_cost(2.56, 0.25))
    0.64
    """
    return not_negative(recompute, "recompute") * _chance(reuse)


def compressed_blocks(blocks: Count, ratio: Count) -> Count:
    r"""How many blocks are left of cold ones after compressing them?

    .. math:: N' = \lceil N / c \rceil

    Parameters
    ----------
    blocks : N, blocks before [1]
    ratio : c, how many times smaller they become [1]

    Raises
    ------
    DomainError
        If `blocks` is negative or `ratio` is below 1.

    Notes
    -----
    Frees (1 - 1/c) of the bytes, in whole blocks.  Lossy: what it does to answers is to be judged apart.

    References
    ----------
    Definition; two for fp8 from 16 bits, three to four for CacheGen over quantised KV
    (https://arxiv.org/abs/2310.07240).

    Examples
    --------
    >>> print(compressed_blocks(11, 2))
    6.0
    """
    return ceil_div(not_negative(blocks, "blocks"), at_least_one(ratio, "ratio"))


def compression_time(size: Bytes, ratio: Count, out: BytesPerSecond, back: BytesPerSecond) -> Seconds:
    r"""How long does it use the link to compress blocks on the host and bring them back?

    .. math:: T = \frac{D}{B_{out}} + \frac{D}{c\, B_{back}}

    Parameters
    ----------
    size : D, bytes before [byte]
    ratio : c, how many times smaller they become [1]
    out : B_{out}, rate from device to host [byte/second]
    back : B_{back}, rate from host to device [byte/second]

    Raises
    ------
    DomainError
        If `size` is negative, a bandwidth is not positive, or `ratio` is below 1.

    Notes
    -----
    The time of the compression itself is not counted.

    References
    ----------
    LMCache compresses what its host cache holds: https://docs.lmcache.ai/controller/index.html

    Examples
    --------
    >>> print(compression_time(1e9, 2, 50e9, 50e9))
    0.03
    """
    return burst_time(size, out) + burst_time(size, back) / at_least_one(ratio, "ratio")


def quota_overshoot(rate: BytesPerSecond, interval: Seconds) -> Bytes:
    r"""By how much can a tenant exceed a soft quota before anyone looks?

    .. math:: O = w\, t

    Parameters
    ----------
    rate : w, KV that the tenant writes [byte/second]
    interval : t, time between two checks [second]

    Raises
    ------
    DomainError
        If an argument is negative.

    Notes
    -----
    An upper bound: the excess is found at the next check at the latest.

    References
    ----------
    LMCache's quota is enforced by a loop of about a second: https://github.com/LMCache/LMCache/pull/3137

    Examples
    --------
    An 8B model prefilling at full rate, checked every second:

    >>> print(quota_overshoot(131_072 * 43_500, 1.0))
    5701632000.0
    """
    return not_negative(rate, "rate") * not_negative(interval, "interval")


def lru_survival(capacity: Bytes, writes: BytesPerSecond) -> Seconds:
    r"""How long does an untouched block stay in a cache that evicts the least recently used?

    .. math:: T_C = \frac{C}{w}

    Parameters
    ----------
    capacity : C, bytes that the cache has for them [byte]
    writes : w, bytes written per second by all who share it [byte/second]

    Raises
    ------
    DomainError
        If `capacity` is negative or `writes` is not positive.

    Notes
    -----
    A tenant that comes back later than that never hits: a busy neighbour takes the cache from a quiet one,
    and a floor of its own gives it back.  Hits of the others make blocks stay longer, so this is the least.

    References
    ----------
    The characteristic time of H. Che et al. with every write a new block: https://arxiv.org/abs/1202.3974

    Examples
    --------
    >>> print(lru_survival(55e9, 1.1e9))
    50.0
    """
    return not_negative(capacity, "capacity") / positive(writes, "writes")


def closed_admission_wait(duration: Seconds, rate: PerSecond) -> Seconds:
    r"""How long do the requests wait together that arrive while admission is closed?

    .. math:: W = \frac{λ\, t^2}{2}

    Parameters
    ----------
    duration : t, time for which nothing is admitted [second]
    rate : λ, requests that arrive per second [1/second]

    Raises
    ------
    DomainError
        If an argument is negative.

    Notes
    -----
    Requests arrive evenly, so each waits half of the time on average.

    References
    ----------
    Definition: λ t requests times t / 2.

    Examples
    --------
    >>> print(closed_admission_wait(10.0, 2.0))
    100.0
    """
    waited = not_negative(duration, "duration")
    return not_negative(rate, "rate") * waited * waited / 2


def _chance(reuse: Share) -> Share:
    return refuse(reuse, (reuse < 0) | (reuse > 1), "reuse must lie in [0, 1]")
