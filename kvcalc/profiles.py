"""What a machine can do: frozen dataclasses of numbers in base units, and where each came from.

Formulas see the numbers only; results quote the `Provenance`, which lies beside them under the same
dotted key (``hardware.provenance["device.bandwidth"]``).  Fields state their unit in the annotation,
and the catalogue converts to it, so there is no second table of units.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Literal

from kvcalc.errors import SettingsError, did_you_mean
from kvcalc.records import record

Kind = Literal["nominal", "measured", "derived", "assumed"]
"""How far to trust a value.

nominal: as the vendor, its driver or a page citing it states it.  measured: read from a run on this
very product.  derived: computed from values that are named.  assumed: a sibling's value, a prior or
a figure recalled without opening its source; a result built on one says so.
"""

Dtype = Literal["fp32", "fp16", "bf16", "fp8", "int8", "fp4"]
"""Number formats of matrix units for which vendors state a dense rate."""

FALLBACK_DTYPES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # Tensor units run both 16-bit formats at one rate; older parts know fp16 alone, and the
        # oldest run 16-bit numbers on their fp32 units.
        "bf16": ("fp16", "fp32"),
        "fp16": ("bf16", "fp32"),
        # Where a narrow format has no unit, engines widen the numbers and multiply in 16 bits.
        "fp8": ("bf16", "fp16", "fp32"),
        "int8": ("bf16", "fp16", "fp32"),
        "fp4": ("fp8", "bf16", "fp16", "fp32"),
    }
)


PROBE = "probe"
"""Key of the probe among the sources of a profile that it writes."""


@record
class Source:
    """A page, file or log that values were read from."""

    title: str
    url: str | None = None
    retrieved: str | None = None  # a date
    file: str | None = None  # evidence that is kept with the profile, instead of a page
    measured: str | None = None  # a date


@record
class Before:
    """The value that a measured one stands instead of, as its own source prints it."""

    value: float  # in the base unit
    as_printed: str
    kind: Kind
    source: str  # key into `Hardware.sources`
    range: tuple[float, float] | None = None  # low and high, in the base unit


@record
class Provenance:
    """Where one value came from, and how its source prints it."""

    kind: Kind
    source: str  # key into `Hardware.sources`, or "user"
    as_printed: str
    range: tuple[float, float] | None = None  # low and high, in the base unit of the value
    note: str | None = None
    before: Before | None = None


@record
class Link:
    """One way from one memory to another."""

    via: str  # what carries it, such as "PCIe 5.0 x16" or "NVLink 4"
    bandwidth: Annotated[float, "byte/second"]  # what large copies reach: the rate to plan with
    nominal: Annotated[float, "byte/second"]  # raw rate of the link in this direction
    latency: Annotated[float, "second"] | None = None  # fixed time per copy, before its bytes move
    per_piece: Annotated[float, "second"] | None = None  # of each copy of many, a call each, beside its bytes

    @property
    def efficiency(self) -> float:
        """Share of the raw rate that copies reach."""
        return self.bandwidth / self.nominal


@record
class Memory:
    """A memory and how fast it is read."""

    capacity: Annotated[float, "byte"]
    bandwidth: Annotated[float, "byte/second"]


@record
class Storage:
    """A disk of the host."""

    bandwidth: Annotated[float, "byte/second"]  # large reads past the cache, as many at once as pay
    latency: Annotated[float, "second"] | None = None  # one small read
    iops: Annotated[float, "1/second"] | None = None  # small reads


@record
class Tier:
    """A place outside device memory that keeps KV, as seen from the device."""

    name: str
    bandwidth: Annotated[float, "byte/second"]  # read, towards the device
    capacity: Annotated[float, "byte"] | None = None
    setup: Annotated[float, "second"] = 0.0  # lookup and submission, before the first byte moves
    write_bandwidth: Annotated[float, "byte/second"] | None = None  # None: as `bandwidth`
    price: Annotated[float, "USD/byte/second"] | None = None


@record
class Device:
    """One accelerator as its driver shows it."""

    capacity: Annotated[float, "byte"]  # total that the driver reports, ECC as shipped
    marketed_capacity: Annotated[float, "byte"]  # the name plate read decimally; often meant as GiB
    bandwidth: Annotated[float, "byte/second"]
    flops: Mapping[
        str, Annotated[float, "flop/second"]
    ]  # by `Dtype`: dense matrix peak; int8 counts operations
    compute_capability: Annotated[float, "1"] | None = None  # CUDA's; None for other vendors
    power: Annotated[float, "watt"] | None = None
    unified: bool = False  # CPU and device share one DRAM: offloading to host memory frees nothing

    def peak(self, dtype: str) -> float:
        """Dense peak [flop/second] at which numbers of `dtype` are multiplied.

        A format that the device has no unit for is multiplied in the next wider one that it has.

        Raises
        ------
        SettingsError
            If the device has no rate for `dtype` nor for a wider format.
        """
        return self.flops[self.multiplied_in(dtype)]

    def multiplied_in(self, dtype: str) -> str:
        """Return the format in which numbers of `dtype` are multiplied: their own, or the next wider one.

        Raises
        ------
        SettingsError
            If the device has no rate for `dtype` nor for a wider format.
        """
        for candidate in (dtype, *FALLBACK_DTYPES.get(dtype, ())):
            if candidate in self.flops:
                return candidate
        known = ", ".join(self.flops) or "none"
        raise SettingsError(f"no dense rate for {dtype!r} of this machine; known are {known}")


@record
class Band:
    """A share with its uncertainty: low <= mid <= high."""

    low: Annotated[float, "1"]
    mid: Annotated[float, "1"]
    high: Annotated[float, "1"]


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What every profile has: a name, and where each of its values came from."""

    name: str
    title: str
    aliases: tuple[str, ...] = ()
    note: str | None = None
    origin: str = "built-in"  # or the file it was read from
    sources: Mapping[str, Source] = field(default_factory=dict, repr=False)
    provenance: Mapping[str, Provenance] = field(default_factory=dict, repr=False)

    @property
    def measured_here(self) -> tuple[str, ...]:
        """Keys of the values that a probe of this very machine measured, or put in the place of others.

        So are those that it imported from another tool, whose file need not tell the day.
        """

        def is_here(found: Provenance) -> bool:
            source = self.sources.get(found.source)
            probed = source is not None and (source.measured is not None or found.source == PROBE)
            return found.before is not None or (found.kind == "measured" and probed)

        return tuple(key for key, found in self.provenance.items() if is_here(found))

    def cite(self, key: str) -> str:
        """Return where the value at a dotted key is from, as one phrase.

        Raises
        ------
        SettingsError
            If no value has this key.
        """
        if key not in self.provenance:
            raise SettingsError(f"{key}: no such value{did_you_mean(key, list(self.provenance))}")
        found = self.provenance[key]
        source = self.sources.get(found.source)
        place = (source.url or source.file or source.title) if source else found.source
        return f"{found.kind}, {found.as_printed}, {place}"


@dataclass(frozen=True, kw_only=True)
class Host(Profile):
    """The DRAM of one CPU socket, or of one memory module on a link of its own."""

    bandwidth: Annotated[float, "byte/second"]  # all channels together, on paper
    channels: Annotated[float, "1"] | None = None


@dataclass(frozen=True, kw_only=True)
class Drive(Profile):
    """One NVMe drive."""

    via: str  # its link, such as "PCIe 4 x4"
    read_bandwidth: Annotated[float, "byte/second"]  # large sequential reads
    read_iops: Annotated[float, "1/second"]  # random reads of 4 KiB


@dataclass(frozen=True, kw_only=True)
class Nic(Profile):
    """One network card, or all cards of a node where they are known by one name."""

    bandwidth: Annotated[float, "byte/second"]  # in one direction, all ports together
    via: str | None = None  # the host link it needs
    ports: Annotated[float, "1"] | None = None  # 1 where it is not said


@dataclass(frozen=True, kw_only=True)
class Instance(Profile):
    """A machine that one rents or buys whole: accelerators and what they share."""

    provider: str
    accelerator: str  # name of its profile
    accelerators: Annotated[float, "1"]
    dram: Annotated[float, "byte"] | None = None
    network: Annotated[float, "byte/second"] | None = None  # in one direction, all ports together
    ports: Annotated[float, "1"] | None = None
    drive_capacity: Annotated[float, "byte"] | None = None  # all local drives together
    drives: Annotated[float, "1"] | None = None
    drive: str | None = None  # name of a drive profile that stands for the local drives
    vcpus: Annotated[float, "1"] | None = None

    @property
    def gpus(self) -> int:
        """How many accelerators it has."""
        return int(self.accelerators)


@record
class Node:
    """The machine around an accelerator: an instance, and the drive that stands for its local ones."""

    instance: Instance
    drive: Drive | None = None


@dataclass(frozen=True, kw_only=True)
class Hardware(Profile):
    """One kind of machine, per accelerator, with the source of each value."""

    vendor: str
    device: Device
    host_to_device: Link
    device_to_host: Link
    prefill_efficiency: Band  # share of the dense peak that matrix products of a prefill reach
    decode_efficiency: Band  # share of memory bandwidth that decode reaches
    attention_efficiency: Band | None = None  # share of the 16-bit peak in prefill; None: as products
    interconnect: Link | None = None  # between accelerators, one direction, all links of one device
    host: Memory | None = None  # DRAM of the whole host
    storage: Storage | None = None  # a disk of the host, where it was measured
    node: Node | None = None  # the instance that was named, where one was
