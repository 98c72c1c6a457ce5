"""Names for the base units in which every number inside kvcalc is kept.

To a type checker `Seconds` is ``float | array``; the unit string is there for whoever asks (the
docstring check, the JSON `units`, the column headers).  There is one unit per dimension.
"""

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

Real = float | NDArray[np.float64]

Bytes = Annotated[Real, "byte"]
BytesPerSecond = Annotated[Real, "byte/second"]
BytesPerToken = Annotated[Real, "byte/token"]
Seconds = Annotated[Real, "second"]
SecondsPerToken = Annotated[Real, "second/token"]
SecondsPerByte = Annotated[Real, "second/byte"]
SecondsPerTokenSquared = Annotated[Real, "second/token**2"]
PerSecond = Annotated[Real, "1/second"]
Tokens = Annotated[Real, "token"]
TokensPerSecond = Annotated[Real, "token/second"]
Flop = Annotated[Real, "flop"]
FlopPerSecond = Annotated[Real, "flop/second"]
FlopPerToken = Annotated[Real, "flop/token"]
Dollars = Annotated[Real, "USD"]
DollarsPerSecond = Annotated[Real, "USD/second"]
DollarsPerByteSecond = Annotated[Real, "USD/byte/second"]
Watts = Annotated[Real, "watt"]
Count = Annotated[Real, "1"]
Share = Annotated[Real, "1", "share"]  # people read it as a percentage

UNLIMITED = "unlimited"
"""Marks a number that may be infinite (a use of nothing, a wait for ever); JSON has null for it."""
