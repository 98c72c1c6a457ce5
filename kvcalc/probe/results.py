"""What a probe answers: measurements with their raw samples, fits, facts of the machine, verdicts.

The JSON of `kvcalc probe` and the evidence file are one document; it names no host, user, device number or
path.
"""

from typing import Annotated

from kvcalc.probe.scalars import Bytes, BytesPerSecond, Count, Flop, Seconds, Share
from kvcalc.records import record
from kvcalc.results import Result

Status = Annotated[str, ("ok", "unstable", "unsupported", "skipped", "failed")]
Direction = Annotated[str, ("h2d", "d2h", "both", "read", "write", "copy", "none")]
Counted = Annotated[str, ("one_way", "both_ways", "read", "write", "read+write", "none")]
Verdict = Annotated[str, ("pass", "warn", "fail", "skip")]
Joined = Annotated[str, ("host-device", "device", "device-device", "host", "disk")]
Covers = Annotated[str, ("device", "host_only", "simulated", "imported")]
Level = Annotated[str, ("quick", "default", "full", "imported")]


@record
class Measurement:
    """One size of one series: how long it took, again and again."""

    test: str  # id of the test, such as H1
    series: str  # what varies only in size, such as h2d.pinned
    device: int | None  # its number on this machine; null for host and disk
    path: Joined  # which memories it joins
    direction: Direction  # which way the bytes move
    pinned: bool | None  # host memory that the device reads directly; null where there is none
    mechanism: str  # how the bytes move: copy_engine, memcpy, percall_c, direct, ...
    order: str  # of scattered chunks: sequential, random, runs; else empty
    counted: Counted  # which bytes the bandwidth counts
    chunk_bytes: Bytes  # of one piece
    n_chunks: Count  # pieces that one timed operation moves
    operations: Flop | None  # that one timed operation computes; null where it only moves bytes
    in_flight: Count  # streams, threads or requests at once
    bandwidth: BytesPerSecond | None  # bytes counted over the median; null where no bytes move
    bandwidth_range: tuple[BytesPerSecond, BytesPerSecond] | None  # from the interval of the median
    t0: Seconds | None  # fixed time of the series' fit; null where none is published
    median: Seconds  # of one operation
    mad: Seconds | None  # median absolute deviation; null where another tool told the median alone
    p10: Seconds | None  # tenth percentile
    p90: Seconds | None  # ninetieth percentile
    median_range: tuple[Seconds, Seconds] | None  # 95 % interval of the median
    outliers: Count  # samples far above the median, which are kept
    enqueue: Seconds | None  # that the CPU took to queue one operation; null by the host's clock
    repeats: Count  # operations in each sample
    samples: tuple[float, ...]  # seconds of one operation, in the order in which they were taken
    verified: bool | None  # content compared after the timed part; null where there is none
    flags: tuple[str, ...]  # what is wrong with it


@record
class PieceOfFit:
    """One straight piece of a series."""

    smallest: Bytes  # size from which it holds
    largest: Bytes  # size up to which it was seen
    t0: Seconds  # fixed time
    bandwidth: BytesPerSecond  # its rate


@record
class SeriesFit:
    """The line t0 + s/B through one series, or why there is none."""

    series: str  # as in `Measurement`
    device: int | None  # its number on this machine
    published: bool  # whether it passed every gate
    reason: str  # why it did not, or what it lacks
    bandwidth: BytesPerSecond | None  # B
    bandwidth_range: tuple[BytesPerSecond, BytesPerSecond] | None  # 95 %, with t0 together
    t0: Seconds | None  # fixed time before the bytes
    t0_range: tuple[Seconds, Seconds] | None  # 95 %, with B together
    half_size: Bytes | None  # size that reaches half of B
    r_squared: Share | None  # weighted
    theil_sen: BytesPerSecond | None  # B by the median slope of the larger sizes
    residuals: tuple[float, ...]  # relative, by size
    pieces: tuple[PieceOfFit, ...]  # two where one line does not hold
    bound: BytesPerSecond | None  # physical limit it was held against
    flags: tuple[str, ...]  # what is wrong with it


@record
class TestRun:
    """One test: what became of it."""

    id: str  # such as H1
    title: str  # what it measures
    status: Status  # whether it may be used
    reason: str  # why it is not ok
    seconds: Seconds  # that it took


@record
class NumaNode:
    """One node of memory as the kernel numbers it."""

    id: int  # its number
    cpus: Count  # how many
    memory: Bytes  # total
    is_gpu: bool  # memory of a GPU that the kernel lists as a node, never used as host memory


@record
class Environment:
    """The machine around the devices, without its name or its users."""

    os: str  # kernel's name
    kernel: str  # its version
    python: str  # version
    numpy: str  # version
    torch: str | None  # null where it is not installed
    cuda: str | None  # runtime of torch's build
    hip: str | None  # the same on ROCm
    driver: str | None  # of the GPUs
    cpu: str  # model
    cpus: Count  # of the machine
    cpus_allowed: Count  # to this process
    memory: Bytes  # total
    memory_available: Bytes  # without swapping
    last_level_cache: Bytes | None  # of one CPU, all that share it
    numa_nodes: tuple[NumaNode, ...]  # nodes of memory
    container: bool  # whether it ran in one
    wsl: bool  # whether it ran under WSL
    hypervisor: bool  # whether it ran on a virtual machine
    memlock: Bytes | None  # RLIMIT_MEMLOCK; null for unlimited
    cgroup_memory: Bytes | None  # limit; null for none
    huge_pages: str | None  # setting of transparent huge pages


@record
class LinkHop:
    """One hop between a device and the root of its bus."""

    hop: str  # device, or bridge with its place
    generation: int | None  # as it was trained
    width: int | None  # lanes in use
    generation_max: int | None  # newest that both ends can
    width_max: int | None  # most lanes that both ends have


@record
class Link:
    """The link of a device to its host, at rest and under load."""

    kind: str  # pcie, c2c, unified, simulated or unknown
    generation_idle: int | None  # at rest
    generation: int | None  # while it copied
    generation_max: int | None  # newest that both ends can
    width: int | None  # while it copied
    width_max: int | None  # most lanes that both ends have
    bound: BytesPerSecond | None  # what it carries in one direction, physically
    path: tuple[LinkHop, ...]  # hops from the device to the top of its bus, nearest first
    replays: int | None  # packets that were repeated while it was measured


@record
class DeviceFacts:
    """One device as driver and runtime describe it."""

    index: int  # its number
    backend: str  # cuda, rocm, xpu, mps, simulated
    name: str  # as the driver calls it
    memory: Bytes | None  # that the driver reports
    memory_runtime: Bytes | None  # that a program can see
    memory_free: Bytes | None  # when it was asked
    memory_bound: BytesPerSecond | None  # by bus width and clock; null where they are not told
    cache: Bytes | None  # L2
    compute_capability: float | None  # CUDA's
    ecc: bool | None  # whether it is on
    mig: bool | None  # whether it is a slice of a GPU
    mps: bool | None  # whether a CUDA MPS server shares it
    integrated: bool | None  # whether it shares the memory of the host
    virtualization: str | None  # as the driver calls it
    confidential: bool | None  # whether confidential computing is on
    addressing: str | None  # none, HMM or ATS
    numa_node: int | None  # whose memory is nearest
    other_processes: int | None  # that compute on it
    throttle_reasons: tuple[str, ...]  # while it was measured
    link: Link  # to the host
    flags: tuple[str, ...]  # what is wrong, by the names on the page of the probe


@record
class DiskFacts:
    """The file system that was measured, without its place."""

    filesystem: str  # its kind
    rotational: bool | None  # whether it is a disk that turns
    scheduler: str | None  # the kernel's
    virtual: bool | None  # whether it is a disk of a hypervisor
    free: Bytes  # space left
    file: Bytes  # size of the temporary file


@record
class Machine:
    """Where it was measured."""

    environment: Environment  # the host
    devices: tuple[DeviceFacts, ...]  # every device that was measured
    disk: DiskFacts | None  # null where none was measured
    missing: tuple[str, ...]  # what kept parts from running, and how to get it
    flags: tuple[str, ...]  # what is wrong, by the names on the page of the probe


@record
class Derived:
    """Figures that follow from several measurements; null where one of them is missing."""

    link_efficiency: Share | None  # B of pinned H2D over what the link carries
    duplex_factor: Share | None  # both ways at once over the sum of one way each
    pageable_share: Share | None  # pageable over pinned
    scattered_share: Share | None  # best mechanism on the smallest chunks over the contiguous rate
    coalescing_bytes: Bytes | None  # smallest chunk that reaches half of the contiguous rate
    pin_seconds_per_gb: Annotated[float, "second/byte"] | None  # pinning, by byte
    remote_share: Share | None  # host memory of the other node over the near one's
    together_share: Share | None  # all devices at once over the sum of each alone
    copy_slowdown: Share | None  # rate of a copy beside compute over its rate alone
    compute_slowdown: Share | None  # rate of compute beside a copy over its rate alone


@record
class Check:
    """One figure against what such machines usually reach."""

    id: str  # stable, for filters
    verdict: Verdict  # pass, warn, fail or skip
    measured: float | None  # in `unit`
    expected: tuple[float, float] | None  # usual range
    unit: str  # of `measured` and `expected`
    detail: str  # why, in words


@record
class ProbeResult(Result):
    """Answer of `kvcalc probe`, and the evidence that it writes."""

    kind: Covers  # what it covers
    created: str  # day and time, UTC
    complete: bool  # false in a file that a running or killed probe left
    level: Level  # how much was measured
    measurements: tuple[Measurement, ...]  # every size of every series
    fits: tuple[SeriesFit, ...]  # one a series in which a line was looked for
    tests: tuple[TestRun, ...]  # what became of each test
    machine: Machine  # where it was measured
    derived: Derived  # figures that follow from several measurements
    checks: tuple[Check, ...]  # figures held against what is usual
    profile: str | None  # where the profile was written, as it was asked for; null in the evidence file

    SCHEMA = "kvcalc.probe/1"
