"""A real Chromium, driven headless; what it shows is kept as pictures in tests/artefacts."""

import importlib.util
import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ARTEFACTS = ROOT / "tests" / "artefacts"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

SCREENS = {
    "desktop-light": (1280, "light"),
    "desktop-dark": (1280, "dark"),
    "phone-light": (390, "light"),
    "phone-dark": (390, "dark"),
}
"""Width of a window [pixel] and the colours that its user prefers."""

HEIGHT = 900
"""Height of a window [pixel]."""


def missing():
    """Return what a browser test misses on this machine; empty where it can run."""
    if not any(map(shutil.which, NAMES)):
        return f"no browser was found: {', '.join(NAMES)}"
    absent = [
        name for name in ("playwright", "axe_playwright_python") if importlib.util.find_spec(name) is None
    ]
    return f"not installed: {', '.join(absent)}" if absent else ""


def give_up(reason):
    """Skip a test for a reason; where CI runs, nothing may be missing."""
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)


@pytest.fixture(scope="session")
def chromium():
    """Return a started Chromium; where there is none, skip, and fail where CI runs."""
    reason = missing()
    if reason:
        give_up(reason)
    from playwright.sync_api import sync_playwright

    path = next(found for found in map(shutil.which, NAMES) if found)
    with sync_playwright() as driver:
        # A sandbox of its own is refused to root, which containers run tests as.
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


class Window:
    """One tab, with whatever it complained of and whatever it asked the network for."""

    def __init__(self, browser, screen, *, local=(), **options):
        width, scheme = SCREENS[screen]
        self.width = width
        self.context = browser.new_context(
            viewport={"width": width, "height": HEIGHT}, color_scheme=scheme, **options
        )
        self.page = self.context.new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._alerted)
        self.page.on("request", self._asked)
        self.local = local

    def _heard(self, message):
        if message.type == "error":
            self.complaints.append(message.text)

    def _alerted(self, dialog):
        self.complaints.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def _asked(self, request):
        if not request.url.startswith(("data:", "blob:", *self.local)):
            self.requests.append(request.url)

    def picture(self, name):
        """Keep what is seen."""
        ARTEFACTS.mkdir(exist_ok=True)
        # The planner scrolls within itself, so its window is made as high as what is in it.
        height = self.page.evaluate(
            "Math.max(...['html', '#App'].map(one => document.querySelector(one)?.scrollHeight ?? 0))"
        )
        self.page.set_viewport_size({"width": self.width, "height": height})
        self.page.screenshot(path=ARTEFACTS / f"{name}.png")
        self.page.set_viewport_size({"width": self.width, "height": HEIGHT})

    def overflow(self):
        """Return by how many pixels the page is wider than its window."""
        return self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )


@pytest.fixture
def window(chromium):
    """Return what opens a window of one of SCREENS; all are closed in the end."""
    opened = []

    def opens(screen="desktop-light", **options):
        opened.append(Window(chromium, screen, **options))
        return opened[-1]

    yield opens
    for one in opened:
        one.context.close()


@pytest.fixture(params=SCREENS)
def screen(request):
    """Return the name of each of SCREENS in turn."""
    return request.param


def violations(page, within=None):
    """Return what axe-core finds wrong with a page, one line an element."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, context=within)
    return [
        f"{rule['id']}: {node['html'][:120]}"
        for rule in found.response["violations"]
        for node in rule["nodes"]
    ]


@pytest.fixture
def scripted_model(tmp_path):
    """Return the path of a small model's profile whose name is a script."""
    import json

    from kvcalc.listings import model_profile

    folder = tmp_path / "small"
    folder.mkdir()
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "num_hidden_layers": 4,
        "hidden_size": 512,
        "intermediate_size": 1024,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 1000,
        "max_position_embeddings": 8192,
        "torch_dtype": "bfloat16",
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    profile = tmp_path / "scripted.yaml"
    profile.write_text(model_profile(str(folder), "<script>alert(1)</script>"), encoding="utf-8")
    return str(profile)
