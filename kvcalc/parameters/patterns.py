"""Which modules a quantization config means: exact names, globs, and regular expressions.

Lists come from strangers and have thousands of entries for thousands of modules, so exact names and
trailing stars are looked up, and regular expressions that could run for ever are refused.
"""

import re
from collections.abc import Iterable
from fnmatch import translate

from kvcalc.errors import UnsupportedModelError

_MAX_PATTERN = 300  # characters
_MAX_REPEATS = 5  # quantifiers; matching a short name then takes microseconds
_WRAPPERS = ("model.", "language_model.", "backbone.", "transformer.")
_EXPERT_NAMES = {"w1": "gate_proj", "w3": "up_proj", "w2": "down_proj"}


class Patterns:
    """A list of module names and patterns, ready to be asked many times."""

    def __init__(self, entries: Iterable[str], where: str) -> None:
        self._names: set[str] = set()
        self._starts: set[str] = set()
        self._regexes: list[re.Pattern[str]] = []
        for entry in map(str, entries):
            if entry.startswith("re:"):
                self._regexes.append(_compile(entry[3:], where))
            elif "*" not in entry and "?" not in entry:
                self._names.add(canonical(entry))
            elif entry.endswith("*") and not set("*?[") & set(entry[:-1]):
                self._starts.add(canonical(entry[:-1]))
            else:
                self._regexes.append(_compile(translate(canonical(entry)), where))

    def match(self, module: str) -> bool:
        """Return whether a module, or one that contains it, is meant.

        >>> Patterns(["model.layers.0.mlp", "lm_head"], "").match("layers.0.mlp.up_proj")
        True
        >>> Patterns(["gate"], "").match("layers.0.mlp.gate_proj")
        False
        """
        words = module.split(".")
        if self._names:
            for i in range(len(words)):
                for j in range(i + 1, len(words) + 1):
                    if ".".join(words[i:j]) in self._names:
                        return True
        if self._starts and any(module[:end] in self._starts for end in range(1, len(module) + 1)):
            return True
        texts = (module, "model." + module)
        return any(regex.match(text) for regex in self._regexes for text in texts)


def canonical(name: str) -> str:
    """Return a module name without wrappers and expert numbers.

    >>> canonical("language_model.model.layers.3.mlp.experts.17.w1")
    'layers.3.mlp.experts.gate_proj'
    """
    if ".layers." in name:
        name = name[name.index(".layers.") + 1 :]
    while name.startswith(_WRAPPERS):
        name = name[name.index(".") + 1 :]
    words = name.split(".")
    if "experts" in words:
        head = words.index("experts") + 1
        tail = [_EXPERT_NAMES.get(w, w) for w in words[head:] if not w.isdigit()]
        words = words[:head] + tail
    return ".".join(words)


def _compile(text: str, where: str) -> re.Pattern[str]:
    repeats = len(re.findall(r"(?<!\\)[*+{]", text))
    if len(text) > _MAX_PATTERN or repeats > _MAX_REPEATS or re.search(r"\)[*+{]", text):
        raise UnsupportedModelError(f"{where}: quantization_config: pattern {text!r:.80} is too complex")
    try:
        return re.compile(text)
    except re.error as error:
        raise UnsupportedModelError(f"{where}: quantization_config: pattern {text!r:.80}: {error}") from None
