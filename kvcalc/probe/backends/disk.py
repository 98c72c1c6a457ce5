"""A disk read past the operating system's cache: O_DIRECT, aligned buffers, a thread for each request."""

import errno
import mmap
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import repeat
from pathlib import Path

import numpy as np

from kvcalc.errors import SettingsError
from kvcalc.probe.backends.protocol import UnavailableError
from kvcalc.probe.results import DiskFacts

ALIGNMENT = 4096
"""Offsets and sizes of direct I/O are multiples of this [byte]."""
WRITE_PIECE = 8 * 2**20
"""Bytes written at once while the file is made [byte]."""
SYNC_PIECES = 16
"""Pieces after which what was written is sent to the disk [1]."""
GOOD_FILE = 8 * 2**30
"""Size of a file that no drive's cache holds [byte]."""
ASK_ABOVE = 2**30
"""Largest file that is written without being asked for [byte]."""
KEEP_FREE = 0.1
"""Share of the free space that stays free [1]."""

NOT_DISKS = frozenset({"tmpfs", "ramfs", "hugetlbfs", "devtmpfs"})
"""File systems in memory: there is nothing to measure."""
UNSURE = frozenset({"overlay", "nfs", "nfs4", "cifs", "smb3", "fuse", "9p", "virtiofs", "ceph", "lustre"})
"""File systems whose figure would be of a network or of layers; measured when their folder is named."""


def filesystem_of(folder: Path, mountinfo: Path = Path("/proc/self/mountinfo")) -> tuple[str, str]:
    """Return the kind of the file system that holds a folder, and the number of its device."""
    best, found = "", ("unknown", "")
    with suppress(OSError):
        real = str(folder.resolve())
        for line in mountinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            left, _, right = line.partition(" - ")
            point, kind = _unescaped(left.split()[4]), right.split()[0]
            inside = real == point or real.startswith(point.rstrip("/") + "/") or point == "/"
            if inside and len(point) >= len(best):
                best, found = point, (kind.split(".")[0], left.split()[2])
    return found


def _unescaped(text: str) -> str:
    return text.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")


def facts_of(folder: Path, size: int) -> DiskFacts:
    """Return what the kernel says of the disk under a folder; no name and no place."""
    kind, number = filesystem_of(folder)
    block = Path("/sys/dev/block") / number
    with suppress(OSError):
        block = block.resolve()
    queue = block / "queue" if (block / "queue").exists() else block.parent / "queue"
    rotational, scheduler = _read(queue / "rotational"), _read(queue / "scheduler")
    chosen = scheduler.partition("[")[2].partition("]")[0] or scheduler
    name = queue.parent.name
    return DiskFacts(
        filesystem=kind,
        rotational=rotational == "1" if rotational in ("0", "1") else None,
        scheduler=chosen or None,
        virtual=name.startswith(("vd", "xvd", "loop", "dm-")) if queue.exists() else None,
        free=float(_free(folder)),
        file=float(size),
    )


def _read(file: Path) -> str:
    with suppress(OSError):
        return file.read_text(encoding="ascii", errors="replace").strip()
    return ""


def _free(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def check_disk(folder: Path, size: int | None) -> None:
    """Refuse a folder that the user named and that is none, and a file that finds no room.

    Raises
    ------
    SettingsError
        If the disk test could not run as it was asked for.
    """
    if not folder.exists():
        raise SettingsError(f"--disk: {folder} is not there")
    if not folder.is_dir():
        raise SettingsError(f"--disk: {folder} is a file; name a folder")
    room = (1 - KEEP_FREE) * _free(folder)
    if size is not None and size > room:
        raise SettingsError(
            f"--disk-bytes: {size / 1e9:,.6g} GB find no room; at most {room / 1e9:.3g} GB do in {folder}"
        )


def check_folder(folder: Path, size: int, named: bool) -> None:
    """Refuse a place where the figure would not be that of a disk.

    Raises
    ------
    UnavailableError
        If the folder is in memory, behind a network, full, or cannot be written.
    """
    if not hasattr(os, "O_DIRECT"):
        raise UnavailableError("this system has no O_DIRECT; the disk would be read from its cache")
    if not folder.is_dir():
        raise UnavailableError("the folder for the disk test is not there")
    kind, _ = filesystem_of(folder)
    if kind in NOT_DISKS:
        raise UnavailableError(f"{kind} is memory, not a disk; name a folder on a disk with --disk")
    if kind in UNSURE and not named:
        raise UnavailableError(f"{kind} is a network or a layered file system; name its folder with --disk")
    if size > (1 - KEEP_FREE) * _free(folder):
        raise UnavailableError(f"no room for a file of {size / 1e9:.3g} GB")
    if not os.access(folder, os.W_OK):
        raise UnavailableError("the folder for the disk test cannot be written")


@contextmanager
def temporary_file(
    folder: Path, size: int, seed: int, beat: Callable[[], None] = lambda: None
) -> Iterator[int]:
    """Give a file of incompressible data, opened for direct reads; it has no name, so nothing is left behind.

    Raises
    ------
    UnavailableError
        If the file system takes no direct I/O.
    """
    handle, name = tempfile.mkstemp(prefix=".kvcalc-probe-", dir=folder)
    direct = -1
    try:
        try:
            direct = os.open(name, os.O_RDONLY | os.O_DIRECT)
        except OSError as error:
            raise UnavailableError(f"no direct I/O here: {(error.strerror or 'error').lower()}") from None
        finally:
            os.unlink(name)  # the handles keep it; a killed probe leaves no file
        _write(handle, size, seed, beat)
        yield direct
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EINVAL, errno.EIO, errno.EDQUOT):
            raise UnavailableError(f"the disk refused: {(error.strerror or 'error').lower()}") from None
        raise
    finally:
        os.close(handle)
        if direct >= 0:
            os.close(direct)


def content(seed: int, piece: int, size: int) -> bytes:
    """Return the data of one piece of the file, always the same for its seed and place."""
    return np.random.default_rng([seed, piece]).bytes(size)


def _write(handle: int, size: int, seed: int, beat: Callable[[], None]) -> None:
    for piece in range(size // WRITE_PIECE):
        left = memoryview(content(seed, piece, WRITE_PIECE))
        while left:
            left = left[os.write(handle, left) :]
        if piece % SYNC_PIECES == SYNC_PIECES - 1:
            os.fsync(handle)  # a deadline is looked at between writes, not behind a long last one
        beat()
    os.fsync(handle)
    with suppress(OSError, AttributeError):
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)


class DiskReads:
    """Random reads of one size, so many at once, each place of the file once before any is read again."""

    def __init__(self, handle: int, file_size: int, block: int, depth: int, seed: int) -> None:
        self.block, self.depth = block, depth
        self._handle = handle
        self._places = np.random.default_rng([seed, block, depth]).permutation(file_size // block) * block
        self._next = 0
        self._pool = ThreadPoolExecutor(depth) if depth > 1 else None
        self._buffers = [mmap.mmap(-1, max(block, ALIGNMENT)) for _ in range(depth)]

    def read(self, count: int) -> Callable[[], None]:
        """Return work that reads `count` places, `depth` at a time."""

        def work() -> None:
            places = [self._place() for _ in range(count)]
            if self._pool is None:
                self._share(places, self._buffers[0])
                return
            shares = [places[at :: self.depth] for at in range(self.depth)]
            list(self._pool.map(self._share, shares, self._buffers))

        return work

    def _place(self) -> int:
        place = int(self._places[self._next % len(self._places)])
        self._next += 1
        return place

    def _share(self, places: list[int], buffer: mmap.mmap) -> None:
        view = memoryview(buffer)[: self.block]
        for place, target in zip(places, repeat(view)):
            if os.preadv(self._handle, [target], place) != self.block:
                raise UnavailableError("the disk returned fewer bytes than asked")
        view.release()

    def verified(self, seed: int) -> bool:
        """Read one place and compare it with what was written there."""
        place = self._place()
        self._share([place], self._buffers[0])
        piece, offset = divmod(place, WRITE_PIECE)
        length = min(self.block, WRITE_PIECE - offset)
        return self._buffers[0][:length] == content(seed, piece, WRITE_PIECE)[offset : offset + length]

    def close(self) -> None:
        """Let threads and buffers go."""
        if self._pool is not None:
            self._pool.shutdown()
        for buffer in self._buffers:
            buffer.close()
