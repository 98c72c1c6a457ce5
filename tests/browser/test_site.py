"""The site that mkdocs makes of docs/: no warning, no broken link, and nothing fetched from elsewhere."""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("material", reason="the docs extra is not installed")
pytest.importorskip("latex2mathml", reason="the docs extra is not installed")

ROOT = Path(__file__).resolve().parents[2]
FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "object": "data"}
LINKS_THAT_FETCH = {"stylesheet", "icon", "preload", "preconnect", "prefetch", "modulepreload", "manifest"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


class Page(HTMLParser):
    """What a page fetches, links to, and names."""

    def __init__(self, text):
        super().__init__()
        self.fetched, self.links, self.names, self.language = [], [], set(), ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.names |= {found.get("id"), found.get("name")}
        if tag == "html":
            self.language = found.get("lang")
        if tag in FETCHED and found.get(FETCHED[tag]):
            self.fetched.append(found[FETCHED[tag]])
        if tag == "link" and LINKS_THAT_FETCH & set((found.get("rel") or "").split()):
            self.fetched.append(found["href"])
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])


@pytest.fixture(scope="module")
def pages(site):
    """Return what is on each page but those that show a file of the repository."""
    files = [file for file in site.rglob("*.html") if "source" not in file.relative_to(site).parts]
    return {file: Page(file.read_text(encoding="utf-8")) for file in files}


def test_every_page_of_the_docs_is_there(site):
    docs = ROOT / "docs"
    names = {f.relative_to(docs).as_posix() for f in docs.rglob("*.md") if "templates" not in f.parts}
    assert len(names) > 100
    assert [name for name in names if not (site / name).with_suffix(".html").exists()] == []


def test_a_page_without_a_place_falls_into_the_reference():
    from docs.website.navigation import with_the_rest

    nav = [{"Start": [{"Home": "index.md"}, {"Gone": "gone.md"}]}, {"Reference": ["json.md"]}]
    found = with_the_rest(nav, {"index.md", "json.md", "new.md"})
    assert found == [{"Start": [{"Home": "index.md"}]}, {"Reference": ["json.md", "new.md"]}]


def test_nothing_is_fetched_from_elsewhere(site, pages):
    assert {url for page in pages.values() for url in page.fetched if urlsplit(url).netloc} == set()
    for sheet in site.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import )[\"']?(?:https?:)?//[^)\"']*", sheet.read_text("utf-8")) == []


def test_every_link_inside_the_site_leads_to_a_page_and_a_place_on_it(pages):
    broken = []
    for file, page in pages.items():
        if file.name == "404.html":
            continue  # its links begin at the root of a server
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            there = target.exists()
            if there and target in pages and parts.fragment:
                there = unquote(parts.fragment) in pages[target].names
            if not there:
                broken.append((file.name, link))
    assert broken == []


def test_formulas_are_mathml(site):
    from kvcalc.explain import names

    for name in names():
        text = (site / "formulas" / f"{name}.html").read_text(encoding="utf-8")
        shown = re.search(r'<div class="formula".*?</div>', text, re.DOTALL)
        assert shown is not None, name
        assert "<math" in shown[0], name
        assert "\\" not in shown[0], f"{name}: a command of LaTeX was not understood"
        assert '<figure class="drawing"><svg role="img" aria-label=' in text


def test_the_pages_in_chinese_say_so(site, pages):
    assert pages[site / "first-plan.zh-CN.html"].language == "zh-Hans"
    assert pages[site / "first-plan.html"].language == "en"


def test_the_search_finds_pages_and_no_source_files(site):
    found = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    text = {page["location"]: page["title"] for page in found["docs"]}
    assert "formulas/break_even_bandwidth.html" in text
    assert "commands/plan.html" in text
    assert "first-plan.zh-CN.html" in text
    assert [place for place in text if place.startswith("source/")] == []


# In a real browser, opened as files


@pytest.fixture(scope="module")
def window(site, chromium):
    opened = chromium.new_page(viewport={"width": 1280, "height": 900})
    opened.told, opened.asked = [], []
    opened.on("console", lambda message: opened.told.append(message.text))
    opened.on("pageerror", lambda error: opened.told.append(str(error)))
    opened.on("request", lambda request: opened.asked.append(request.url))
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("words", "title"), [("break-even bandwidth", "break_even_bandwidth"), ("显存", "五分钟完成第一份规划")]
)
def test_the_search_answers(site, window, words, title):
    window.goto(f"file://{site}/index.html?q={words}")
    window.wait_for_selector(".md-search-result__item", timeout=60_000)
    found = [one.inner_text().replace("\u200b", "") for one in window.query_selector_all("article h1")]
    assert title in found


@pytest.mark.parametrize(
    "name",
    ["index", "first-plan.zh-CN", "commands", "commands/plan", "formulas/path_time", "accuracy", "peers"],
)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_is_wider_than_a_phone(site, window, name, scheme):
    """Wide tables, outputs and pictures scroll inside themselves."""
    window.set_viewport_size({"width": 390, "height": 844})
    window.emulate_media(color_scheme=scheme)
    window.goto(f"file://{site}/{name}.html")
    assert window.evaluate("document.documentElement.scrollWidth") == 390


def test_the_browser_asked_for_files_alone_and_complained_of_nothing(window):
    assert window.told == []
    assert [url for url in window.asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert len(window.asked) > 10
