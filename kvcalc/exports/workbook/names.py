"""Names of inputs that Excel and LibreOffice take, and words that a reader takes."""

import re
from collections.abc import Iterable

_CELL = re.compile(r"^[A-Za-z]{1,3}\d+$|^[RrCc]\d*([RrCc]\d*)?$")


def defined_names(keys: Iterable[str]) -> dict[str, str]:
    """Return a defined name for each key, no two alike.

    >>> defined_names(["prompt", "tiers.my disk.bandwidth", "c1"])
    {'prompt': 'prompt', 'tiers.my disk.bandwidth': 'tiers.my_disk.bandwidth', 'c1': 'c1_'}
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for key in keys:
        name = re.sub(r"[^A-Za-z0-9_.]", "_", key)
        if not re.match(r"[A-Za-z_]", name) or _CELL.match(name):
            name += "_"
        if not re.match(r"[A-Za-z_]", name):
            name = f"_{name}"
        while name.lower() in taken:
            name += "_"
        taken.add(name.lower())
        found[key] = name
    return found


def title(name: str) -> str:
    """Return a key's last word as a label.

    >>> title("bytes_per_token_per_gpu")
    'Bytes per token per GPU'
    """
    words = name.replace("_", " ").replace(".", ", ").strip()
    words = re.sub(r"\bgpu\b", "GPU", re.sub(r"\bkv\b", "KV", words))
    words = re.sub(r"\b(tp|pp|dp|ep|dcp)\b", lambda found: found[0].upper(), words)
    words = re.sub(r"\bcpu\b", "CPU", re.sub(r"\bttft\b", "TTFT", words))
    return words[:1].upper() + words[1:]
