"""What each engine's flags mean, as data: the field, its unit, whom it is for, and since when."""

from kvcalc.launch.flags.dialect import Dialect, Flag
from kvcalc.launch.flags.llamacpp import LLAMACPP
from kvcalc.launch.flags.lmcache import LMCACHE
from kvcalc.launch.flags.sglang import SGLANG
from kvcalc.launch.flags.vllm import VLLM

__all__ = ["DIALECTS", "LMCACHE", "Dialect", "Flag"]

DIALECTS: dict[str, Dialect] = {item.engine: item for item in (VLLM, SGLANG, LLAMACPP)}
"""Engines whose command lines are read, by kvcalc's name of the engine."""
