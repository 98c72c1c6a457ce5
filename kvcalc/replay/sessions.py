"""How much of each request its own session had asked for before: hits within and across sessions."""

from typing import TYPE_CHECKING

import numpy as np

from kvcalc.replay.groups import pieces_of
from kvcalc.replay.stream import Stream
from kvcalc.replay.trace import NOWHERE

if TYPE_CHECKING:
    from numpy.typing import NDArray


def seen_by_session(stream: Stream) -> "NDArray[np.int64]":
    """Return how many first blocks of each request its own session had asked for before.

    A hit on one of these is a hit within the session; a hit beyond them was brought by another one.
    """
    pieces = pieces_of(stream)
    session = stream.trace.session[pieces.request]
    key = pieces.segment * (len(stream.trace.sessions) + 1) + session
    order = np.argsort(key, kind="stable")
    again = np.zeros(len(key), bool)
    again[order[1:]] = key[order[1:]] == key[order[:-1]]
    again &= session != NOWHERE
    found = np.bincount(pieces.request, np.where(again, pieces.blocks, 0), minlength=stream.requests)
    return found.astype(np.int64)
