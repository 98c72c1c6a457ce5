"""Reads one trace, from its first line to the arrays; the dialects say what a line means."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from kvcalc.errors import ProfileError, SettingsError
from kvcalc.replay.readers.chains import chained
from kvcalc.replay.readers.collect import Collector, Gathered, some_of
from kvcalc.replay.readers.dialect import Asked, Dialect
from kvcalc.replay.readers.findings import SHOWN_LINES, both_rates, findings_of
from kvcalc.replay.readers.ragpulse import of_requests
from kvcalc.replay.readers.recognise import recognised
from kvcalc.replay.readers.sizes import Sizes, block_tokens_of
from kvcalc.replay.readers.stream import MOST_LINE, CutOffError, Told, files_of, lines, parser
from kvcalc.replay.readers.values import BrokenLineError
from kvcalc.replay.trace import Finding, Trace

FIRST_LINES = 8
"""Lines that are looked at to recognise a dialect [1]."""


class _OtherDialectError(Exception):
    """A line shows that the file is in another dialect than its first lines seemed to be."""

    def __init__(self, kind: type[Dialect]) -> None:
        super().__init__(kind.name)
        self.kind = kind


class Reading:
    """Reads one trace; broken lines are refused, or counted where the user asks for it."""

    def __init__(self, path: str, kind: type[Dialect] | None, asked: Asked, told: Told | None) -> None:
        self.path, self.kind, self.asked, self.told = path, kind, asked, told
        self.reader: Dialect | None = None
        self.into = Collector()
        self.files: list[Path] = []
        self.broken: list[tuple[int, int, str]] = []  # number of the file, of the line, and what is wrong
        self.cut: str | None = None

    def trace(self) -> Trace:
        """Return the trace; from its first line again where a later one shows that its dialect is another."""
        try:
            for place in of_requests(files_of(self.path)):
                self._file(place)
        except _OtherDialectError as other:
            given = Path(self.path).expanduser()
            if not (given.is_file() or given.is_dir()):
                raise ProfileError(
                    f"{self.path}: its lines are {other.kind.name}, and a pipe cannot be read again; add "
                    f"--dialect {other.kind.name}"
                ) from None
            return Reading(self.path, other.kind, self.asked, self.told).trace()
        if self.reader is None:
            file, number, text = self.broken[0] if self.broken else (0, 1, "the file is empty")
            raise ProfileError(f"{self.files[file]}:{number}: no request can be read: {text}")
        self.into.add(0, self.reader.rest())
        if not self.into.lines:
            said = f"; {self._first_broken()}" if self.broken else ""
            raise ProfileError(f"{self.path}: no requests of dialect {self.reader.name} in it{said}")
        return self._built(self.reader, self.into.gathered())

    def _file(self, file: Path) -> None:
        self.files.append(file)
        self.into.file = len(self.files) - 1
        first: list[tuple[int, Any]] = []
        for number, row in self._rows(file):
            if self.reader is not None:
                self._take(self.reader, file, number, row)
                continue
            first.append((number, row))
            if len(first) == FIRST_LINES:
                self._begin(file, first)
                first = []
        if first:
            self._begin(file, first)

    def _begin(self, file: Path, first: list[tuple[int, Any]]) -> None:
        """Recognise the dialect, and take the lines that were looked at for it."""
        if self.reader is None:
            rows = [row for _, row in first if isinstance(row, Mapping)]
            if not rows:
                for number, _ in first:
                    self._problem(file, number, "not a JSON object")
                return
            kind = self.kind or recognised(rows, f"{file}:{first[0][0]}")
            if self.asked.time_unit is not None and not kind.free_times:
                raise SettingsError(
                    f"--time-unit: the dialect {kind.name} has a unit of its own; leave it out"
                )
            if self.asked.session_every and not kind.free_starts:
                raise SettingsError(
                    f"--session-every: the dialect {kind.name} has times of its own; leave it out"
                )
            self.reader, self.into = kind(self.asked, file), Collector(kind.numbered)
            self.into.file = len(self.files) - 1
        for number, row in first:
            self._take(self.reader, file, number, row)

    def _take(self, reader: Dialect, file: Path, number: int, row: Any) -> None:  # noqa: ANN401 - as parsed
        try:
            if not isinstance(row, Mapping):
                raise BrokenLineError("not a JSON object")
            other = None if self.kind is not None else reader.rather(row)
            if other is not None:
                raise _OtherDialectError(other)
            self.into.add(number, reader.requests(row))
        except BrokenLineError as error:
            self._problem(file, number, str(error))

    def _rows(self, file: Path) -> Iterator[tuple[int, Any]]:
        """Yield the parsed lines; a compressed file that is cut off ends there, if that is asked for."""
        whole = ".json" in file.suffixes and ".jsonl" not in file.suffixes
        try:
            for number, row in self._document(file) if whole else self._lines(file):
                yield number, _batch(row)
        except CutOffError as error:
            where = f"{file}: the compressed file is cut off or damaged ({error})"
            if not self.asked.skip_broken:
                raise ProfileError(f"{where}; --skip-broken replays the lines before") from None
            self.cut = where

    def _lines(self, file: Path) -> Iterator[tuple[int, Any]]:
        parse = parser()
        for number, line in lines(file, self.told):
            try:
                row = parse(line)
            except (ValueError, RecursionError) as error:
                if number == 1 and _is_header(line):
                    raise ProfileError(
                        f"{file}:1: a table such as CSV has lengths but no block hashes: what a cache "
                        "hits cannot be known from it"
                    ) from None
                cut = "" if line.endswith(b"\n") else ", and the last line: the file may be cut off"
                self._problem(file, number, f"not valid JSON{cut} ({str(error).split(':')[0]})")
                continue
            yield number, row

    def _document(self, file: Path) -> Iterator[tuple[int, Any]]:
        """Yield what a .json file holds: one object, a list of them, or one on each line after all."""
        found, size = [], 0
        for number, line in lines(file, self.told):
            found.append((number, line))
            size += len(line)
            if size > MOST_LINE:
                raise ProfileError(f"{file}: more than {MOST_LINE // 2**20} MiB in one JSON document")
        parse = parser()
        try:
            data = parse(b"".join(line for _, line in found)) if found else []
            rows = [(1, row) for row in (data if isinstance(data, list) else [data])]
        except (ValueError, RecursionError) as error:
            try:
                rows = [(number, parse(line)) for number, line in found]
            except (ValueError, RecursionError):
                return self._problem(file, 1, f"not valid JSON ({str(error).split(':')[0]})")
        yield from rows
        return None

    def _problem(self, file: Path, number: int, text: str) -> None:
        if not self.asked.skip_broken:
            raise ProfileError(f"{file}:{number}: {text}; --skip-broken counts such lines and goes on")
        self.broken.append((self.files.index(file), number, text))

    def _first_broken(self) -> str:
        """Return which broken line is the first, with its file where there are several, and what is wrong."""
        file, number, text = self.broken[0]
        of = f" of {self.files[file].name}" if len(self.files) > 1 else ""
        return f"line {number}{of}: {text}"

    def _built(self, reader: Dialect, found: Gathered) -> Trace:
        weights = None if found.names is None else reader.weights(found.names)
        size, sized = 0, ()  # type: int, tuple[Finding, ...]
        if weights is None:
            stated = reader.stated or self.asked.block_tokens
            sizes = block_tokens_of(found, reader.usual_block, stated, tuple(map(str, self.files)))
            size, sized = sizes.block_tokens, sizes.findings
            found = self._fitting(found, sizes)
        chains = chained(found.runs)
        if weights is not None and chains.component is not None:
            weights = weights[chains.component]
        trace = Trace(
            name=Path(self.path).name,
            dialect=reader.name,
            block_tokens=size,
            run_first=chains.runs.first,
            run_blocks=chains.runs.blocks,
            run_start=chains.runs.start,
            input_tokens=found.input_tokens,
            output_tokens=found.output_tokens,
            time=found.time,
            session=found.session,
            tenant=found.tenant,
            sessions=found.sessions,
            tenants=found.tenants,
            block_weight=weights,
            component=chains.component,
            agent=found.agent,
            findings=(*self._lost(), *findings_of(found, chains, size), *sized, *reader.findings()),
        )
        return replace(trace, findings=(*both_rates(trace), *trace.findings))

    def _fitting(self, found: Gathered, sizes: Sizes) -> Gathered:
        """Return the requests whose blocks fit their lengths; others are refused, or counted."""
        for request in np.flatnonzero(sizes.wrong).tolist():
            text = f"{sizes.problem(found, request)}, though most lines fit that size"
            self._problem(self.files[found.files[request]], int(found.lines[request]), text)
        self.broken.sort()
        return some_of(found, ~sizes.wrong) if sizes.wrong.any() else found

    def _lost(self) -> tuple[Finding, ...]:
        found = []
        if self.cut is not None:
            found.append(Finding("cut_off", 1, f"{self.cut}: what follows is missing.", warning=True))
        if self.broken:
            said = (
                f"Broken lines that are left out: {len(self.broken):,}; the first is {self._first_broken()}."
            )
            shown = tuple(line for _, line, _ in self.broken[:SHOWN_LINES])
            found.append(Finding("broken_lines", len(self.broken), said, shown, warning=True))
        return tuple(found)


def _is_header(line: bytes) -> bool:
    """Tell whether a line names the columns of a table: words between commas, without sentences.

    >>> _is_header(b"TIMESTAMP,ContextTokens,GeneratedTokens"), _is_header(b"# Traces, and what they hold")
    (True, False)
    """
    try:
        text = line.decode().strip()
    except UnicodeDecodeError:
        return False
    return "," in text and ", " not in text and text.isprintable() and text[0] not in "{[#"


def _batch(row: Any) -> Any:  # noqa: ANN401 - as parsed
    """Return a batch of KV events that was dumped as an array (time, events, perhaps a rank) by name."""
    if isinstance(row, list) and len(row) >= 2 and isinstance(row[1], list):
        return {"ts": row[0], "events": row[1]}
    return row
