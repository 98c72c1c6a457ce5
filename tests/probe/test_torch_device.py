"""Every test of the probe by torch's own calls: on torch where it is installed, else on what stands for it.

Nothing here needs a GPU.  With the fake module all CUDA paths run, streams and events included; with a real
torch the same measurements run on its CPU, which executes the copies, gathers, conversions and products.
"""

import ctypes
import importlib.util
from functools import partial

import pytest

from kvcalc.probe.backends import torch_device
from kvcalc.probe.backends.cuda_runtime import CudaRuntime
from kvcalc.probe.backends.found import find
from kvcalc.probe.backends.nvml import Nvml
from kvcalc.probe.backends.protocol import UnavailableError
from kvcalc.probe.backends.torch_device import TorchDevice
from kvcalc.probe.measurements import TESTS
from kvcalc.probe.options import Options
from kvcalc.probe.run import Run
from kvcalc.probe.sweep import Budget
from tests.probe import fake_torch

SMALL = 2**20
DEVICE_TESTS = tuple(test.id for test in TESTS if test.needs == "device")


class Call:
    """A function of a C library, on which ctypes users set a result type."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *arguments):
        return self.function(*arguments)


class Library:
    """A libcudart whose copies are memmoves."""

    def __init__(self, version=12_080):
        self.cudaRuntimeGetVersion = Call(lambda pointer: self._set(pointer, version))
        self.cudaGetLastError = Call(lambda: 0)
        self.cudaMemcpyAsync = Call(self._copy)
        self.cudaMemcpyBatchAsync = Call(self._batch)
        self.cudaHostAlloc = Call(lambda pointer, size, flags: self.code)
        self.cudaFreeHost = Call(lambda pointer: 0)
        self.cudaHostRegister = Call(lambda pointer, size, flags: self.code)
        self.cudaHostUnregister = Call(lambda pointer: 0)
        self.code, self.batch_arguments = 0, 0

    @staticmethod
    def _set(pointer, version):
        pointer._obj.value = version
        return 0

    def _copy(self, target, source, size, kind, stream):
        assert (kind.value, stream.value) == (4, 7)
        ctypes.memmove(target.value, source.value, size.value)
        return self.code

    def _batch(self, targets, sources, sizes, count, *rest):
        self.batch_arguments = 4 + len(rest)
        for target, source, size in zip(targets, sources, sizes, strict=True):
            ctypes.memmove(target, source, size)
        return self.code


@pytest.fixture
def library(monkeypatch):
    """A CUDA runtime that is loaded."""
    made = Library()
    monkeypatch.setattr(CudaRuntime, "loaded", classmethod(lambda cls: cls(made)))
    return made


@pytest.fixture
def small(monkeypatch):
    """Sizes that the CPU moves in no time."""
    from kvcalc.probe.measurements import (
        conversion,
        duplex,
        interference,
        link,
        memory,
        pageable,
        pinning,
        scattered,
    )

    brief = partial(Budget, sample_seconds=1e-4, warm=False)
    monkeypatch.setattr("kvcalc.probe.session.Budget", brief)
    monkeypatch.setattr(link, "SIZES", tuple(4096 * 4**step for step in range(6)))
    monkeypatch.setattr(link, "QUICK_MOST", 4 * SMALL)
    monkeypatch.setattr(pageable, "SIZES", (2**16, 2**18, SMALL))
    for module, name in ((duplex, "SIZE"), (interference, "COPY")):
        monkeypatch.setattr(module, name, SMALL)
    monkeypatch.setattr(memory, "LEAST", SMALL)
    monkeypatch.setattr(memory, "CACHE_MULTIPLE", 0)
    monkeypatch.setattr(memory, "SIDE", 64)
    monkeypatch.setattr(interference, "SIDE", 64)
    monkeypatch.setattr(interference, "GIB", SMALL)
    monkeypatch.setattr(interference, "WINDOW", 0.0005)
    monkeypatch.setattr(conversion, "ELEMENTS", 2**16)
    monkeypatch.setattr(pinning, "SIZES", (2**16, SMALL))
    monkeypatch.setattr(scattered, "MOST_BYTES", 4 * SMALL)
    monkeypatch.setattr(scattered, "CHUNKS", (512, 4096, 32768))


def run(device, *tests, level="default"):
    """Return the result of some tests of one device."""
    return Run(Options(level=level, tests=tests, max_seconds=60.0), [device]).result()


@pytest.fixture
def fake(monkeypatch):
    """A machine with one GPU that torch drives and NVML does not know."""
    monkeypatch.setattr(Nvml, "open", classmethod(lambda cls, address, index: None))
    return fake_torch.machine()


def test_every_device_test_runs_on_cuda_calls(fake, library, small):
    result = run(TorchDevice(fake, "cuda"), *DEVICE_TESTS, level="full")
    assert {
        test.id: (test.status, test.reason) for test in result.tests if test.status not in ("ok", "unstable")
    } == {}
    assert {row.test for row in result.measurements} == set(DEVICE_TESTS)
    compared = [row for row in result.measurements if row.verified is not None]
    assert len(compared) > 30
    assert all(row.verified for row in compared)


@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="torch is not installed; the same code runs on fake_torch in the test above",
)
def test_every_device_test_runs_on_the_cpu_of_a_real_torch(small):
    import torch

    result = run(TorchDevice(torch, "cpu"), *DEVICE_TESTS)
    failed = {test.id: test.reason for test in result.tests if test.status == "failed"}
    assert failed == {}
    assert {test.id for test in result.tests if test.status == "unsupported"} <= {"P1"}
    assert all(row.verified for row in result.measurements if row.verified is not None)
    assert {"H1", "H2", "H3", "S1", "D1", "C1", "O1", "K1"} <= {row.test for row in result.measurements}


def test_a_copy_that_loses_bytes_is_found(fake, library, small, monkeypatch):
    monkeypatch.setattr(TorchDevice, "copy", lambda self, target, source: None)
    result = run(TorchDevice(fake, "cuda"), "H1")
    assert all(row.verified is False for row in result.measurements)
    assert [check.verdict for check in result.checks if check.id == "verification"] == ["fail"]


@pytest.mark.parametrize(("version", "arguments"), [(12_080, 9), (13_000, 8)])
def test_the_batched_copy_has_the_signature_of_its_cuda(version, arguments):
    made = Library(version)
    source, target = (ctypes.create_string_buffer(bytes([mark]) * 64) for mark in (7, 0))
    pairs = [(ctypes.addressof(target) + at, ctypes.addressof(source) + at, 16) for at in (0, 32)]
    CudaRuntime(made).batch(pairs, lambda: 7)()
    assert made.batch_arguments == arguments  # 13.0 took failIdx away
    assert target.raw[:64] == (b"\7" * 16 + b"\0" * 16) * 2


def test_an_older_cuda_has_no_batched_copy():
    with pytest.raises(UnavailableError, match=r"needs CUDA 12\.8"):
        CudaRuntime(Library(12_040)).batch([(0, 0, 1)], lambda: 0)


def test_a_missing_mechanism_leaves_the_others(fake, small):
    # No libcudart is loaded here: copies by ctypes cannot be timed, copies by torch can.
    result = run(TorchDevice(fake, "cuda"), "S1", "P1")
    scattered, pinning = result.tests
    assert scattered.status == "ok"
    assert "percall_c: libcudart is not loaded" in scattered.reason
    assert pinning.status == "unsupported"
    assert {row.mechanism for row in result.measurements} >= {"percall_python", "merged", "gather_stage"}


def test_a_refused_pin_is_a_result_and_not_an_error(fake, library, small):
    library.code = 2
    result = run(TorchDevice(fake, "cuda"), "P1")
    assert result.tests[0].status == "unsupported"
    assert (
        "cudaHostAlloc failed with CUDA error 2" in result.tests[0].reason
        or "cudaHostRegister" in result.tests[0].reason
    )


def test_torch_that_cannot_pin_leaves_the_rest(fake, small, monkeypatch):
    monkeypatch.setattr(fake_torch, "PIN_FAILS", [RuntimeError("CUDA error: invalid argument\nsecond line")])
    result = run(TorchDevice(fake_torch.machine(), "cuda"), "H1", "D1")
    assert result.tests[0].status == "unsupported"
    assert result.tests[1].status in ("ok", "unstable")
    assert "second line" not in result.tests[0].reason


def test_fp8_is_not_timed_where_it_is_emulated(library, small):
    device = TorchDevice(fake_torch.machine(name="NVIDIA A100-SXM4-80GB", capability=(8, 0)), "cuda")
    result = run(device, "C1")
    assert "emulates fp8" in result.tests[0].reason
    assert {row.mechanism for row in result.measurements} == {"int8_scaled_to_bf16"}


def test_unified_memory_is_flagged(fake):
    device = TorchDevice(fake_torch.machine(name="NVIDIA GB10", integrated=1), "cuda")
    facts = device.facts()
    assert facts.link.kind == "unified"
    assert "unified" in facts.flags


def test_a_device_that_no_evidence_covers_says_so(fake):
    assert "not_verified" in TorchDevice(fake, "cuda").facts().flags


def gone(error):
    def load():
        raise error

    return load


@pytest.mark.parametrize(
    ("load", "environment", "words"),
    [
        (gone(ImportError("no torch")), (), "torch is not installed"),
        (gone(OSError("libcudart.so.13: cannot open")), (), "torch cannot be loaded"),
        (
            lambda: fake_torch.machine(count=0),
            (("CUDA_VISIBLE_DEVICES", ""),),
            "hidden by CUDA_VISIBLE_DEVICES",
        ),
        (lambda: fake_torch.machine(count=0), (), "no GPU or no driver"),
    ],
    ids=["missing", "broken", "hidden", "no driver"],
)
def test_why_there_is_no_device_is_said(load, environment, words, tmp_path):
    found = find(load, environment, tmp_path)
    assert found.devices == ()
    (reason,) = found.missing
    assert words in reason
    assert "host memory and disk are measured without it" in reason


def test_torch_for_the_cpu_alone_is_told_from_a_missing_driver(tmp_path):
    torch = fake_torch.machine(count=0)
    torch.version = type("Version", (), {"cuda": None, "hip": None})
    assert "built for the CPU only" in find(lambda: torch, (), tmp_path).missing[0]


def test_an_old_driver_is_quoted(tmp_path):
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidia0").touch()
    reason = find(lambda: fake_torch.machine(count=0), (), tmp_path).missing[0]
    assert "Found no NVIDIA driver" in reason


def test_every_device_is_found(fake):
    assert [device.index for device in find(lambda: fake_torch.machine(count=2), ()).devices] == [0, 1]


def test_a_busy_device_is_named_and_the_others_are_used(monkeypatch, fake):
    real = torch_device.TorchDevice.__init__

    def busy(self, torch, kind, index=0):
        if index == 0:
            raise RuntimeError("all CUDA-capable devices are busy or unavailable")
        real(self, torch, kind, index)

    monkeypatch.setattr(torch_device.TorchDevice, "__init__", busy)
    found = find(lambda: fake_torch.machine(count=2), ())
    assert [device.index for device in found.devices] == [1]
    assert "device 0 cannot be used" in found.missing[0]
