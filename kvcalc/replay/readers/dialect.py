"""What a dialect of trace files is to the rest: how it is recognised, and how one line becomes requests."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from kvcalc.records import record
from kvcalc.replay.readers.collect import Request
from kvcalc.replay.readers.values import BrokenLineError, Row
from kvcalc.replay.trace import Finding

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@record
class Asked:
    """What the user said of the file."""

    block_tokens: int | None = None  # tokens of a block, where the file does not say [token]
    skip_broken: bool = False  # count lines that cannot be read instead of refusing the file
    session_every: float = 0.0  # start of one session to that of the next, where there is none [second]
    time_unit: str | None = None  # of times in dialects that do not fix it: s, ms, us or ns


class Dialect:
    """Reads the lines of one file; a subclass for each dialect, an instance for each trace."""

    name: ClassVar[str]
    says: ClassVar[str]  # one line of help
    usual_block: ClassVar[int] = 0  # tokens of a block where the file says nothing; 0: it always says
    numbered: ClassVar[bool] = False  # ids are numbered in the order in which they come
    free_starts: ClassVar[bool] = False  # sessions have no start times
    free_times: ClassVar[bool] = False  # the unit of its times is not fixed

    def __init__(self, asked: Asked, file: Path) -> None:
        self.asked = asked
        self.file = file
        self.stated: int | None = None  # block size that the file says [token]

    @classmethod
    def matches(cls, row: Row) -> bool:
        """Tell whether a line is one of this dialect."""
        raise NotImplementedError

    @classmethod
    def matches_any(cls, rows: Sequence[Row]) -> bool:
        """Tell whether the first lines of a file are of this dialect."""
        return any(cls.matches(row) for row in rows)

    def rather(self, row: Row) -> "type[Dialect] | None":
        """Return another dialect, if a line shows that the file is in it: its first lines fit both."""
        return None

    def requests(self, row: Row) -> Iterable[Request]:
        """Return the requests of one line.

        Raises
        ------
        BrokenLineError
            If the line cannot be used.
        """
        raise NotImplementedError

    def rest(self) -> Iterable[Request]:
        """Return requests that are only known at the end of the file."""
        return ()

    def findings(self) -> tuple[Finding, ...]:
        """Return what was noticed beside what is checked in every trace."""
        return ()

    def weights(self, names: tuple[object, ...]) -> "NDArray[np.int64] | None":
        """Return the tokens of each component, by id; None where all blocks have the same size."""
        return None

    def state_block(self, size: int, key: str) -> None:
        """Note the block size that a line states; it must not change."""
        if size < 1:
            raise BrokenLineError(f"{key}: {size} is no size of a block")
        if self.stated is not None and size != self.stated:
            raise BrokenLineError(
                f"{key}: {size}, but the lines before have {self.stated}; mixed block sizes"
            )
        if self.asked.block_tokens not in (None, size):
            raise BrokenLineError(f"{key}: {size}, but --trace-block says {self.asked.block_tokens}")
        self.stated = size
