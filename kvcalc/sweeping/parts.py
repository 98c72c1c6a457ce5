"""Chunks that a run has finished, in a folder beside its target, so that a killed run can go on."""

import hashlib
import json
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kvcalc.documents import write_bytes, write_text
from kvcalc.errors import SettingsError
from kvcalc.sweeping.chunks import Chunk

SCHEMA = "kvcalc.sweep-parts/1"
_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Parts:
    """The folder of one sweep's finished chunks."""

    folder: Path
    count: int  # chunks of the whole sweep

    @classmethod
    def beside(cls, target: str, question: str, count: int) -> "Parts":
        """Return the folder of a sweep that will be written to `target`, emptied if it was another's.

        `question` is a text in which everything stands that the rows depend on.
        """
        path = Path(target)
        if not path.parent.is_dir():
            raise SettingsError(f"cannot write {target}: no such file or directory")
        if path.is_dir():
            raise SettingsError(f"cannot write {target}: is a folder")
        parts = cls(path.with_name(f".{path.name}.parts"), count)
        manifest = json.dumps(
            {"schema": SCHEMA, "question": hashlib.sha256(question.encode()).hexdigest(), "chunks": count}
        )
        if parts._manifest() != manifest:
            parts.remove()
            try:
                parts.folder.mkdir()
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise SettingsError(f"cannot write {parts.folder}: {reason}") from None
            write_text(parts.folder / _MANIFEST, manifest)
        return parts

    def _manifest(self) -> str:
        file = self.folder / _MANIFEST
        return file.read_text(encoding="utf-8").rstrip("\n") if file.is_file() else ""

    def missing(self) -> list[int]:
        """Return the numbers of the chunks that are still to be computed."""
        return [number for number in range(self.count) if not self._file(number).is_file()]

    def keep(self, number: int, chunk: Chunk) -> None:
        """Keep a finished chunk: its file is there whole or not at all."""
        write_bytes(self._file(number), chunk.to_bytes())

    def __iter__(self) -> Iterator[Chunk]:
        """Yield all chunks in order, one in memory at a time."""
        for number in range(self.count):
            file = self._file(number)
            try:
                chunk = Chunk.from_bytes(file.read_bytes())
            except (OSError, ValueError, KeyError, zipfile.BadZipFile):
                raise SettingsError(
                    f"{file}: cannot be read; remove the folder {self.folder} and start again"
                ) from None
            yield chunk

    def remove_empty(self) -> None:
        """Remove the folder if no chunk is in it, since there is nothing to go on with."""
        if len(self.missing()) == self.count:
            self.remove()

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _file(self, number: int) -> Path:
        return self.folder / f"{number:06d}.npz"
