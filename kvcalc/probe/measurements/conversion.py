"""C1: conversion of stored formats on the device, bytes read and written counted."""

from kvcalc.probe.backends.protocol import PartlyError, UnavailableError
from kvcalc.probe.session import MIB, Session
from kvcalc.probe.sweep import Series, Step
from kvcalc.probe.timing import DeviceTimer

CONVERSIONS = ("fp8_to_bf16", "int8_scaled_to_bf16", "bf16_to_fp8")
ELEMENTS = 128 * MIB
"""Numbers that are converted at once [1]: more than any cache holds."""


def run(session: Session) -> None:
    """Time each conversion that this device has in hardware."""
    device = session.device
    elements = ELEMENTS if device.facts().memory_free is not None else ELEMENTS // 16
    timer, missing = DeviceTimer(device.queue()), []
    for done, name in enumerate(CONVERSIONS):
        try:
            work, traffic = device.convert(name, elements)
        except UnavailableError as error:
            missing.append(f"{name}: {error}")
            continue
        series = Series(
            test="C1",
            name=f"convert.{name}",
            path="device",
            direction="copy",
            counted="read+write",
            mechanism=name,
            device=device.index,
            bound=device.facts().memory_bound,
            fitted=False,
        )
        step = Step(float(elements), work, counted=traffic)
        session.measure(series, timer, [step], 1 / (len(CONVERSIONS) - done))
        del work, step
        device.release()
    if missing:
        raise PartlyError("; ".join(missing))
