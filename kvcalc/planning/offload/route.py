"""How the bytes of one tier reach one GPU: mechanism, pieces, links and who shares them."""

import math
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from kvcalc.engines.kinds import kind_of
from kvcalc.engines.layout import Layout
from kvcalc.errors import SettingsError
from kvcalc.formulas.restore import path_time
from kvcalc.formulas.transfer import (
    duplex_bandwidth,
    effective_bandwidth,
    iops_bandwidth,
    queue_depth,
    shared_bandwidth,
)
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.speed import Speed
from kvcalc.profiles import Hardware
from kvcalc.quantity import Bytes, BytesPerSecond, PerSecond, Tokens
from kvcalc.results import Source
from kvcalc.scenario import TierUse
from kvcalc.tiers import (
    PLAIN,
    Mechanism,
    Rates,
    TierKind,
    default_mechanism,
    kind_called,
    mechanism,
    tier_kind,
    tier_kinds,
)
from kvcalc.tiers.mechanisms import PER_PIECE
from kvcalc.tiers.pieces import piece_bytes
from kvcalc.wording import said_size, size_text

PAGEABLE_SHARE = 0.35
"""Share of the bandwidth that copies from pageable memory reach [1]; assumed, the middle of the 0.2 to 0.5
that a copy through the driver's buffer leaves; no measurement with KV was found."""

BOTH_WAYS = 1.5
"""Sum of both directions at once over one direction alone [1]: 83.4 over 55.4 GB/s on an H100's PCIe 5
(https://blog.vllm.ai/2026/01/08/kv-offloading-connector.html); 18.6 twice over 26 GB/s on an A100."""


HOST_SIDE = ("dram", "c2c", "cxl", "nvme", "sata")
"""Kinds of tier whose bytes reach a GPU over its host link."""

MISSPELT = 0.7
"""How alike [1] the name of a tier is to that of a kind that it is taken to mean: two letters swapped of four
are 0.75, "archive" and "drive" 0.67."""

ENDLESS = 1e15
"""So many bytes [byte] that what is once for a restore no longer counts."""


@dataclass(frozen=True)
class Route:
    """One tier, what moves its bytes, and what they cross; sizes may be arrays."""

    tier: TierUse
    mechanism: Mechanism
    rates: Rates
    rule_piece: float = math.inf  # bytes of one piece by the mechanism's rule
    kind: TierKind | None = None
    link: float = math.inf  # byte/second of the GPU's own host link
    ranks: int = 1  # GPUs of one host that restore together
    opposite: BytesPerSecond = 0.0  # of stores that cross the link the other way
    then: "Route | None" = None  # the second hop, once all bytes have made the first

    @property
    def setup(self) -> float:
        """Time before the first byte moves [second]: as given, else the mechanism's fixed cost."""
        if self.tier.setup is not None:
            return self.tier.setup
        own = self.rates.number("fixed", 0.0) + (self.tier.latency or 0.0) + self.first_operation
        return own + (self.then.setup if self.then is not None else 0.0)

    @property
    def first_operation(self) -> float:
        """Time [second] that the kind's first operation is assumed to take, where nothing else says it."""
        said = self.rates.fixed is not None or self.tier.latency is not None or self.tier.setup is not None
        return 0.0 if said or self.kind is None or not self.kind.waits else self.latency

    @property
    def latency(self) -> float:
        """Time of one operation of no bytes [second]: as given, else the kind's."""
        if self.tier.latency is not None:
            return self.tier.latency
        return self.kind.number("latency", 0.0) if self.kind is not None else 0.0

    @property
    def in_flight(self) -> float:
        """Operations of one restore that are in flight at once [1]: as given, else the kind's."""
        if self.tier.queue_depth is not None:
            return self.tier.queue_depth
        return self.kind.in_flight if self.kind is not None else math.inf

    @property
    def operations(self) -> PerSecond:
        """Operations a second that one GPU gets [1/second]: as given, else those of the kind's drives."""
        if self.tier.iops is not None:
            return self.tier.iops / self.tier.shared_by
        if self.kind is None:
            return math.inf
        most: PerSecond = self.kind.operations(self.tier.bandwidth) / self.tier.shared_by
        return most

    def at(self, **said: Any) -> "Route":  # noqa: ANN401 - numbers or arrays of the tier's fields
        """Return this route with other numbers of its tier, such as a bandwidth; arrays too."""
        return replace(self, tier=replace(self.tier, **said))

    def piece(self, size: Bytes) -> Bytes:
        """Return the bytes of one piece: nothing is moved in pieces larger than itself."""
        return np.maximum(1.0, np.minimum(self.rule_piece, size))

    def bandwidth(self, size: Bytes) -> BytesPerSecond:
        """Return the rate [byte/second] at which `size` bytes reach one GPU, over all hops."""
        first = self._first_hop(size)
        if self.then is None:
            return first
        some = np.maximum(size, 1.0)
        return some / path_time(some, some, (first, self.then.bandwidth(some))).total

    def _first_hop(self, size: Bytes) -> BytesPerSecond:
        rate: BytesPerSecond = self.link_rate
        piece = self.piece(size)
        if self.rates.per_piece is not None:
            cost, streams = self.rates.per_piece.value, self.rates.number("streams", 1.0)
            rate = effective_bandwidth(piece, rate, cost, streams)
        return self._within_operations(rate, piece)

    def _within_operations(self, rate: BytesPerSecond, piece: Bytes) -> BytesPerSecond:
        """Return a rate that the operations in flight and those a second allow at this size."""
        if self.tier.io_size is not None:
            piece = np.minimum(piece, self.tier.io_size)
        limited = rate
        if self.latency and math.isfinite(self.in_flight):
            # Little's law: so many operations in flight, each as long as its latency and its bytes.
            needed = queue_depth(rate, self.latency + piece / rate, piece)
            limited = rate * np.minimum(1.0, self.in_flight / needed)
        if (
            self.tier.io_size is None
            and np.all(np.isfinite(self.operations))
            and np.all(np.isfinite(self.rule_piece))
        ):
            limited = iops_bandwidth(self.operations, piece, limited)
        return limited

    @property
    def link_rate(self) -> BytesPerSecond:
        """What endless pieces reach of what the tier delivers and the GPUs share."""
        tier, rates = self.tier, self.rates
        rate: BytesPerSecond = tier_bandwidth(tier)
        if tier.shared_by > 1:
            rate = shared_bandwidth(self.link, rate, tier.shared_by)
        if tier.numa == "remote":
            rate = rate * _remote_share(self.kind)
        if tier.pageable:
            rate = rate * PAGEABLE_SHARE
        if np.any(self.opposite > 0):
            taken = np.minimum(self.opposite, (BOTH_WAYS - 0.01) * rate)
            rate = duplex_bandwidth(rate, BOTH_WAYS * rate, taken)
        rate = rate * rates.number("share", 1.0)
        limit = min(rates.number("limit", math.inf), rates.number("host_limit", math.inf) / self.ranks)
        return np.minimum(rate, limit)


def _remote_share(kind: TierKind | None) -> float:
    found = kind or tier_kind("dram")
    return found.remote_share.value if found.remote_share is not None else 1.0


def moved_bytes(layout: Layout, tokens: Tokens) -> Bytes:
    """Return the bytes that bring `tokens` tokens back to one GPU; arrays too.

    Without vLLM's hybrid manager sliding windows are kept, stored and loaded like full layers.
    """
    settings = layout.settings
    if kind_of(settings.engine).has_hybrid_manager and not settings.hybrid_manager:
        return layout.reserved(tokens)
    return layout.serialized(tokens, per_gpu=True)


def tier_bandwidth(tier: TierUse) -> BytesPerSecond:
    """Return what the tier delivers: the tighter of its bandwidth and its IOPS."""
    if tier.iops is not None and tier.io_size is not None:
        return iops_bandwidth(tier.iops, tier.io_size, tier.bandwidth)
    return tier.bandwidth


def _tell_operations(route: Route, book: Notebook) -> None:
    """Say which figures of the tier's kind count, and warn of a limit that nothing can be made of."""
    tier, kind = route.tier, route.kind
    pieces = math.isfinite(route.rule_piece)
    if tier.iops is not None and tier.io_size is None and not pieces:
        book.warn(
            f"{tier.name}: its iops limit nothing, since {route.mechanism.name} says no size of an "
            "operation; give io_size or another mechanism"
        )
    if kind is None:
        return
    if route.first_operation:
        _tell_figure(tier.name, "latency", kind, book)
        book.assume(
            f"{tier.name}: a restore waits {route.first_operation * 1e3:g} ms for its first operation "
            f"(assumed, {kind.title}); latency or setup of the tier replaces it"
        )
    if not pieces and tier.io_size is None and kind.name == "object":
        book.assume(
            f"{tier.name}: one request gets the stated bandwidth; io_size of the tier, or a mechanism, says "
            f"how large an operation is, of which one request keeps {route.in_flight:g} in flight"
        )
    if not pieces or tier.queue_depth is not None or not kind.latency:
        return
    free = replace(route, kind=None, tier=replace(tier, latency=None))
    if float(route.bandwidth(ENDLESS)) < float(free.bandwidth(ENDLESS)) * (1 - 1e-9):
        for name in ("latency", "queue_depth", "streams", "iops"):
            _tell_figure(tier.name, name, kind, book)
        allowed = float(route.bandwidth(ENDLESS)) / 1e9
        book.assume(
            f"{tier.name}: {route.rule_piece / 1e3:.4g} kB in each operation, {route.in_flight:g} of them in "
            f"flight and {route.latency * 1e6:g} us each, allow {allowed:.3g} GB/s; queue_depth, latency and "
            "iops of the tier replace what is assumed of its kind"
        )


def _tell_rate(route: Route, machine: str, book: Notebook) -> None:
    """Say what is doubtful in a stated rate: its tier's kind, its link, or rates of one lab's machine."""
    tier, kind, found = route.tier, route.kind, route.mechanism
    if kind is None and tier.mechanism is None and tier.name.isidentifier():
        words = [word for known in tier_kinds().values() for word in known.called]
        told = f"{tier.name}: no kind of tier is called so, and it is taken as plain bytes of no kind"
        near = get_close_matches(tier.name.lower(), words, 1, MISSPELT)
        if near:
            book.warn(f"{told}, did you mean {near[0]!r}? kind= of the tier says it too")
        else:
            book.assume(f"{told}; kind= of the tier says what it is")
    if kind is not None and kind.name in HOST_SIDE and tier.shared_by == 1 and tier.bandwidth > route.link:
        book.warn(
            f"{tier.name}: {said_size(tier.bandwidth)}/s is more than the {said_size(route.link)}/s of "
            "the GPU's own host link, which it crosses; it is planned as stated"
        )
    if machine in found.special and route.rates.limit is not None:
        limit = route.rates.limit
        note = f" ({limit.note})" if limit.note else ""
        book.source(f"{tier.name}.limit", limit.cited)
        book.assume(
            f"{tier.name}: {found.name} reaches no more than {size_text(limit.value)}/s, as one host with "
            f"{machine} did{note}; another host differs, and mechanism=plain takes the stated bandwidth"
        )


def _tell_piece(route: Route, hardware: Hardware, book: Notebook) -> None:
    """Cite the cost of a piece where it was measured on this machine instead of on others."""
    if route.mechanism.call_each and PER_PIECE in hardware.provenance:
        found = hardware.provenance[PER_PIECE]
        book.source(PER_PIECE, Source(found.kind, hardware.cite(PER_PIECE), found.as_printed))


def _tell_figure(tier: str, name: str, kind: TierKind, book: Notebook) -> None:
    figure = getattr(kind, name)
    if figure is not None:
        book.source(f"{tier}.{name}", figure.cited)


def plain_route(tier: TierUse) -> Route:
    """Return the route of bytes that nothing is known of but the tier's bandwidth."""
    if tier.mechanism not in (None, PLAIN):
        raise SettingsError(
            f"tiers.{tier.name}.mechanism: {tier.mechanism} moves the KV of a model; name MODEL and --on"
        )
    found = mechanism(PLAIN)
    return Route(tier, found, found.general)


def route_of(speed: Speed, tier: TierUse, book: Notebook) -> Route:
    """Return the route of one tier of a scenario.

    Raises
    ------
    SettingsError
        If the mechanism does not exist or cannot read this kind of tier.
    """
    scenario = speed.scenario
    hardware, settings = scenario.hardware, scenario.settings
    kind = tier_kind(tier.kind) if tier.kind else kind_called(tier.name)
    chosen = (
        mechanism(tier.mechanism)
        if tier.mechanism is not None
        else default_mechanism(settings.engine, kind.name if kind else None, hardware)
    )
    if tier.chunk is not None:
        chosen = replace(chosen, chunk_tokens=tier.chunk)
    if kind is not None and kind.name not in chosen.tiers:
        raise SettingsError(
            f"tiers.{tier.name}.mechanism: {chosen.name} reads {', '.join(chosen.tiers)}, not {kind.name}"
        )
    if tier.mechanism is None and chosen.name != PLAIN:
        book.assume(
            f"{tier.name}: moved by {chosen.title}; name another mechanism in the tier, or mechanism=plain "
            "for bytes at the stated bandwidth"
        )
    route = Route(
        tier=tier,
        mechanism=chosen,
        rates=chosen.rates_on(hardware),
        rule_piece=piece_bytes(chosen, speed.layout),
        kind=kind,
        link=hardware.host_to_device.bandwidth,
        ranks=settings.tp,
    )
    _tell_operations(route, book)
    _tell_rate(route, hardware.name, book)
    _tell_piece(route, hardware, book)
    if tier.via is not None:
        staged = next(other for other in scenario.tiers if other.name == tier.via)
        return replace(route, then=route_of(speed, staged, book))
    if chosen.then is None:
        return route
    hop = TierUse("host memory", hardware.host_to_device.bandwidth, mechanism=chosen.then, kind="dram")
    return replace(route, then=route_of(speed, hop, book))
