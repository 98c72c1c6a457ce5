"""Which config keys could change a cache, judged by their words, and which are known not to."""

import re

WORDS = frozenset(
    "attention attn kv cache cached window windows sliding swa latent lora mamba ssm conv state states "
    "head heads pattern sparse sparsity index indexer compress compression compressed share shared "
    "linear recurrent chunk chunked local global".split()
)

HARMLESS = frozenset[str]()


def looks_cache_relevant(name: str) -> bool:
    """Whether a key's words speak of what a cache holds and the key is not known to be harmless."""
    return name not in HARMLESS and not WORDS.isdisjoint(re.split(r"[^a-z]+", name.lower()))
