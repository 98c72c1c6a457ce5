"""Output of NVIDIA's nvbandwidth, as text or JSON, versions 0.4 to 0.10.

Cells are in the unit that the description of their matrix ends with, GB/s of 10^9 bytes; N/A stands where a
pair has no path.  Tests that the machine cannot do are waived and have no matrix.  The bidirectional tests
report the one direction that their name begins with, while the other one is busy.
"""

from collections.abc import Iterator, Mapping

from kvcalc.probe.importers import nvbandwidth_json, nvbandwidth_text
from kvcalc.probe.importers.nvbandwidth_matrix import Matrix, is_bandwidth
from kvcalc.probe.importers.nvbandwidth_text import Told
from kvcalc.probe.importers.rows import FASTEST_LINK, Imported, told
from kvcalc.probe.results import Measurement
from kvcalc.records import record

BUFFER = 512 * 2**20
"""Size of nvbandwidth's buffers where the file does not tell another [byte]."""


@record
class Kind:
    """What one of its tests measures."""

    series: str
    path: str
    direction: str
    test: str
    counted: str = "one_way"


_KINDS: Mapping[str, Kind] = {
    "host_to_device_memcpy": Kind("h2d.pinned", "host-device", "h2d", "H1"),
    "device_to_host_memcpy": Kind("d2h.pinned", "host-device", "d2h", "H1"),
    "host_to_device_bidirectional_memcpy": Kind("duplex.h2d", "host-device", "h2d", "H3"),
    "device_to_host_bidirectional_memcpy": Kind("duplex.d2h", "host-device", "d2h", "H3"),
    "all_to_host_memcpy": Kind("d2h.under_load", "host-device", "d2h", "G1"),
    "host_to_all_memcpy": Kind("h2d.under_load", "host-device", "h2d", "G1"),
    "all_to_host_bidirectional_memcpy": Kind("d2h.under_load.duplex", "host-device", "d2h", "G1"),
    "host_to_all_bidirectional_memcpy": Kind("h2d.under_load.duplex", "host-device", "h2d", "G1"),
    "device_to_device_memcpy_read": Kind("peer.read", "device-device", "read", "G1"),
    "device_to_device_memcpy_write": Kind("peer.write", "device-device", "write", "G1"),
    "device_to_device_bidirectional_memcpy_read": Kind("peer.duplex.read", "device-device", "read", "G1"),
    "device_to_device_bidirectional_memcpy_write": Kind("peer.duplex.write", "device-device", "write", "G1"),
    "device_local_copy": Kind("memory.local_copy", "device", "copy", "D1"),
}
"""Test without its last word, which is the mechanism -> what it is here."""
_MECHANISMS = {"ce": "copy_engine", "sm": "kernel", "tma": "kernel_tma"}


def read(text: str, name: str) -> Imported:
    """Return the measurements of a file.

    Raises
    ------
    ProfileError
        If it is broken; names file and line.
    """
    if text.lstrip().startswith("{"):
        return _imported(nvbandwidth_json.read(text, name))
    return _imported(nvbandwidth_text.read(text, name))


def _imported(file: Told) -> Imported:
    rows: list[Measurement] = []
    left = list(file.notes)
    for matrix in file.matrices:
        kind, mechanism = _kind(matrix.name)
        if kind is None or not is_bandwidth(matrix):
            left.append(f"{matrix.name}: not a bandwidth that a plan uses; left out")
            continue
        rows += _rows(matrix, kind, mechanism, file.buffer or BUFFER)
    assumed = (
        ()
        if file.buffer
        else (f"buffers of {BUFFER // 2**20} MiB, nvbandwidth's default; the file does not say",)
    )
    tool = f"nvbandwidth {file.version}"
    return Imported(tool, tuple(rows), file.devices, tuple(left), file.driver, assumed)


def _kind(name: str) -> tuple[Kind | None, str]:
    stem, _, last = name.rpartition("_")
    if last in _MECHANISMS:
        return _KINDS.get(stem), _MECHANISMS[last]
    return _KINDS.get(name), _MECHANISMS["ce"]


def _rows(matrix: Matrix, kind: Kind, mechanism: str, size: float) -> Iterator[Measurement]:
    suffix = "" if mechanism == "copy_engine" else f".{mechanism}"
    for row, cells in enumerate(matrix.cells):
        for column, cell in enumerate(cells):
            if cell is None:
                continue
            place = f".cpu{row}" if kind.path == "host-device" and row else ""
            place = f".from{row}" if kind.path == "device-device" else place
            beyond = kind.path == "host-device" and cell * matrix.unit > FASTEST_LINK
            yield told(
                test=kind.test,
                series=f"{kind.series}{suffix}{place}",
                path=kind.path,
                direction=kind.direction,
                counted=kind.counted,
                mechanism=mechanism,
                size=size,
                rate=cell * matrix.unit,
                device=column,
                pinned=True if kind.path == "host-device" else None,
                in_flight=2 if "duplex" in kind.series else 1,
                flags=("implausible",) if beyond else (),
            )
