"""The sequences among which a victim is chosen, one array a quantity."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Crowd:
    """Live sequences at one moment; item i of every array is the same sequence."""

    done: Floats  # tokens whose KV is held
    remaining: Floats  # tokens still to generate
    priority: Floats  # larger matters more
    idle: Floats  # seconds since the last token
    evicted_ago: Floats  # seconds since it was last evicted; infinite where it never was
    finished: Flags  # nothing left to generate, blocks not yet released
    age: Floats  # rank by admission: 0 is the first admitted

    def __len__(self) -> int:
        return len(self.done)
