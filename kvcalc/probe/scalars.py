"""Names for base units as in `kvcalc.quantity`, of single numbers: a probe measures no arrays."""

from typing import Annotated

Bytes = Annotated[float, "byte"]
BytesPerSecond = Annotated[float, "byte/second"]
Seconds = Annotated[float, "second"]
Flop = Annotated[float, "flop"]
Count = Annotated[float, "1"]
Share = Annotated[float, "1", "share"]
