"""Columns of a stretch of rows: numbers as arrays, words as codes into a short list."""

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Words:
    """A column of words, each kept once; the first is the empty one, for rows without an answer."""

    codes: NDArray[np.int32]
    words: tuple[str, ...] = ("",)

    @classmethod
    def of(cls, values: NDArray[Any]) -> "Words":
        """Return an array of texts as codes.

        >>> Words.of(np.array(["b", "", "b"], dtype=object))
        Words(codes=array([1, 0, 1], dtype=int32), words=('', 'b'))
        """
        codes, words = np.zeros(len(values), dtype=np.int32), [""]
        missing = values != ""
        while missing.any():
            word = str(values[int(np.argmax(missing))])
            found = values == word
            codes[found] = len(words)
            words.append(word)
            missing &= ~found
        return cls(codes, tuple(words))

    @classmethod
    def constant(cls, word: str, count: int) -> "Words":
        """Return so many rows of one word."""
        return cls(np.full(count, int(bool(word)), dtype=np.int32), ("", word) if word else ("",))

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.codes)

    def tolist(self) -> list[str | None]:
        """Return the words, None for the empty one."""
        known = [word or None for word in self.words]
        return [known[code] for code in self.codes.tolist()]

    def only(self, rows: Any) -> "Words":  # noqa: ANN401 - anything that indexes an array
        """Return some of the rows."""
        return Words(self.codes[rows], self.words)

    @classmethod
    def joined(cls, parts: Sequence["Words"]) -> "Words":
        """Return several columns one after the other, with one list of words."""
        words = tuple(dict.fromkeys(word for part in parts for word in part.words))
        index = {word: code for code, word in enumerate(words)}
        maps = [np.array([index[word] for word in part.words], dtype=np.int32) for part in parts]
        return cls(np.concatenate([m[part.codes] for m, part in zip(maps, parts, strict=True)]), words)


Values = NDArray[Any] | Words
Columns = dict[str, Values]


@dataclass(frozen=True)
class Chunk:
    """Rows from `start` on, and what their plans warned of and assumed."""

    start: int
    columns: Mapping[str, Values]
    warnings: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def row(self, index: int) -> dict[str, Any]:
        """Return one row as Python values: NaN and empty words are None."""
        return {name: _plain(values, index) for name, values in self.columns.items()}

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield every row as Python values."""
        names = list(self.columns)
        for cells in zip(*(as_list(values) for values in self.columns.values()), strict=True):
            yield dict(zip(names, cells, strict=True))

    def only(self, rows: Any) -> "Chunk":  # noqa: ANN401 - anything that indexes an array
        """Return some of the rows."""
        columns = {name: some(values, rows) for name, values in self.columns.items()}
        return Chunk(self.start, columns, self.warnings, self.assumptions)

    def to_bytes(self) -> bytes:
        """Return the chunk as the bytes of a file of arrays, which holds no code."""
        arrays = {f"c{n}": values for n, values in enumerate(self.columns.values())}
        words = {name: values.words for name, values in self.columns.items() if isinstance(values, Words)}
        about = {
            "start": self.start,
            "names": list(self.columns),
            "words": words,
            "warnings": self.warnings,
            "assumptions": self.assumptions,
        }
        stored = {
            name: values.codes if isinstance(values, Words) else values for name, values in arrays.items()
        }
        out = io.BytesIO()
        about_bytes = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
        np.savez(out, about=about_bytes, **stored)  # type: ignore[arg-type]
        return out.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> "Chunk":
        """Return what `to_bytes` wrote.

        Raises
        ------
        ValueError
            If the bytes are no such file.
        """
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            about = json.loads(stored["about"].tobytes())
            columns: Columns = {}
            for n, name in enumerate(about["names"]):
                values = stored[f"c{n}"]
                words = about["words"].get(name)
                columns[name] = values if words is None else Words(values, tuple(words))
        return cls(about["start"], columns, tuple(about["warnings"]), tuple(about["assumptions"]))


def some(values: Values, rows: Any) -> Values:  # noqa: ANN401 - anything that indexes an array
    """Return some of the rows of a column."""
    return values.only(rows) if isinstance(values, Words) else values[rows]


def as_list(values: Values) -> list[Any]:
    """Return a column as Python values: NaN and empty words are None."""
    if isinstance(values, Words) or values.dtype.kind != "f":
        return values.tolist()
    found: list[Any] = values.tolist()
    for index in np.flatnonzero(np.isnan(values)):
        found[index] = None
    return found


def _plain(values: Values, index: int) -> Any:  # noqa: ANN401 - a cell
    return as_list(some(values, slice(index, index + 1)))[0]


def joined(chunks: Iterable[Chunk]) -> Columns:
    """Return the columns of several chunks one after the other."""
    parts = list(chunks)
    found: Columns = {}
    for name in parts[0].columns if parts else ():
        pieces = [part.columns[name] for part in parts]
        if isinstance(pieces[0], Words):
            found[name] = Words.joined([piece for piece in pieces if isinstance(piece, Words)])
        else:
            found[name] = np.concatenate([piece for piece in pieces if not isinstance(piece, Words)])
    return found
