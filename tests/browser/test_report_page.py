"""The report as readers see it: offline, on a phone and a desk, light and dark, by mouse and by keyboard."""

import random

import pytest

import kvcalc
from kvcalc.output.sentences import in_words
from tests.browser.conftest import ROOT, SCREENS, give_up, missing, violations

EXAMPLE = ROOT / "examples" / "four-gpus-70b.yaml"
MOST_BYTES = 1_500_000
CONTROLS = ("prompt", "concurrency", "hit")

CONTRASTS = """() => {
  const numbers = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = (text) => numbers(text).map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const ratio = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const found = [];
  for (const chart of document.querySelectorAll(".chart")) {
    const card = getComputedStyle(chart.closest(".card")).backgroundColor;
    const wins = chart.querySelector(".wins");
    const papers = wins ? [card, getComputedStyle(wins).fill] : [card];
    for (const text of chart.querySelectorAll("text, tspan")) {
      const style = getComputedStyle(text);
      const under = text.classList.contains("on")
        ? [getComputedStyle(chart.querySelector("rect." + text.classList[1])).fill] : papers;
      for (const paper of under) found.push(["text", text.textContent, ratio(style.fill, paper)]);
    }
    for (const path of chart.querySelectorAll("path.curve"))
      for (const paper of papers)
        found.push(["mark", path.getAttribute("class"), ratio(getComputedStyle(path).stroke, paper)]);
    for (const bar of chart.querySelectorAll("rect:not(.wins, .track, .s5, .over-fill, .other-fill)"))
      found.push(["mark", bar.getAttribute("class"), ratio(getComputedStyle(bar).fill, card)]);
  }
  return found;
}"""
"""Contrast of every text, curve and bar of the charts by WCAG's formula; axe-core does not look into SVG.
Left out are pale fills that stand beside a text of their own: free memory, and what exceeds a budget."""


FOCUSED = """() => {
  const one = document.activeElement;
  const shown = one.matches("[name=theme]") ? one.nextElementSibling : one;
  return [one.id || one.getAttribute("href") || one.getAttribute("name") || one.tagName,
          getComputedStyle(shown).outlineStyle];
}"""
"""What has the keyboard, and whether it is seen to have it."""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    kvcalc.export(str(EXAMPLE), to=path)
    return path


@pytest.fixture
def opened(window, file):
    """Return what opens the report offline, in a window that notes each request."""

    def opens(screen="desktop-light", **options):
        found = window(screen, local=(file.as_uri(),), offline=True, **options)
        found.page.goto(file.as_uri())
        return found

    return opens


def set_control(page, key, place):
    """Move a slider to a place by the keyboard alone."""
    page.focus(f"#control-{key}")
    page.keyboard.press("Home")
    for _ in range(place):
        page.keyboard.press("ArrowRight")


def found_lines(page):
    return page.locator("#found-lines p").all_text_contents(), page.locator(
        "#found-restores p"
    ).all_text_contents()


def test_the_file_is_small_and_names_nothing_to_load(file):
    text = file.read_text(encoding="utf-8")
    assert len(text.encode()) < MOST_BYTES
    assert "default-src 'none'" in text
    assert "<link" not in text
    assert " src=" not in text
    assert "@import" not in text
    assert "url(" not in text


def test_it_opens_offline_and_fits_every_screen(opened, screen):
    found = opened(screen)
    found.picture(f"report-{screen}")
    assert found.overflow() <= 0
    assert found.complaints == []
    assert found.requests == []
    result = kvcalc.plan(str(EXAMPLE))
    verdict = found.page.text_content("#verdict-fit .answer")
    assert f"{result.capacity.sessions:.0f} of {result.inputs['concurrency']}" in verdict


def test_a_table_wider_than_a_phone_scrolls_to_its_last_column_and_shows_that_it_does(opened):
    page = opened("phone-light").page
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    wide = page.evaluate("""() => [...document.querySelectorAll(".scroll")]
      .filter(one => one.scrollWidth > one.clientWidth)
      .map(one => {
        one.scrollLeft = one.scrollWidth;
        const last = one.querySelector("tr > :last-child").getBoundingClientRect();
        const style = getComputedStyle(one);
        return [last.right <= one.getBoundingClientRect().right + 1,
                style.backgroundAttachment.split(", ").sort().join(" "), style.backgroundImage !== "none"];
      })""")
    assert wide
    assert all(one == [True, "local local scroll scroll", True] for one in wide)


def test_a_changed_input_changes_the_verdict_to_that_of_the_library(opened, screen):
    found = opened(screen)
    page = found.page
    assert page.text_content("#found-head") == "It does not fit"
    page.focus("#control-concurrency")
    page.keyboard.press("ArrowLeft")
    asked = int(page.text_content("#value-concurrency"))
    assert asked < 32
    result = kvcalc.plan(str(EXAMPLE), concurrency=asked)
    assert page.text_content("#found-head") == "It fits"
    assert found_lines(page)[0][0] == in_words(result).fit[0]
    page.locator("#what-if").screenshot(path=ROOT / "tests" / "artefacts" / f"report-changed-{screen}.png")
    page.click("#control-reset")
    assert page.text_content("#found-head") == "It does not fit"
    assert found.complaints == []


def test_every_combination_says_what_a_plan_of_its_own_says(opened):
    page = opened().page
    counts = [1 + int(page.get_attribute(f"#control-{key}", "max")) for key in CONTROLS]
    chosen = random.Random(10)
    for _ in range(12):
        places = [chosen.randrange(count) for count in counts]
        for key, place in zip(CONTROLS, places, strict=True):
            set_control(page, key, place)
        prompt, concurrency, hit = (page.text_content(f"#value-{key}") for key in CONTROLS)
        result = kvcalc.plan(
            str(EXAMPLE),
            prompt=int(prompt.removesuffix(" tokens").replace(",", "")),
            concurrency=int(concurrency),
            hit=float(hit.removesuffix(" %")) / 100,
        )
        said = in_words(result)
        loads, restores = found_lines(page)
        assert loads[:-1] == [*said.fit, said.first_limit]
        assert restores == list(said.restores) or hit == "0 %"


def test_no_rule_of_axe_is_broken(opened, screen):
    assert violations(opened(screen).page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_charts_can_be_read_by_those_who_see_little(opened, scheme):
    found = opened(f"desktop-{scheme}").page.evaluate(CONTRASTS)
    assert len(found) > 100
    assert [item for item in found if item[2] < (4.5 if item[0] == "text" else 3.0)] == []


def test_charts_have_words_and_numbers_for_those_who_see_none(opened):
    page = opened().page
    for figure in page.locator("figure").all():
        label = figure.locator("svg[role=img]").get_attribute("aria-label")
        assert len(label.split()) > 5
        assert figure.locator("details table tbody tr").count() >= 1


def test_the_colours_can_be_chosen(opened):
    page = opened("desktop-light").page
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_label("Dark").check()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert light != dark
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    page.get_by_label("Auto").check()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == light


def test_the_keyboard_reaches_everything_in_order_and_shows_where_it_is(opened):
    page = opened().page
    reached = []
    while len(reached) < 200:
        page.keyboard.press("Tab")
        reached.append(page.evaluate(FOCUSED))
        if reached[-1][0] == "BODY":  # past the end
            reached.pop()
            break
    names = [name for name, _ in reached]
    assert names[0] == "#main"
    wanted = ["theme", "#verdicts", "#sources", *(f"control-{key}" for key in CONTROLS), "SUMMARY"]
    assert [name for name in wanted if name not in names] == []
    assert [names.index(name) for name in wanted] == sorted(names.index(name) for name in wanted)
    assert [name for name, style in reached if style != "solid"] == []


def test_it_prints_without_what_paper_cannot_do(opened):
    found = opened()
    found.page.emulate_media(media="print")
    for hidden in ("nav.bar", ".theme", "#what-if", "details.numbers >> nth=0"):
        assert not found.page.locator(hidden).is_visible()
    for shown in ("#verdict-fit", "#restore svg >> nth=0", "#numbers table >> nth=0", "#sources"):
        assert found.page.locator(shown).is_visible()
    printed = found.page.pdf(format="A4")
    assert printed.startswith(b"%PDF")


def test_without_scripts_everything_but_the_controls_is_there(opened):
    page = opened(java_script_enabled=False).page
    assert page.locator("#verdict-fit").is_visible()
    assert page.locator("#sources").is_visible()
    assert not page.locator("#what-if").is_visible()
    assert not page.locator(".theme").is_visible()


def test_names_from_files_are_shown_as_text(window, tmp_path, scripted_model):
    tier = '=HYPERLINK("http://x")'
    path = tmp_path / "report.html"
    kvcalc.export(
        scripted_model,
        "h100-sxm-80gb",
        to=path,
        tiers={tier: {"bandwidth": "54 GB/s"}, "</script><script>alert(2)</script>": {"bandwidth": "5 GB/s"}},
        hit=0.5,
    )
    found = window(local=(path.as_uri(),), offline=True)
    found.page.goto(path.as_uri())
    assert found.page.text_content("h1").startswith("<script>alert(1)</script>")
    assert tier in found.page.text_content("#verdict-offload")
    assert found.page.locator("script").count() == 2
    assert found.page.locator("#verdict-offload a").count() == 0
    set_control(found.page, "hit", 3)
    assert tier in found.page.text_content("#found-restores")
    assert found.complaints == []
    assert found.requests == []


def test_the_screens_are_those_that_were_promised():
    assert {width for width, _ in SCREENS.values()} == {1280, 390}


@pytest.mark.parametrize(("ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_a_missing_browser_is_a_skip_with_its_reason_and_in_ci_a_failure(monkeypatch, ci, outcome):
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr("shutil.which", lambda name: None)
    reason = missing()
    assert "no browser was found" in reason
    with pytest.raises(outcome, match="no browser"):
        give_up(reason)
