"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kvcalc.errors import SettingsError


@contextmanager
def replacing(path: "str | Path") -> Iterator[Path]:
    """Give a file beside `path` to write, and put it in place of `path` when all went well.

    Raises
    ------
    SettingsError
        If the target cannot be written; nothing is left behind.
    """
    target = Path(path)
    try:
        target = Path(os.path.realpath(target))
        if target.exists() and not target.is_file() and not target.is_dir():
            yield target  # a pipe or device has no beside
            return
        if target.is_dir():
            raise IsADirectoryError(0, "is a folder")
        # The suffix stays last, since chart and table writers choose the format by it.
        beside = target.with_name(f".{target.stem}.{os.getpid()}{target.suffix}")
        try:
            yield beside
            os.replace(beside, target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise SettingsError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None


def write_text(path: "str | Path", text: str) -> None:
    """Write a text file whole or not at all."""
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8", newline="\n")


def write_bytes(path: "str | Path", content: bytes) -> None:
    """Write a file of bytes, such as a picture, whole or not at all."""
    with replacing(path) as beside:
        beside.write_bytes(content)
