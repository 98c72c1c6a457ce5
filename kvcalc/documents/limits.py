"""What a document may be: plain data, of limited size and nesting."""

from typing import Any, TypeAlias

from kvcalc.errors import ProfileError

MAX_BYTES = 4 * 2**20
"""Largest document that is read [byte]; far above any profile, low enough to parse in seconds."""
MAX_DEPTH = 32
"""Deepest nesting of lists and mappings that is read."""

Document: TypeAlias = Any
"""Plain data as a file holds it: mappings, lists, texts, numbers, flags, None; not yet checked."""


def check_size(size: int, name: str, limit: int = MAX_BYTES) -> None:
    """Refuse a document of more than `limit` bytes."""
    if size > limit:
        raise ProfileError(f"{name}: larger than {limit // 2**20} MiB, so not a profile")
