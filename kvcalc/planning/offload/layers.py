"""Loading a prefix layer by layer: how many layers at a time, and when a prefetch must begin."""

from dataclasses import replace

import numpy as np

from kvcalc.formulas.overlap import pipeline_time, prefetch_lead
from kvcalc.planning.offload.restoring import Restoring

ACROSS_LAYERS = frozenset({"whole", "block", "chunk"})
"""Pieces that hold all layers; a load of some layers moves that part of each."""


def best_group(found: Restoring, remaining: float) -> tuple[int, float]:
    """Return how many layers to load at a time for the shortest time to the first token, and that time.

    Few layers at a time leave little to wait for at first, many make larger pieces and so a faster load.
    """
    route, size, layers = found.route, float(found.size), found.layers
    group = np.arange(1, layers + 1, dtype=float)
    loads = np.ceil(layers / group)
    part = size / loads
    if route.mechanism.piece in ACROSS_LAYERS:
        # A route takes arrays of pieces: one for each number of layers at a time.
        route = replace(route, rule_piece=route.rule_piece * group / layers)  # type: ignore[arg-type]
    total = pipeline_time(size / route.bandwidth(part), remaining, loads)
    best = int(np.argmin(total))
    return best + 1, float(np.asarray(total)[best] + found.overhead)


def lead_of(found: Restoring) -> float:
    """Return how long before it is needed a prefix must be fetched, so that 99 of 100 arrive in time."""
    parts = found.parts
    queue = parts.queue if found.wait.p99 is None else np.maximum(found.wait.p99, parts.queue)
    return float(prefetch_lead(queue=queue, load=parts.total - parts.queue))
