"""What a probe found -> a hardware profile, as plain data that is JSON and so valid YAML.

A measured value keeps the one that it stands instead of, so that a plan can say what the measurement
changes.  What was not measured is quoted from the profile of that machine with its own source, or is an
assumption that says so; nothing is filled in silently.
"""

import json
import re
from collections.abc import Mapping, Sequence

from kvcalc.errors import ProfileError
from kvcalc.probe.derive import link_rate
from kvcalc.probe.fit import BOUND_SLACK
from kvcalc.probe.profile_copies import piece_entry
from kvcalc.probe.profile_disk import disk_reads
from kvcalc.probe.profile_entries import (
    BEFORE,
    Entry,
    around,
    entry_of,
    flop_rate_text,
    is_measured,
    number,
    rate_text,
    time_text,
)
from kvcalc.probe.profile_host import memory_entry, threads_of
from kvcalc.probe.results import DeviceFacts, Measurement, ProbeResult, SeriesFit
from kvcalc.probe.session import usable
from kvcalc.profiles import PROBE, Hardware, Link

SCHEMA = "kvcalc.hardware/1"
PRIOR = "prior"
"""Key of the assumptions that a machine without a profile needs."""
MARK = "written by kvcalc probe"
"""Words by which a later probe knows a file that it may write over."""

SHARE_PRIORS: Mapping[str, tuple[float, float, float]] = {
    "prefill_efficiency": (0.35, 0.5, 0.7),
    "decode_efficiency": (0.6, 0.75, 0.9),
}
"""Low, middle and high shares where nothing is known of a device [1]; those of most built-in profiles."""
CPU_PRIORS: Mapping[str, tuple[float, float, float]] = {
    "prefill_efficiency": (0.4, 0.6, 0.9),
    "decode_efficiency": (0.6, 0.8, 1.0),
}
"""The same of a CPU, as shares of its measured matrix rate and copy traffic [1]."""


def profile_of(result: ProbeResult, base: Hardware | None = None) -> Entry:
    """Return the profile of the measured machine.

    Parameters
    ----------
    result : a complete probe
    base : the built-in profile of this kind of device, where there is one

    Raises
    ------
    ProfileError
        If too little was measured for a profile.
    """
    writer = _Writer(result, base)
    devices = result.machine.devices
    profile = writer.of_device(devices[0]) if devices else writer.of_host()
    if not is_measured(profile):
        raise ProfileError("no profile: nothing that a profile holds was measured")
    return profile


def text_of(profile: Entry) -> str:
    """Return the profile as JSON text."""
    return json.dumps(profile, indent=1, ensure_ascii=False) + "\n"


class _Writer:
    """Puts values and their pedigree together."""

    def __init__(self, result: ProbeResult, base: Hardware | None) -> None:
        self.result, self.base = result, base
        self.sources: dict[str, Entry] = {}
        title = f"kvcalc probe {_version()}, {result.level} level"
        if result.kind == "imported":
            title = f"imported by kvcalc probe {_version()}"
        if any("not_verified" in device.flags for device in result.machine.devices):
            title += ", by a back end that has not yet been verified on a GPU"
        self.sources[PROBE] = {"title": title, "measured": result.created[:10]}

    # whole profiles

    def of_device(self, device: DeviceFacts) -> Entry:
        base = self.base
        head = {
            "schema": SCHEMA,
            "name": base.name if base else _slug(device.name),
            "title": f"{base.title if base else device.name}, as measured",
            "vendor": base.vendor if base else _vendor(device),
            "note": f"{MARK} on {self.result.created[:10]}",
            "sources": self.sources,
        }
        sections = {
            "device": self._device(device),
            "host_to_device": self._link("h2d", device),
            "device_to_host": self._link("d2h", device),
            **self._quoted_section("interconnect"),
            **self._host(),
            **self._storage(),
        }
        return head | sections | self._shares(sections["device"], SHARE_PRIORS)

    def of_host(self) -> Entry:
        """Return the machine as what it is without a device: a CPU that computes in its own memory."""
        environment = self.result.machine.environment
        traffic, peak = self._best("host.copy."), self._row("compute.fp32")
        if traffic is None:
            raise ProfileError("no profile: the copy of host memory was not measured (test M1)")
        if peak is None:
            raise ProfileError("no profile: products of matrices by the CPU were not measured (test M1)")
        capacity = memory_entry(self.result.machine.environment)
        copied = self._measured(traffic, scale=0.5, note=f"half of it: {threads_of(traffic)}")
        via = {"via": "host memory", "bandwidth": copied}
        nominal = self._measured(traffic, note="read and written together: no copy is faster")
        nominal["kind"] = "derived"
        head = {
            "schema": SCHEMA,
            "name": _slug(str(environment.cpu)),
            "title": f"{environment.cpu}, {environment.cpus_allowed:g} CPUs, as measured",
            "vendor": str(environment.cpu).split()[0] if str(environment.cpu) else "unknown",
            "note": f"{MARK} on {self.result.created[:10]}; no GPU was measured, the CPU is the device",
            "sources": self.sources,
        }
        device: Entry = {
            "capacity": capacity,
            "marketed_capacity": {**capacity, "note": "no name plate is known"},
            "bandwidth": self._measured(traffic, note=threads_of(traffic)),
            "flops": self._flops(peak),
            "unified": True,
        }
        link = {**via, "nominal": nominal}
        sections = {"device": device, "host_to_device": link, "device_to_host": link, **self._storage()}
        return head | sections | self._shares(device, CPU_PRIORS)

    # sections

    def _device(self, device: DeviceFacts) -> Entry:
        memory = device.memory or device.memory_runtime
        capacity = self._quoted("device.capacity")
        if memory is not None:
            told = self._said(f"{int(memory)} B", "nominal", "as the driver reports it")
            capacity = self._instead("device.capacity", told)
        if capacity is None:
            raise ProfileError("no profile: neither driver nor runtime told the memory of the device")
        rate = self._row("memory.read") or self._row("memory.copy")
        if rate is None and self.base is None:
            raise ProfileError("no profile: device memory was not measured (test D1)")
        found: Entry = {"capacity": capacity}
        found["marketed_capacity"] = self._quoted("device.marketed_capacity") or dict(capacity)
        note = "" if rate is None else f"{rate.direction} by {rate.mechanism}, {rate.counted} counted"
        bandwidth = None if rate is None else self._measured(rate, note=note)
        found["bandwidth"] = self._instead("device.bandwidth", bandwidth)
        found["flops"] = self._flops(self._row("compute.bf16"))
        for key in ("device.power",):
            found |= {key.rpartition(".")[2]: entry for entry in [self._quoted(key)] if entry}
        if device.compute_capability is not None:
            found["compute_capability"] = {
                **self._said(device.compute_capability, "nominal", "as CUDA tells it")
            }
        if device.integrated or (self.base is not None and self.base.device.unified):
            found["unified"] = True
        return found

    def _flops(self, row: Measurement | None) -> Entry:
        if self.base is not None:
            keys = {dtype: self._quoted(f"device.flops.{dtype}") for dtype in self.base.device.flops}
            return {dtype: entry for dtype, entry in keys.items() if entry}
        if row is None or row.operations is None:
            return {}
        operations = float(row.operations)
        entry = self._said(flop_rate_text(operations / float(row.median)), "measured", "of matrix products")
        if row.median_range is not None:
            ends = [operations / float(end) for end in row.median_range]
            entry["range"] = around(operations / float(row.median), ends, flop_rate_text)
        return {row.series.partition(".")[2]: entry}

    def _link(self, direction: str, device: DeviceFacts) -> Entry:
        section = {"h2d": "host_to_device", "d2h": "device_to_host"}[direction]
        base: Link | None = getattr(self.base, section) if self.base is not None else None
        rate = self._link_bandwidth(direction)
        inside = self._row("memory.copy") if device.integrated else None
        if rate is None and base is None and inside is not None:
            rate = self._measured(inside, scale=0.5, note="one memory: bytes copied once")
        if rate is None and base is None:
            seen = any(row.series == f"{direction}.pinned" for row in self.result.measurements)
            why = (
                "are no measurement: too fast for the link, or wrong"
                if seen
                else "were not measured (test H1)"
            )
            raise ProfileError(f"no profile: copies {direction} from pinned memory {why}")
        link = device.link
        nominal = self._quoted(f"{section}.nominal")
        if link.bound is not None and nominal is None:
            nominal = self._said(
                rate_text(float(link.bound)), "derived", "by generation and width of the link"
            )
        if nominal is None and rate is not None:
            nominal = {**rate, "kind": "derived", "note": "the link is not known; its rate as measured"}
        via = base.via if base else _via(device)
        if rate is not None and base is not None and number(rate["value"]) > BOUND_SLACK * base.nominal:
            raise ProfileError(
                f"no profile: {rate['value']} {direction} are above the {rate_text(base.nominal)} of "
                f"{base.via}, the link of the base; --base names another machine"
            )
        if rate is not None and base is None and link.bound is not None:
            rate["before"] = {"value": rate_text(float(link.bound)), "kind": "derived", "from": PROBE}
        found: Entry = {
            "via": via,
            "bandwidth": self._instead(f"{section}.bandwidth", rate),
            "nominal": nominal,
        }
        latency = self._latency(f"{direction}.pinned", "fixed time of one copy, launch cost hidden")
        rows = self.result.measurements
        known = link_rate(direction, rows, self.result.fits) or (base.bandwidth if base else None)
        piece = piece_entry(rows, direction, known)
        optional = {
            "latency": self._instead(f"{section}.latency", latency),
            "per_piece": self._instead(f"{section}.per_piece", piece),
        }
        return found | {name: entry for name, entry in optional.items() if entry}

    def _link_bandwidth(self, direction: str) -> Entry | None:
        fit = self._fit(f"{direction}.pinned")
        if fit is not None and fit.bandwidth is not None and fit.bandwidth_range is not None:
            entry = self._said(
                rate_text(float(fit.bandwidth)), "measured", "B of t0 + s/B, pinned host memory"
            )
            entry["range"] = around(fit.bandwidth, fit.bandwidth_range, rate_text)
            return entry
        if link_rate(direction, self.result.measurements, self.result.fits) is None:
            return None
        rows = [
            row for row in self.result.measurements if row.series == f"{direction}.pinned" and usable(row)
        ]
        return self._measured(
            max(rows, key=lambda row: row.chunk_bytes), note="at the largest size; no line holds"
        )

    def _latency(self, series: str, note: str) -> Entry | None:
        fit = self._fit(series)
        if fit is None or fit.t0 is None or fit.t0_range is None:
            return None
        entry = self._said(time_text(float(fit.t0)), "measured", note)
        entry["range"] = around(fit.t0, fit.t0_range, time_text)
        return entry

    def _host(self) -> Entry:
        traffic = self._best("host.copy.")
        if traffic is None:
            return {}
        bandwidth = self._measured(traffic, note=threads_of(traffic))
        return {"host": {"capacity": memory_entry(self.result.machine.environment), "bandwidth": bandwidth}}

    def _storage(self) -> Entry:
        reads = disk_reads(self.result.measurements)
        if reads.large is None:
            return {}
        note = f"direct reads of {reads.large.chunk_bytes:.0f} B, {reads.large.in_flight:g} at once"
        found: Entry = {"bandwidth": self._measured(reads.large, note=note)}
        one, most = reads.alone, reads.small
        if one is not None:
            entry = self._said(
                time_text(float(one.median)), "measured", f"one direct read of {one.chunk_bytes:.0f} B"
            )
            if one.median_range is not None:
                entry["range"] = around(one.median, one.median_range, time_text)
            found["latency"] = entry
        if most is not None:
            count = f"{float(most.bandwidth or 0) / float(most.chunk_bytes):.6g}/s"
            found["iops"] = self._said(
                count, "measured", f"of {most.chunk_bytes:.0f} B, {most.in_flight:g} at once"
            )
        return {"storage": found}

    def _shares(self, device: Entry, priors: Mapping[str, tuple[float, float, float]]) -> Entry:
        found: Entry = {}
        for key, (low, mid, high) in priors.items():
            entry = self._quoted(key)
            if entry is None:
                self.sources[PRIOR] = {"title": "kvcalc's priors, where nobody has measured this machine"}
                entry = {"value": mid, "kind": "assumed", "from": PRIOR, "range": [low, high]}
            found[key] = entry
        attention = self._quoted("attention_efficiency")
        if attention is not None:
            found["attention_efficiency"] = attention
        if self.base is not None and device["bandwidth"]["kind"] == "measured":
            found["decode_efficiency"] = self._restated(found["decode_efficiency"], device["bandwidth"])
        return found

    def _restated(self, share: Entry, measured: Entry) -> Entry:
        """Return a share of the data sheet's bandwidth as one of the measured: their product stays."""
        assert self.base is not None
        ratio = self.base.device.bandwidth / number(measured["value"])
        told = [
            min(1.0, float(value) * ratio) for value in (share["range"][0], share["value"], share["range"][1])
        ]
        low, mid, high = (round(value, 4) for value in told)
        note = (
            f"{share['value']} of the data sheet's bandwidth, restated on the measured one; at most all of it"
        )
        before = {name: share[name] for name in BEFORE}
        return {**share, "value": mid, "range": [low, high], "note": note, "before": before}

    # entries

    def _said(self, value: object, kind: str, note: str) -> Entry:
        return {"value": value, "kind": kind, "from": PROBE, "note": note}

    def _measured(self, row: Measurement, scale: float = 1.0, note: str = "") -> Entry:
        assert row.bandwidth is not None
        value = float(row.bandwidth) * scale
        count = f"; median of {len(row.samples)} samples" if row.samples else ""
        entry = self._said(rate_text(value), "measured", f"{note}{count}")
        if row.bandwidth_range is not None:
            low, high = (float(end) * scale for end in row.bandwidth_range)
            entry["range"] = around(value, (low, high), rate_text)
        return entry

    def _instead(self, key: str, measured: Entry | None) -> Entry | None:
        """Return a measured value with the one it stands instead of; that one where none was measured."""
        quoted = self._quoted(key)
        if measured is None:
            return quoted
        if quoted is not None:
            measured["before"] = {
                name: quoted[name] for name in ("value", "kind", "from", "range") if name in quoted
            }
        return measured

    def _quoted(self, key: str) -> Entry | None:
        """Return a value of the built-in profile with its own source."""
        if self.base is None or key not in self.base.provenance:
            return None
        found = self.base.provenance[key]
        source = self.base.sources.get(found.source)
        if source is not None:
            told = {name: getattr(source, name) for name in ("title", "url", "retrieved", "file", "measured")}
            self.sources[found.source] = {name: text for name, text in told.items() if text is not None}
        return entry_of(found, key)

    def _quoted_section(self, section: str) -> Entry:
        link: Link | None = getattr(self.base, section, None)
        if link is None:
            return {}
        values = {name: self._quoted(f"{section}.{name}") for name in ("bandwidth", "nominal", "latency")}
        return {section: {"via": link.via} | {name: entry for name, entry in values.items() if entry}}

    # measurements

    def _row(self, series: str) -> Measurement | None:
        found: Sequence[Measurement] = [
            row for row in self.result.measurements if row.series == series and usable(row)
        ]
        return max(found, key=lambda row: row.chunk_bytes) if found else None

    def _best(self, prefix: str) -> Measurement | None:
        rows = [
            row
            for row in self.result.measurements
            if row.series.startswith(prefix) and row.test == "M1" and usable(row)
        ]
        return max(rows, key=lambda row: float(row.bandwidth or 0)) if rows else None

    def _fit(self, series: str) -> SeriesFit | None:
        return next((fit for fit in self.result.fits if fit.series == series and fit.published), None)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "machine"


def _vendor(device: DeviceFacts) -> str:
    return {"cuda": "NVIDIA", "rocm": "AMD", "xpu": "Intel", "mps": "Apple"}.get(device.backend, "unknown")


def _via(device: DeviceFacts) -> str:
    link = device.link
    if link.kind == "pcie":
        return f"PCIe {link.generation or link.generation_max} x{link.width or link.width_max}"
    return {"c2c": "NVLink-C2C", "unified": "one memory"}.get(link.kind, f"{link.kind} link")


def _version() -> str:
    from kvcalc import __version__

    return __version__
