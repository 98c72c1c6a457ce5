"""How many weights a model has, and how many bytes of them each rank holds."""

from kvcalc.parameters.counts import Parameters, Part
from kvcalc.parameters.quantization import with_dtype
from kvcalc.parameters.registry import count_parameters

__all__ = ["Parameters", "Part", "count_parameters", "with_dtype"]
