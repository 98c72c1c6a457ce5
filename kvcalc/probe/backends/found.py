"""Which devices there are, and where there are none, why, and what to do about it."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kvcalc.probe.backends.protocol import Accelerator
from kvcalc.probe.backends.torch_device import TorchDevice
from kvcalc.records import record

INSTALL = "pip install 'kvcalc[gpu]'"
HOST_PARTS = "host memory and disk are measured without it"


@record
class Devices:
    """The devices that torch drives on this machine."""

    devices: tuple[Accelerator, ...]
    missing: tuple[str, ...]  # why there are none
    torch: Any = None
    driver: str | None = None


def _torch() -> Any:  # noqa: ANN401 - the module
    import torch

    return torch


def find(
    load: Callable[[], Any] = _torch,
    environment: Sequence[tuple[str, str]] | None = None,
    root: Path = Path("/"),
) -> Devices:
    """Return the devices, or which of the usual reasons there is for having none."""
    told = dict(os.environ if environment is None else environment)
    try:
        torch = load()
    except ImportError:
        return Devices((), (f"torch is not installed, so no GPU was measured; {INSTALL} ({HOST_PARTS})",))
    except OSError as error:  # a library of CUDA that torch was built with is not there
        return Devices((), (f"torch cannot be loaded ({_short(error)}); {INSTALL} ({HOST_PARTS})",))
    for kind, name in (("cuda", "cuda"), ("xpu", "xpu"), ("mps", "mps")):
        count = _count(torch, name)
        if count:
            real = "rocm" if kind == "cuda" and getattr(torch.version, "hip", None) else kind
            return _opened(torch, real, count)
    return Devices((), (_why_none(torch, told, root),), torch)


def _opened(torch: Any, kind: str, count: int) -> Devices:  # noqa: ANN401
    devices: list[TorchDevice] = []
    missing: list[str] = []
    for index in range(count):
        try:
            devices.append(TorchDevice(torch, kind, index))
        except RuntimeError as error:  # busy, in exclusive mode, or broken
            missing.append(f"device {index} cannot be used ({_short(error)}); {HOST_PARTS}")
    driver = devices[0].nvml.driver() if devices and devices[0].nvml is not None else None
    return Devices(tuple(devices), tuple(missing), torch, driver)


def _count(torch: Any, name: str) -> int:  # noqa: ANN401
    module = getattr(torch, name, None)
    available = getattr(module, "is_available", lambda: False)
    if name == "mps":
        available = getattr(getattr(torch.backends, "mps", None), "is_available", lambda: False)
    try:
        if not available():
            return 0
        return int(getattr(module, "device_count", lambda: 1)())
    except RuntimeError:
        return 0


def _why_none(torch: Any, told: dict[str, str], root: Path) -> str:  # noqa: ANN401
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        if name in told and told[name].strip() in ("", "-1"):
            return f"all devices are hidden by {name}; unset it to measure one ({HOST_PARTS})"
    version = getattr(torch, "version", None)
    if getattr(version, "cuda", None) is None and getattr(version, "hip", None) is None:
        return f"this torch is built for the CPU only; install one for your GPU: {INSTALL} ({HOST_PARTS})"
    if not any((root / name).exists() for name in ("dev/nvidiactl", "dev/nvidia0", "dev/kfd", "dev/dxg")):
        return f"no GPU or no driver for one: neither /dev/nvidia0 nor /dev/kfd is there ({HOST_PARTS})"
    return f"torch cannot use the GPU: {_initialization_error(torch)} ({HOST_PARTS})"


def _initialization_error(torch: Any) -> str:  # noqa: ANN401
    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as error:
        return f"{_short(error)}; the driver may be older than torch {torch.__version__} needs"
    return "no reason is given"


def _short(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    words = [word for word in (text[0] if text else type(error).__name__).split() if "/" not in word]
    return " ".join(words)[:120]
