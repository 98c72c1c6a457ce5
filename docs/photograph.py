"""Take the pictures of the report and the planner again: `python -m docs.photograph` (needs Chromium).

Browsers draw letters differently, so no test compares these; take them again when the pages change.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

import kvcalc

FOLDER = Path(__file__).resolve().parent
EXAMPLE = str(FOLDER.parent / "examples" / "four-gpus-70b.yaml")
WIDTH, HEIGHT = 1180, 1080
"""What a picture shows of a page [pixel]."""


def photograph(browser: Browser, address: str, name: str) -> None:
    """Write what stands on top of a page, once its verdicts are there."""
    window = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
    window.goto(address)
    window.wait_for_selector("#verdict-fit")
    window.wait_for_timeout(1000)
    window.screenshot(path=FOLDER / name)
    window.close()


def main() -> None:
    """Write report.png and planner.png beside this file."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        report = Path(folder) / "report.html"
        kvcalc.export(EXAMPLE, to=report)
        photograph(browser, report.as_uri(), "report.png")
        command = [sys.executable, "-m", "kvcalc", "app", EXAMPLE, "--no-browser", "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as planner:
            said = planner.stdout.readline() if planner.stdout else ""
            found = re.search(r"http://\S+", said)
            if found:
                photograph(browser, found[0], "planner.png")
            planner.terminate()
        browser.close()


if __name__ == "__main__":
    main()
