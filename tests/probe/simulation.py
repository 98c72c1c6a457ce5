"""Series measured on a simulated device, as the link test measures them on a real one."""

from kvcalc.probe.backends.simulated import Behaviour, SimulatedDevice
from kvcalc.probe.measurements.link import SIZES
from kvcalc.probe.sweep import Budget, Series, Step, series_of, sweep
from kvcalc.probe.timing import DeviceTimer

COPIES = 3  # at most in one sample: a virtual clock needs no more


LADDER = tuple(sorted(SIZES))


def measured(behaviour, samples=9, sizes=LADDER, bound=None):
    """Return the rows and the fit of one direction of a device that behaves so."""
    return measured_on(SimulatedDevice(behaviour), samples, sizes, bound)[:2]


def measured_on(device, samples=9, sizes=LADDER, bound=None):
    """Return the rows and the fit of one direction of a device, and its clock at the end."""
    queue = device.queue()
    host, memory = device.host(max(sizes), pinned=True), device.memory(max(sizes))
    device.fill(host, 5)

    def step(size):
        target, source = device.part(memory, 0, size), device.part(host, 0, size)
        return Step(
            chunk=float(size),
            work=lambda: device.copy(target, source),
            verify=lambda: device.same(target, source),
            clear=lambda: device.fill(target, 0),
            most_repeats=COPIES,
        )

    series = Series("H1", "h2d.pinned", "host-device", "h2d", "one_way", "copy_engine", 0, True, bound=bound)
    budget = Budget(samples, float("inf"), warm=False)
    rows, fit = series_of(series, sweep(DeviceTimer(queue), [step(size) for size in sizes], budget))
    return rows, fit, device.clock


def inside(value, ends):
    """Tell whether a true value lies in a stated interval."""
    return ends is not None and ends[0] <= value <= ends[1]


__all__ = ["Behaviour", "inside", "measured"]
