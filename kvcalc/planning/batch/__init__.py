"""One launch under many loads at once: rows of prompt, generation, concurrency, hits and rates, in arrays.

The model, the machine and the engine are those of one scenario, so its memory is divided once; what
depends on the row runs through the same formulas as a single plan, a chunk of rows at a time.
"""

from kvcalc.planning.batch.columns import COLUMNS, PlanColumn, column, nothing_word, row_of, worth
from kvcalc.planning.batch.launch import Launch, answer_loads, launch_of
from kvcalc.planning.batch.loads import CHUNK, Loads, Numbers, Texts
from kvcalc.planning.batch.result import BatchResult, batch_of

__all__ = [
    "CHUNK",
    "COLUMNS",
    "BatchResult",
    "Launch",
    "Loads",
    "Numbers",
    "PlanColumn",
    "Texts",
    "answer_loads",
    "batch_of",
    "column",
    "launch_of",
    "nothing_word",
    "row_of",
    "worth",
]
