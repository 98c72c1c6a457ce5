"""The profile that a probe writes, and what a plan on it says of the measurement."""

import json
from dataclasses import replace

import pytest

from kvcalc import plan
from kvcalc.catalog import hardware as machines
from kvcalc.catalog.hardware_document import hardware_from_document
from kvcalc.documents import parse_yaml
from kvcalc.errors import ProfileError
from kvcalc.output import render
from kvcalc.planning.calibrated import as_before
from kvcalc.probe.asked import base_of, known_name
from kvcalc.probe.backends.simulated import Behaviour, SimulatedDevice
from kvcalc.probe.files import write_evidence
from kvcalc.probe.options import Options
from kvcalc.probe.profile import profile_of, text_of
from kvcalc.probe.run import Run

BOUND = 63e9
TESTS = ("H1", "S1", "D1", "M1", "Z1")


class Card(SimulatedDevice):
    """A simulated device that calls itself an H200."""

    def facts(self):
        facts = super().facts()
        link = replace(facts.link, kind="pcie", generation=5, generation_max=5, width=16, width_max=16)
        return replace(
            facts,
            backend="cuda",
            name="NVIDIA H200",
            memory=150_754_820_096.0,
            compute_capability=9.0,
            link=link,
        )


def probed(tmp_path_factory, bandwidth=40e9, memory=4.3e12):
    behaviour = Behaviour(t0=2e-6, bandwidth=bandwidth, bound=BOUND, memory_bandwidth=memory, noise=0.005)
    folder = tmp_path_factory.mktemp("disk")
    options = Options(level="quick", tests=TESTS, disk=folder, disk_named=True, disk_bytes=2**26)
    return Run(options, [Card(behaviour)]).result()


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return probed(tmp_path_factory)


@pytest.fixture(scope="module")
def profile(result):
    return profile_of(result, base_of(result))


def test_the_card_is_known_by_its_name_and_its_memory(result):
    assert base_of(result).name == "h200-sxm-141gb"
    device = replace(result.machine.devices[0], memory=18e9)  # a slice of it
    assert base_of(replace(result, machine=replace(result.machine, devices=(device,)))) is None
    assert base_of(result, "l40s").name == "l40s"


def test_every_known_name_is_that_of_a_profile():
    import json as text
    from pathlib import Path

    import kvcalc.probe

    names = text.loads((Path(kvcalc.probe.__file__).parent / "device_names.json").read_text())["names"]
    assert all(machines.load(name).name == name for name in names.values())
    assert known_name("GeForce GTX 9") is None


def test_the_text_is_json_and_valid_yaml_and_a_valid_profile(profile):
    text = text_of(profile)
    assert parse_yaml(text, "probe.yaml") == json.loads(text)
    hardware = hardware_from_document(json.loads(text), "probe.yaml")
    assert hardware.name == "h200-sxm-141gb"
    assert hardware.device.capacity == 150_754_820_096


def test_measured_values_are_what_the_device_is(profile):
    hardware = hardware_from_document(profile, "probe.yaml")
    for link in ("host_to_device", "device_to_host"):
        found = hardware.provenance[f"{link}.bandwidth"]
        assert found.kind == "measured"
        assert found.range[0] <= 40e9 <= found.range[1]
        assert getattr(hardware, link).bandwidth == pytest.approx(40e9, rel=0.02)
        assert getattr(hardware, link).latency == pytest.approx(2e-6, rel=0.05)
    assert hardware.device.bandwidth == pytest.approx(4.3e12, rel=0.02)
    assert hardware.host.bandwidth > 0


def test_what_a_small_copy_costs_is_that_of_the_device(profile):
    """Each of the simulated copies takes 2 us and its bytes, whatever its size."""
    hardware = hardware_from_document(profile, "probe.yaml")
    for link in ("host_to_device", "device_to_host"):
        assert getattr(hardware, link).per_piece == pytest.approx(2e-6, rel=0.02)
        low, high = hardware.provenance[f"{link}.per_piece"].range
        assert low <= getattr(hardware, link).per_piece <= high


def test_a_plan_moves_pieces_at_the_cost_that_was_measured(written):
    said = {"on": written, "prompt": "8k", "hit": 0.5, "tiers": {"dram": {"bandwidth": "40 GB/s"}}}
    block = 16 * 131072  # bytes of 16 tokens of 128 KiB
    (row,) = [one for one in plan("llama-3.1-8b", engine="vllm", **said).offload if one.tier == "dram"]
    cost = machines.load(written).host_to_device.per_piece
    assert row.bandwidth == pytest.approx(block / (cost + block / 40e9), rel=1e-9)
    answer = plan("llama-3.1-8b", engine="vllm", **said)
    assert answer.sources["host_to_device.per_piece"].kind == "measured"
    found = {item.key: item for item in answer.calibration.values}["host_to_device.per_piece"]
    assert (found.before, found.unit) == (None, "second")
    # A mechanism that copies otherwise has the cost of its own.
    other = plan("llama-3.1-8b", engine="sglang", **said)
    assert "host_to_device.per_piece" not in other.sources


def test_each_measured_value_keeps_the_one_before(profile):
    base = machines.load("h200-sxm-141gb")
    before = hardware_from_document(profile, "probe.yaml").provenance["host_to_device.bandwidth"].before
    assert (before.value, before.kind) == (base.host_to_device.bandwidth, "measured")
    assert before.as_printed == "55.43 GB/s"


def test_a_share_of_the_data_sheet_is_restated_on_the_measured_bandwidth(profile):
    base, found = machines.load("h200-sxm-141gb"), hardware_from_document(profile, "probe.yaml")
    product = found.decode_efficiency.mid * found.device.bandwidth
    assert product == pytest.approx(base.decode_efficiency.mid * base.device.bandwidth, rel=0.001)
    assert found.decode_efficiency.high <= 1


def test_evidence_is_no_machine_and_says_where_the_profile_is(result, tmp_path):
    path = tmp_path / "probe.json"
    write_evidence(str(path), result)
    with pytest.raises(ProfileError, match="evidence of a probe; give the profile that it wrote"):
        machines.load(str(path))


def test_the_machine_before_is_the_one_that_is_built_in(profile):
    base = machines.load("h200-sxm-141gb")
    earlier = as_before(hardware_from_document(profile, "probe.yaml"))
    for part in ("device", "host_to_device", "device_to_host", "prefill_efficiency", "decode_efficiency"):
        assert getattr(earlier, part) == getattr(base, part)
    assert all(found.before is None for found in earlier.provenance.values())
    assert earlier.storage is None  # nothing was known of it
    assert earlier.host_to_device.per_piece is None


@pytest.fixture
def written(profile, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(text_of(profile))
    return str(path)


def test_a_plan_says_what_the_measurement_changes(written):
    answer = plan("llama-3.1-8b", on=written, concurrency=32, prompt="8k", hit=0.5)
    found = answer.calibration
    keys = {item.key for item in found.values}
    assert {"host_to_device.bandwidth", "device.bandwidth", "device.capacity"} <= keys
    rows = {(item.question, item.tier): item for item in found.verdicts}
    assert rows[("fits", "")].before == rows[("fits", "")].measured == "fits"
    dram = rows[("offload", "dram")]
    built_in = plan("llama-3.1-8b", on="h200-sxm-141gb", concurrency=32, prompt="8k", hit=0.5).offload[0]
    assert dram.gain_before == pytest.approx(float(built_in.recompute - built_in.cached_total), rel=1e-6)
    assert dram.gain_measured < dram.gain_before  # 40 GB/s instead of 55.43
    assert "decode_efficiency" in found.assumed
    assert "prefill_efficiency" not in found.assumed  # fitted on published times


def test_a_slow_link_turns_the_verdict_and_the_page_says_so(tmp_path_factory, tmp_path):
    slow = probed(tmp_path_factory, bandwidth=1.5e9)
    path = tmp_path / "slow.yaml"
    path.write_text(text_of(profile_of(slow, base_of(slow))))
    answer = plan("llama-3.1-8b", on=str(path), prompt="8k", hit=0.5)
    moved = [item for item in answer.calibration.verdicts if item.changed]
    assert [(item.tier, item.before, item.measured) for item in moved if item.tier == "dram"] == [
        ("dram", "restore", "recompute")
    ]
    page = render(answer, "table")
    assert "Measured, instead of what was known of its kind" in page
    assert "offload to dram from restore to recompute" in " ".join(page.split())
    assert "Still assumed:" in page


def test_a_plan_on_a_machine_that_nobody_measured_says_nothing_of_it():
    assert plan("llama-3.1-8b", on="h200-sxm-141gb").calibration is None


def test_the_measured_disk_is_a_tier(written, result):
    if not any(row.test == "Z1" for row in result.measurements):
        pytest.skip(f"the disk test did not run here: {[test.reason for test in result.tests]}")
    tiers = [row.tier for row in plan("llama-3.1-8b", on=written, hit=0.5).offload]
    assert tiers == ["dram", "disk"]


@pytest.fixture(scope="module")
def host_only(tmp_path_factory):
    folder = tmp_path_factory.mktemp("disk")
    options = Options(level="quick", tests=("M1", "Z1"), disk=folder, disk_named=True, disk_bytes=2**26)
    return Run(options).result()


def test_a_machine_without_a_gpu_has_a_profile_of_its_cpu(host_only, tmp_path):
    assert host_only.kind == "host_only"
    path = tmp_path / "host.yaml"
    path.write_text(text_of(profile_of(host_only)))
    hardware = machines.load(str(path))
    assert hardware.device.unified
    copied = next(row.bandwidth for row in host_only.measurements if row.series == "host.copy.1")
    assert hardware.device.bandwidth >= copied * (1 - 1e-5)  # a profile holds six digits
    answer = plan("llama-3.1-8b", on=str(path), engine="llama.cpp", weights_dtype="q4_k_m")
    assert answer.decode.tokens_per_second > 0
    found = {item.key: item for item in answer.calibration.values}
    assert found["device.bandwidth"].measured == hardware.device.bandwidth
    assert {item.before for item in found.values()} == {None}  # there was no profile of this CPU
    note = hardware.provenance["device.bandwidth"].note
    fastest = max(
        (row for row in host_only.measurements if row.series.startswith("host.copy.")),
        key=lambda row: row.bandwidth,
    )
    assert ("one thread" in note) is (fastest.in_flight == 1)
    assert answer.calibration.verdicts == ()
    page = " ".join(render(answer, "table").split())
    assert "Measured value" in page
    assert "nothing was known of it before" in page


def test_a_measured_disk_is_told_beside_values_that_had_others_before(written, result):
    if not any(row.test == "Z1" for row in result.measurements):
        pytest.skip(f"the disk test did not run here: {[test.reason for test in result.tests]}")
    found = {item.key: item for item in plan("llama-3.1-8b", on=written).calibration.values}
    assert (found["storage.bandwidth"].before, found["storage.bandwidth"].before_kind) == (None, "")
    assert found["storage.bandwidth"].measured == pytest.approx(
        max(
            row.bandwidth for row in result.measurements if row.test == "Z1" and row.chunk_bytes == 4 * 2**20
        ),
        rel=1e-5,
    )
    assert found["host_to_device.bandwidth"].before_kind == "measured"


def test_values_measured_elsewhere_are_not_of_this_machine():
    assert machines.load("h200-sxm-141gb").provenance["host_to_device.bandwidth"].kind == "measured"
    assert machines.load("h200-sxm-141gb").measured_here == ()


def test_too_little_for_a_profile_is_said(result):
    with pytest.raises(ProfileError, match="host memory was not measured"):
        profile_of(Run(Options(level="quick", tests=("F",))).result())
    bare = replace(result, measurements=(), fits=())
    with pytest.raises(ProfileError, match=r"not measured \(test D1\)"):
        profile_of(bare)


def test_a_link_that_is_impossible_is_no_measurement_at_any_size(tmp_path_factory):
    """70 GB/s over a link of 63 GB/s: sizes whose fixed time hides it are no measurement either."""
    fast = probed(tmp_path_factory, bandwidth=70e9)
    assert fast.derived.link_efficiency is None
    assert fast.derived.pageable_share is None
    base = machines.load("h200-sxm-141gb")
    link = hardware_from_document(profile_of(fast, base_of(fast)), "probe.yaml").host_to_device
    assert link.bandwidth == base.host_to_device.bandwidth
    unknown = replace(fast.machine.devices[0], name="Some Card 9000")
    with pytest.raises(ProfileError, match="copies h2d from pinned memory are no measurement: too fast"):
        profile_of(replace(fast, machine=replace(fast.machine, devices=(unknown,))))


def test_a_plan_on_a_card_that_nobody_knows_says_what_was_measured(result, tmp_path):
    unknown = replace(result.machine.devices[0], name="Some Card 9000")
    path = tmp_path / "card.yaml"
    path.write_text(text_of(profile_of(replace(result, machine=replace(result.machine, devices=(unknown,))))))
    found = {item.key: item for item in plan("llama-3.1-8b", on=str(path)).calibration.values}
    assert found["host_to_device.bandwidth"].before == BOUND
    assert found["device.flops.bf16"].before is None


def test_a_device_that_nobody_knows_is_calibrated_against_its_link(result):
    device = replace(result.machine.devices[0], name="Some Card 9000")
    unknown = replace(result, machine=replace(result.machine, devices=(device,)))
    assert base_of(unknown) is None
    hardware = hardware_from_document(profile_of(unknown), "probe.yaml")
    assert hardware.name == "some-card-9000"
    assert hardware.provenance["host_to_device.bandwidth"].before.value == BOUND
    assert hardware.provenance["device.flops.bf16"].kind == "measured"
    assert hardware.provenance["prefill_efficiency"].kind == "assumed"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"value": "50 GB/s"}, "before.kind: missing"),
        ({"value": "50 GB", "kind": "nominal", "from": "probe"}, "before.value"),
        ({"value": "50 GB/s", "kind": "guessed", "from": "probe"}, "unknown kind 'guessed'"),
        ({"value": "50 GB/s", "kind": "nominal", "from": "nobody"}, "'nobody' is not listed"),
    ],
)
def test_a_malformed_value_before_is_refused(profile, change, words):
    broken = json.loads(json.dumps(profile))
    broken["host_to_device"]["bandwidth"]["before"] = change
    with pytest.raises(ProfileError, match=words):
        hardware_from_document(broken, "probe.yaml")
