"""What can be wrong with a measurement, by name: whether it spoils the figure, and what it means."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from kvcalc.records import record

Severity = Literal["fail", "warn", "note"]


@record
class Flag:
    """One thing that a reader of a figure has to know."""

    severity: Severity
    meaning: str


FLAGS: Mapping[str, Flag] = MappingProxyType(
    {
        # samples
        "noisy": Flag("note", "samples scatter by 2 to 5 % of their median"),
        "unstable": Flag("warn", "samples scatter by more than 5 % of their median"),
        "bimodal": Flag("warn", "samples fall into two groups: another tenant, or a path that changes"),
        "drifting": Flag("warn", "the last third of the samples differs by more than 3 % from the first"),
        "few_samples": Flag("warn", "time ran out before all samples were taken"),
        "outliers": Flag("note", "some samples lie far above the median; they are kept"),
        # series
        "launch_bound": Flag("warn", "the device waited for the CPU to queue its copies"),
        "two_piece": Flag("warn", "small and large copies take different paths; no single line holds"),
        "capped": Flag("warn", "the rate stops growing at a cap"),
        "implausible": Flag("fail", "faster than the link or memory physically is; not used"),
        "cut_to_bound": Flag("note", "the line lies up to 3 % above the link's limit, and is cut to it"),
        "verification": Flag("fail", "bytes arrived that are not those that were sent; not used"),
        "cache_hit": Flag("fail", "faster than the drive: the operating system's cache answered"),
        # device and link
        "not_verified": Flag("warn", "this back end has not yet been verified on a device"),
        "link_degraded": Flag("fail", "the link trains to less than it can, or a hop before it does"),
        "link_unknown": Flag("note", "neither driver nor kernel says what the link is"),
        "replays": Flag("fail", "the link repeated packets while it copied: a bad slot, riser or cable"),
        "shared_link": Flag(
            "warn", "devices that copy at once share what one has alone: a switch or the host"
        ),
        "throttled": Flag("warn", "clocks were held down while it was measured"),
        "shared": Flag("warn", "another process uses the device"),
        "mig": Flag("warn", "a slice of a GPU: fewer copy engines and a part of the memory"),
        "mps": Flag("warn", "copies of several processes share the device through MPS"),
        "virtual_gpu": Flag("note", "a virtual machine: the link's registers may not be the real ones"),
        "confidential": Flag("warn", "confidential computing: copies go through encrypted bounce buffers"),
        "ecc_off": Flag("note", "ECC is off, which shipped profiles assume on"),
        "unified": Flag("warn", "CPU and device share one memory: moving KV to the host frees nothing"),
        # host
        "wsl": Flag("warn", "WSL2: little memory can be pinned, and the driver charges it to the GPU"),
        "memlock": Flag(
            "warn", "RLIMIT_MEMLOCK is low: what registers memory by it, such as RDMA, fails on large pools"
        ),
        "cgroup_limit": Flag("note", "a cgroup limits the memory or the CPUs of this process"),
        "memory_grows": Flag("note", "the total of memory changed while it was measured, as balloons do"),
        "numa_remote": Flag("note", "host memory lies on a node that is not the device's"),
        "numa_unbound": Flag("note", "the placement of host memory could not be verified"),
        "fewer_cpus": Flag("note", "fewer CPUs are allowed than the machine has"),
        # disk
        "small_file": Flag("note", "the file is smaller than 8 GiB, which a large drive cache may hold"),
        "buffered": Flag("fail", "no direct I/O: the figure is of the operating system's cache"),
        "cpu_bound": Flag("note", "as many reads a second as this program can start: the drive may do more"),
        "virtual_disk": Flag("note", "a virtual disk: its rate may be capped or shared"),
    }
)


def worst(flags: tuple[str, ...]) -> Severity | None:
    """Return the gravest severity among flags; None for none.

    >>> worst(("noisy", "mig")), worst(())
    ('warn', None)
    """
    found = {FLAGS[name].severity for name in flags}
    order: tuple[Severity, ...] = ("fail", "warn", "note")
    return next((severity for severity in order if severity in found), None)
