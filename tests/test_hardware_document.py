"""Documents of machines: what is refused with file and key, and what --set replaces."""

import copy
import json

import pytest
import yaml

from kvcalc.catalog import hardware
from kvcalc.catalog.hardware_document import hardware_from_document
from kvcalc.errors import ProfileError, SettingsError

# The document


def example():
    """A machine in the smallest form that is accepted."""
    rate = {"value": "50 GB/s", "kind": "nominal", "from": "page"}
    share = {"value": 0.5, "kind": "assumed", "from": "page", "range": [0.4, 0.6]}
    return {
        "schema": "kvcalc.hardware/1",
        "name": "mine",
        "title": "A machine",
        "vendor": "Nobody",
        "sources": {"page": {"title": "A page"}},
        "device": {
            "capacity": {"value": "80 GB", "kind": "nominal", "from": "page"},
            "marketed_capacity": {"value": "80 GB", "kind": "nominal", "from": "page"},
            "bandwidth": {"value": "2 TB/s", "kind": "nominal", "from": "page"},
            "flops": {"bf16": {"value": "300 TFLOP/s", "kind": "nominal", "from": "page"}},
        },
        "host_to_device": {"via": "a cable", "bandwidth": rate, "nominal": rate},
        "device_to_host": {"via": "a cable", "bandwidth": rate, "nominal": rate},
        "prefill_efficiency": share,
        "decode_efficiency": share,
    }


def test_the_smallest_document():
    machine = hardware_from_document(example(), "mine.yaml")
    assert machine.device.bandwidth == 2e12
    assert machine.host_to_device.latency is None
    assert machine.interconnect is None
    assert (machine.prefill_efficiency.low, machine.prefill_efficiency.high) == (0.4, 0.6)
    assert machine.provenance["device.bandwidth"].as_printed == "2 TB/s"
    with pytest.raises(TypeError):
        machine.provenance["device.bandwidth"] = None


GONE = object()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "host_to_device.bandwith",
            "1 GB/s",
            r"host_to_device\.bandwith: unknown key, did you mean 'bandwidth'",
        ),
        ("devise", {}, r"devise: unknown key, did you mean 'device'"),
        ("device.flops.fb8", {}, r"device\.flops\.fb8: unknown key, did you mean 'fp8'"),
        ("device.bandwidth.valeu", "1", r"device\.bandwidth\.valeu: unknown key, did you mean 'value'"),
        ("device.bandwidth", GONE, r"device\.bandwidth: missing"),
        ("device.bandwidth.from", GONE, r"device\.bandwidth\.from: missing"),
        ("vendor", GONE, r"vendor: missing"),
        ("device.bandwidth", "2 TB/s", r"device\.bandwidth: expected keys with values, not '2 TB/s'"),
        ("device.bandwidth.value", 2e12, r"device\.bandwidth\.value: '2e\+12' has no unit"),
        (
            "device.bandwidth.value",
            "2 TB",
            r"device\.bandwidth\.value: '2 TB' has the unit TB, which is not a byte/second",
        ),
        ("device.bandwidth.value", "-2 TB/s", r"device\.bandwidth\.value: must be positive"),
        ("device.bandwidth.value", "2 TB/s or so", r"device\.bandwidth\.value: '2 TB/s or so'"),
        (
            "device.bandwidth.from",
            "pages",
            r"device\.bandwidth\.from: 'pages' is not listed .*did you mean 'page'",
        ),
        ("device.bandwidth.kind", "guessed", r"device\.bandwidth\.kind: unknown kind 'guessed'"),
        ("device.bandwidth.range", ["3 TB/s", "4 TB/s"], r"device\.bandwidth\.range: 2 TB/s is outside"),
        ("device.bandwidth.range", ["1 TB/s"], r"device\.bandwidth\.range: expected two values"),
        ("device.unified", "yes", r"device\.unified: expected true or false"),
        ("host_to_device.via", 5, r"host_to_device\.via: expected text, not 5"),
        ("prefill_efficiency.value", 1.5, r"prefill_efficiency\.value: a share is at most 1"),
        ("prefill_efficiency.value", "half", r"prefill_efficiency\.value: expected a plain number"),
        ("prefill_efficiency.range", GONE, r"prefill_efficiency\.range: missing"),
        ("sources.page.link", "x", r"sources\.page\.link: unknown key"),
        ("aliases", "x", r"aliases: expected a list"),
        ("schema", "kvcalc.hardware/2", r"schema: expected kvcalc\.hardware/1"),
    ],
)
def test_a_wrong_document_names_file_and_key(key, value, message):
    document = copy.deepcopy(example())
    *path, last = key.split(".")
    section = document
    for name in path:
        section = section[name]
    if value is GONE:
        del section[last]
    else:
        section[last] = value
    with pytest.raises(ProfileError, match=r"^mine\.yaml: " + message) as caught:
        hardware_from_document(document, "mine.yaml")
    assert "\n" not in str(caught.value)


# --set


def test_set_replaces_a_value_and_says_so():
    machine = hardware.load("h100-sxm-80gb")
    changed = hardware.with_values(
        machine,
        {"host_to_device.bandwidth": "20 GB/s", "prefill_efficiency": "0.4", "device.flops.fp4": "1 PFLOP/s"},
    )
    assert changed.host_to_device.bandwidth == 20e9
    assert changed.device_to_host == machine.device_to_host
    assert (changed.prefill_efficiency.low, changed.prefill_efficiency.high) == (0.4, 0.4)
    assert changed.device.peak("fp4") == 1e15
    entry = changed.provenance["host_to_device.bandwidth"]
    assert (entry.kind, entry.source, entry.as_printed) == ("assumed", hardware.USER, "20 GB/s")
    assert entry.note == "instead of 55.36 GB/s (measured)"
    assert changed.cite("host_to_device.bandwidth") == "assumed, 20 GB/s, user"
    assert machine.host_to_device.bandwidth == 55.36e9


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("host_to_device.bandwith", "20 GB/s", "no such value, did you mean 'host_to_device.bandwidth'"),
        ("device.capacity", "80", "'80' has no unit"),
        ("device.capacity", "80 GB/s", "which is not a byte"),
        ("device.capacity", "0 GB", "must be positive"),
        ("decode_efficiency", "1.2", "a share is at most 1"),
        ("host.capacity", "1 TB", "h100-sxm-80gb has no such value"),
        ("device.unified", "true", "no such value"),
    ],
)
def test_a_wrong_set_names_the_key(key, text, message):
    with pytest.raises(SettingsError, match=rf"^--set {key}: ") as caught:
        hardware.with_values(hardware.load("h100-sxm-80gb"), {key: text})
    assert message in str(caught.value)


def test_citing_an_unknown_key_suggests_one():
    with pytest.raises(
        SettingsError, match=r"device\.bandwith: no such value, did you mean 'device\.bandwidth'"
    ):
        hardware.load("l4").cite("device.bandwith")


def test_files_and_folders_of_ones_own(tmp_path, monkeypatch):
    document = json.loads(json.dumps(example()))
    (tmp_path / "mine.json").write_text(json.dumps(document))
    assert hardware.load(str(tmp_path / "mine.json")).origin.endswith("mine.json")
    (tmp_path / "hardware").mkdir()
    (tmp_path / "hardware" / "lab.yaml").write_text(yaml.safe_dump(document))
    (tmp_path / "hardware" / "l4.yaml").write_text(yaml.safe_dump(document))
    monkeypatch.setenv("KVCALC_PATH", str(tmp_path))
    assert hardware.load("lab").device.capacity == 80e9
    assert hardware.load("mine").device.capacity == 80e9
    assert hardware.load("l4").device.capacity == 80e9  # one's own come before the built-in
    assert hardware.load("l40s").origin == "built-in"
    assert {"lab", "mine", "l4", "l40s"} <= set(hardware.names())
    monkeypatch.setenv("KVCALC_PATH", str(tmp_path / "none"))
    with pytest.raises(ProfileError, match=r"KVCALC_PATH: .*none is not a folder"):
        hardware.load("l40s")
    with pytest.raises(ProfileError, match=r"gone\.yaml: no such file"):
        hardware.load("gone.yaml")
