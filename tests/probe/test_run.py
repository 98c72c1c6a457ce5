"""A whole probe of a simulated machine: what each test leaves, and that one which fails loses no other."""

import json
from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace

import jsonschema
import pytest

from kvcalc.errors import SettingsError
from kvcalc.output import render, schema
from kvcalc.probe.backends.nvml import Nvml
from kvcalc.probe.backends.protocol import UnavailableError
from kvcalc.probe.backends.simulated import Behaviour, SimulatedDevice
from kvcalc.probe.flags import FLAGS, worst
from kvcalc.probe.measurements import IDS, TESTS
from kvcalc.probe.measurements.scattered import blocks_of
from kvcalc.probe.options import Options
from kvcalc.probe.run import Run

DEVICE_TESTS = tuple(test.id for test in TESTS if test.needs in ("device", "devices") and test.id != "O1")
PCIE5 = 63.0e9


@pytest.fixture(scope="module")
def result():
    """Two simulated devices on PCIe 5, all tests of devices."""
    devices = [SimulatedDevice(Behaviour(bound=PCIE5, bandwidth=55e9, seed=seed), seed) for seed in range(2)]
    options = Options(level="quick", tests=DEVICE_TESTS, pieces={"layer": 8192.0, "block": 524288.0})
    return Run(options, devices).result()


def test_every_test_ran(result):
    assert {test.id: test.reason for test in result.tests if test.status != "ok"} == {}
    assert {row.test for row in result.measurements} >= set(DEVICE_TESTS)


def test_the_answer_validates_against_the_schema_that_is_shipped(result):
    body = json.loads(render(result, "json"))
    rules = json.loads((schema.FOLDER / "probe-1.json").read_text(encoding="utf-8"))
    jsonschema.validate(body, rules)
    keys = {
        "path",
        "pinned",
        "direction",
        "chunk_bytes",
        "n_chunks",
        "bandwidth",
        "t0",
        "median",
        "mad",
        "samples",
    }
    assert all(keys <= set(row) for row in body["measurements"])
    assert {
        "machine",
        "profile",
        "schema",
        "version",
        "inputs",
        "units",
        "sources",
        "warnings",
        "assumptions",
    } <= set(body)


def test_every_rate_is_the_bytes_counted_over_the_median_of_its_samples(result):
    for row in result.measurements:
        if row.bandwidth is None or row.samples == ():
            continue
        passes = {"read+write": 2, "both_ways": 2}.get(row.counted, 1)
        if row.test in ("C1", "K1", "G1"):
            continue  # conversions count 3 bytes for a number; the others several copies in an operation
        middle = sorted(row.samples)[len(row.samples) // 2]
        assert row.bandwidth == pytest.approx(row.chunk_bytes * row.n_chunks * passes / middle, rel=1e-9)


def test_the_sizes_of_the_chosen_model_are_measured(result):
    sizes = {row.chunk_bytes for row in result.measurements if row.test == "S1"}
    assert {8192.0, 524288.0} <= sizes


def test_scattered_copies_are_slower_than_contiguous_ones(result):
    rate = {(row.series, row.chunk_bytes): row.bandwidth for row in result.measurements}
    top = max(value for (series, _), value in rate.items() if series == "h2d.pinned")
    for (series, size), value in rate.items():
        if series == "h2d.scattered.percall_python.random" and size <= 32768:
            # Each copy pays its t0 of 3 us (noise of 1 % around it) before its bytes.
            assert value < size / 2.9e-6
            assert value < 0.5 * top


def test_merged_neighbours_are_faster_than_single_copies(result):
    rate = {(row.series, row.chunk_bytes): row.bandwidth for row in result.measurements}
    alone = rate[("h2d.scattered.percall_python.random", 4096.0)]
    # 16 neighbours pay t0 once: (3 us + 4 KiB / B) * 16 against 3 us + 64 KiB / B.
    assert rate[("h2d.scattered.merged.runs", 4096.0)] / alone == pytest.approx(11.7, rel=0.03)


def test_both_ways_and_devices_together_are_told(result):
    derived = result.derived
    assert derived.duplex_factor == pytest.approx(0.8, abs=0.03)  # as the simulated device was told
    assert derived.pageable_share == pytest.approx(0.25, abs=0.02)
    assert derived.link_efficiency == pytest.approx(55 / 63, abs=0.01)
    assert derived.pin_seconds_per_gb == pytest.approx(1 / 5e9)
    assert derived.together_share is not None


def test_pinned_is_checked_against_pageable(result):
    verdicts = {check.id: check.verdict for check in result.checks}
    assert verdicts["pinned_over_pageable"] == "pass"
    assert verdicts["verification"] == "pass"


def test_a_known_flag_has_a_meaning():
    assert all(flag.meaning and flag.severity in ("fail", "warn", "note") for flag in FLAGS.values())
    assert worst(("noisy", "verification", "mig")) == "fail"


def test_a_link_far_below_what_it_carries_fails_with_its_causes():
    device = SimulatedDevice(Behaviour(bound=PCIE5, bandwidth=20e9))
    real = device.facts()
    device.facts = lambda: replace(real, link=replace(real.link, kind="pcie"))
    found = {check.id: check for check in Run(Options(tests=("H1",)), [device]).result().checks}
    assert found["link_efficiency"].verdict == "fail"
    assert "NUMA node" in found["link_efficiency"].detail


@pytest.mark.parametrize(
    "error", [RuntimeError("driver\nlines"), OSError(5, "Input/output error"), MemoryError()]
)
def test_an_error_in_one_test_does_not_lose_the_others(monkeypatch, error):
    def broken(session):
        raise error

    monkeypatch.setattr(import_module("kvcalc.probe.measurements.pageable"), "run", broken)
    result = Run(Options(level="quick", tests=("H1", "H2", "D1")), [SimulatedDevice()]).result()
    assert [test.status for test in result.tests] == ["ok", "failed", "ok"]
    assert "\n" not in result.tests[1].reason
    assert result.complete


def test_what_a_device_cannot_do_is_said(monkeypatch):
    def cannot(*_):
        raise UnavailableError("no such format")

    monkeypatch.setattr(SimulatedDevice, "convert", cannot)
    result = Run(Options(level="quick", tests=("C1",)), [SimulatedDevice()]).result()
    assert "no such format" in result.tests[0].reason


def test_a_deadline_skips_what_is_left():
    result = Run(Options(level="quick", tests=("H1", "D1"), max_seconds=1e-9), [SimulatedDevice()]).result()
    assert [(test.status, test.reason) for test in result.tests] == [("skipped", "the time was used up")] * 2
    assert result.complete


def test_the_result_so_far_is_handed_over_after_each_test():
    kept = []
    Run(Options(level="quick", tests=("H1", "D1")), [SimulatedDevice()], keep=kept.append).result()
    assert [len(one.tests) for one in kept] == [0, 1, 2]
    assert not any(one.complete for one in kept)


def test_an_interrupt_hands_over_what_the_broken_test_had_measured(monkeypatch):
    kept = []

    def interrupted(session):
        session.beat("something")
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module("kvcalc.probe.measurements.memory"), "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Run(Options(level="quick", tests=("H1", "D1")), [SimulatedDevice()], keep=kept.append).result()
    assert kept[-1].measurements
    assert not kept[-1].complete


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (Options(level="slow"), "unknown level 'slow'"),
        (Options(tests=("H9",)), "unknown test 'H9'"),
        (Options(max_seconds=0.0), "not a positive time"),
        (Options(disk_bytes=4096), "less than 64 MiB"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_measured(options, words):
    with pytest.raises(SettingsError, match=words):
        Run(options).result()


@pytest.mark.parametrize("level", ["quick", "default"])
def test_the_deadlines_of_the_tests_fit_the_level(level):
    # Issue: 60 s on a GPU for --quick, of which torch's start takes up to 15; three minutes for a check.
    total = sum(test.seconds.get(level, 0.0) for test in TESTS if test.id not in ("N1", "G1"))
    assert total <= {"quick": 60, "default": 150}[level]


def test_ids_are_those_of_the_method():
    assert set(IDS) == {"F", "O1", "H1", "H2", "H3", "S1", "D1", "C1", "P1", "M1", "N1", "G1", "K1", "Z1"}


@pytest.mark.parametrize("order", ["sequential", "random", "runs"])
def test_every_chunk_has_one_source_and_one_place(order):
    blocks = blocks_of(4096, 100, order, seed=3)
    assert sorted(blocks.sources) == sorted(blocks.targets) == list(range(100))
    assert sum(length for _, _, length in blocks.merged()) == 100
    assert blocks == blocks_of(4096, 100, order, seed=3)


def test_runs_of_sixteen_merge_into_one_copy_each():
    lengths = [length for _, _, length in blocks_of(4096, 96, "runs", seed=1).merged()]
    assert sum(lengths) == 96
    assert all(length % 16 == 0 for length in lengths)  # two runs may come to lie side by side again


class Silent:
    """A management library all of whose answers are refusals but one."""

    NVML_CLOCK_MEM = 2

    def __init__(self, answers):
        self.answers = answers

    def __getattr__(self, name):
        def call(*_):
            if name in self.answers:
                return self.answers[name]
            raise RuntimeError("Not Supported")

        return call


CALLS = (
    "nvmlDeviceGetCurrPcieLinkGeneration",
    "nvmlDeviceGetCurrPcieLinkWidth",
    "nvmlDeviceGetMaxPcieLinkGeneration",
    "nvmlDeviceGetMaxPcieLinkWidth",
    "nvmlDeviceGetPcieReplayCounter",
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetMemoryBusWidth",
    "nvmlDeviceGetMaxClockInfo",
    "nvmlDeviceGetEccMode",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetVirtualizationMode",
    "nvmlDeviceGetAddressingMode",
    "nvmlDeviceGetC2cModeInfoV",
    "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlSystemGetDriverVersion",
)
ANSWERS = {
    **{name: value for name, value in zip(CALLS[:5], (5, 16, 5, 16, 3), strict=True)},
    "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=150_754_820_096),
    "nvmlDeviceGetMemoryBusWidth": 6144,
    "nvmlDeviceGetMaxClockInfo": 3201,
    "nvmlDeviceGetEccMode": [1, 1],
    "nvmlDeviceGetMigMode": [1, 1],
    "nvmlDeviceGetVirtualizationMode": 1,
    "nvmlDeviceGetAddressingMode": SimpleNamespace(value=1),
    "nvmlDeviceGetC2cModeInfoV": SimpleNamespace(isC2cEnabled=0),
    "nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=1), SimpleNamespace(pid=2)],
    "nvmlDeviceGetCurrentClocksEventReasons": 0x4,
    "nvmlSystemGetDriverVersion": "580.95.05",
}


def facts_with(answers, monkeypatch):
    """Return the facts of a device of which the library says so much."""
    from kvcalc.probe.backends.torch_device import TorchDevice
    from tests.probe import fake_torch

    monkeypatch.setattr(Nvml, "open", classmethod(lambda cls, address, index: cls(Silent(answers), None)))
    device = TorchDevice(fake_torch.machine(), "cuda")
    device.seen.append(device.nvml.look())
    return device.facts()


def test_what_the_library_says_is_in_the_facts(monkeypatch):
    facts = facts_with(ANSWERS, monkeypatch)
    assert (facts.link.kind, facts.link.generation, facts.link.width) == ("pcie", 5, 16)
    assert facts.link.bound == pytest.approx(63.0e9, rel=1e-3)  # 32 GT/s x 16 x 128/130 / 8
    assert facts.memory == 150_754_820_096
    assert facts.memory_bound == pytest.approx(4.917e12, rel=1e-3)  # 2 x 3201 MHz x 6144 bit
    assert {"mig", "shared", "throttled", "virtual_gpu"} <= set(facts.flags)
    assert facts.throttle_reasons == ("power cap",)


@pytest.mark.parametrize("missing", CALLS)
def test_any_call_may_be_refused(missing, monkeypatch):
    facts = facts_with({name: value for name, value in ANSWERS.items() if name != missing}, monkeypatch)
    assert facts.name == "NVIDIA H200"


def test_a_link_that_trains_low_is_degraded(monkeypatch):
    answers = {**ANSWERS, "nvmlDeviceGetCurrPcieLinkGeneration": 1}
    assert "link_degraded" in facts_with(answers, monkeypatch).flags
