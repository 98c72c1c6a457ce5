"""What is refused of a way through other tiers, and times that may be zero."""

import re

import pytest

from kvcalc.api import plan, restore
from kvcalc.errors import SettingsError
from kvcalc.launch.checks.check import gb
from kvcalc.output.pages.fleet import fleet_block

ON = ("llama-3.1-8b", "h100-sxm-80gb")


def test_a_way_through_a_tier_that_is_not_named_offers_others_and_never_itself():
    nvme = {"bandwidth": "4 GB/s", "via": "dram"}
    with pytest.raises(SettingsError, match=re.escape("name it as a tier too, for example --tier 'dram=")):
        plan(*ON, prompt="8k", tiers={"nvme": nvme})
    with pytest.raises(SettingsError, match="drams") as caught:
        plan(*ON, prompt="8k", tiers={"nvme": nvme, "drams": {"bandwidth": "50 GB/s"}})
    assert "valid are nvme" not in str(caught.value)


def test_nothing_left_to_compute_may_be_said():
    said = {"prefill": "1 s", "setup": "0 s"}
    left_out, zero = (restore("1 GB", "10 GB/s", **said, **more) for more in ({}, {"remaining": "0 s"}))
    assert left_out.rows[0].cached_total == zero.rows[0].cached_total
    assert not any("no --remaining" in text for text in zero.assumptions)
    assert not any("was given" in text for text in zero.assumptions)


@pytest.mark.parametrize(
    ("size", "told"), [(100, "100 bytes"), (1, "1 byte"), (0, "0 bytes"), (2048, "2.05 kB (2 KiB)")]
)
def test_a_small_size_is_not_told_in_megabytes(size, told):
    assert gb(size) == told


def test_a_fleet_that_gains_nothing_is_not_told_as_once_the_rate():
    # so many answers a second that decode is the limit, with a tier and without
    found = plan(*ON, prompt="1k", cached="500", generate="4k", rate="0.1/s", concurrency=4)
    assert found.fleet is not None
    assert f"{found.fleet.gain:.3g}" == "1"
    assert "first, at the rate without." in fleet_block(found.fleet).notes[0]
