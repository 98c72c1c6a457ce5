"""The planner as its user sees it: load, turn a control, read the changed verdict."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from html import escape

import pytest

import kvcalc
from kvcalc.app.asking import controls, start
from kvcalc.output.sentences import in_words
from tests.browser.conftest import ROOT, violations

EXAMPLE = ROOT / "examples" / "four-gpus-70b.yaml"
PATIENCE = 60_000
"""Longest wait for an answer [millisecond]: a busy machine is not a failure."""

if os.environ.get("CI") != "true":
    pytest.importorskip("marimo", reason="the extra `app` is not installed")


@contextlib.contextmanager
def planner(*arguments):
    """Start the planner as a user does, on any free port, and return its process and address."""
    command = [sys.executable, "-m", "kvcalc", "app", *arguments, "--no-browser", "--port", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
    )
    try:
        said = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+", said)
        assert found, said + process.stderr.read()
        yield process, found[0]
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def address():
    with planner(str(EXAMPLE)) as (_, found):
        yield found


@pytest.fixture
def opened(window, address):
    """Return what opens the planner and waits for its first answer."""

    def opens(screen="desktop-light", address=address):
        found = window(screen, local=(address, address.replace("http", "ws")))
        found.page.goto(address)
        found.page.wait_for_selector("#verdict-fit", timeout=PATIENCE)
        return found

    return opens


def turned(page, key, press="ArrowLeft"):
    """Move a slider one step by the keyboard and return where it stands then, in its label's unit."""
    control = next(item for item in controls(start(str(EXAMPLE))) if item.key == key)
    slider = page.get_by_role("slider", name=control.label)
    slider.focus()
    page.keyboard.press(press)
    stands = control.steps[int(slider.get_attribute("aria-valuenow"))]
    assert stands != control.value
    return stands


def wait_for_fit(page, result):
    """Wait until the page says what the library says of this plan."""
    page.wait_for_function(
        "text => document.querySelector('#verdict-fit')?.textContent.includes(text)",
        arg=in_words(result).fit[0],
        timeout=PATIENCE,
    )


def test_turning_a_control_changes_the_verdict_to_that_of_the_library(opened, screen):
    found = opened(screen)
    page = found.page
    found.picture(f"planner-{screen}")
    wait_for_fit(page, kvcalc.plan(str(EXAMPLE)))
    assert page.text_content("#verdict-fit .answer") == "No: 26 of 32 fit"
    asked = turned(page, "concurrency")
    assert asked < 32
    result = kvcalc.plan(str(EXAMPLE), concurrency=int(asked))
    assert result.fits
    wait_for_fit(page, result)
    assert page.text_content("#verdict-fit .answer").startswith("Yes")
    assert page.text_content("#verdict-limit p:not(.answer)") == in_words(result).first_limit
    found.picture(f"planner-changed-{screen}")
    assert found.overflow() <= 0
    assert found.complaints == []
    assert found.requests == []


def test_charts_follow_the_controls(opened):
    page = opened().page
    assert "dram" in page.text_content("#restore figure >> nth=0 >> h3")
    asked = turned(page, "tiers.dram.bandwidth")
    result = kvcalc.plan(
        str(EXAMPLE),
        tiers={
            "dram": {"capacity": "512 GB", "bandwidth": f"{asked} GB/s", "setup": "12 ms"},
            "nvme": {"capacity": "8 TB", "bandwidth": "6.5 GB/s", "setup": "13 ms"},
        },
    )
    sentence = in_words(result).restores[0]
    page.wait_for_function(
        "text => document.querySelector('#verdict-offload')?.textContent.includes(text)",
        arg=sentence,
        timeout=PATIENCE,
    )
    transfer = next(item.transfer for item in result.offload if item.tier == "dram")
    assert f"{1e3 * transfer:.1f} ms" in page.text_content("#restore figure >> nth=0 >> svg")


def test_what_is_asked_can_be_saved_as_a_report(opened, tmp_path):
    page = opened().page
    asked = int(turned(page, "concurrency"))
    wait_for_fit(page, kvcalc.plan(str(EXAMPLE), concurrency=asked))
    with page.expect_download(timeout=PATIENCE) as saving:
        page.get_by_text("Save as a report").click()
    saving.value.save_as(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert saving.value.suggested_filename == "report.html"
    assert escape(in_words(kvcalc.plan(str(EXAMPLE), concurrency=asked)).fit[0]) in text
    assert text.rstrip().endswith("</html>")


def test_a_choice_without_an_answer_is_said_in_one_line(opened):
    page = opened().page
    page.get_by_label("KV dtype").select_option("nvfp4")
    page.get_by_label("Engine", exact=True).select_option("llama.cpp")
    page.wait_for_selector("[role=alert]", timeout=PATIENCE)
    told = page.text_content("[role=alert]")
    assert "No answer" in told
    assert "nvfp4" in told
    assert "Traceback" not in told
    page.get_by_text("Save as a report").wait_for(state="detached", timeout=PATIENCE)


def test_the_answers_break_no_rule_of_axe(opened, screen):
    # What marimo puts around them, such as its menu, is its own.
    assert violations(opened(screen).page, ".kvcalc") == []


def test_names_from_files_are_shown_as_text(window, scripted_model, tmp_path):
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        f"model: {scripted_model}\non: h100-sxm-80gb\nworkload: {{hit: 0.5}}\n"
        "tiers:\n  '=HYPERLINK(\"http://x\")': {bandwidth: 54 GB/s}\n"
        "  '<script>alert(2)</script> [x](http://y)': {bandwidth: 5 GB/s}\n",
        encoding="utf-8",
    )
    with planner(str(scenario)) as (_, address):
        found = window(local=(address, address.replace("http", "ws")))
        found.page.goto(address)
        found.page.wait_for_selector("#verdict-offload", timeout=PATIENCE)
        for label in ('=HYPERLINK("http://x"), GB/s', "<script>alert(2)</script> [x](http://y), GB/s"):
            assert found.page.get_by_text(label, exact=True).count() == 1
        assert found.page.locator(".planner-controls a, #verdict-offload a").count() == 0
        assert found.complaints == []
        assert found.requests == []


def test_only_names_of_this_machine_reach_it(address):
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    with pytest.raises(HTTPError) as refused:
        urlopen(Request(address, headers={"Host": "elsewhere.example"}), timeout=30)
    assert refused.value.code == 400
    refused.value.close()


def test_ctrl_c_stops_it_without_a_word():
    with planner() as (process, _):
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert process.stderr.read() == ""


def test_a_port_that_is_taken_is_one_line(address):
    port = address.rpartition(":")[2]
    found = subprocess.run(
        [sys.executable, "-m", "kvcalc", "app", "--no-browser", "--port", port],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == f"kvcalc: app: cannot listen on 127.0.0.1 port {port}: address already in use\n"
