"""Hooks of mkdocs: the navigation, formulas, pictures that take the page's colours, and source files.

Pages link to files of the repository as they do on its own pages.  The site holds those files as pages, so
that every link works offline.
"""

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from mkdocs.structure.files import File, Files  # noqa: E402 - the path above is for what follows

from docs.website.maths import fence  # noqa: E402
from docs.website.navigation import navigation, with_the_rest  # noqa: E402
from docs.writers.pictures import STANDALONE  # noqa: E402

SOURCE = "source"
"""Folder of the site for files of the repository."""
_LINK = re.compile(r"\]\(((?:\.\./)+[^)#\s]+)(#[^)\s]*)?\)")
_TAG = re.compile(r'^(```\w+) title="(?:only|without): [^"\n]*"$', re.MULTILINE)
"""Titles of blocks that tell the tests which part of an output is shown, and readers nothing."""
_PICTURE = re.compile(r'<p><img alt="([^"]*)" src="([^"]+\.svg)" ?/?></p>')
_LANGUAGES = {".py": "python", ".pyi": "python"}


def on_config(config: Any) -> Any:  # noqa: ANN401 - mkdocs names no types for its hooks
    """Put in the navigation and the fence for formulas."""
    fences = [{"name": "math", "class": "math", "format": fence}]
    config.mdx_configs.setdefault("pymdownx.superfences", {})["custom_fences"] = fences
    docs = Path(config.docs_dir)
    pages = {
        file.relative_to(docs).as_posix() for file in docs.rglob("*.md") if "templates" not in file.parts
    }
    config.nav = with_the_rest(navigation(), pages)
    return config


def on_files(files: Files, config: Any) -> Files:  # noqa: ANN401
    """Add a page for every file of the repository that a page links to."""
    for file in list(files.documentation_pages()):
        for target in _targets(file.src_uri, file.content_string):
            name = _page_of(target)
            if name not in files.src_uris and (ROOT / target).exists():
                files.append(File.generated(config, name, content=_source_page(ROOT / target, target)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:  # noqa: ANN401
    """Turn links that leave docs/ to the pages of the files, hide tags, and give wide outputs the width."""
    here = page.file.src_uri
    if here.startswith("commands/"):
        page.meta.setdefault("hide", ["toc"])

    def turned(match: re.Match[str]) -> str:
        target = _outside(here, match[1])
        if target is None:
            return match[0]
        link = posixpath.relpath(_page_of(target), posixpath.dirname(here) or ".")
        return f"]({link})"

    return _TAG.sub(r"\1", _LINK.sub(turned, markdown))


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:  # noqa: ANN401
    """Put pictures into the page itself, where they take its colours."""
    folder = Path(page.file.abs_src_path).parent if page.file.abs_src_path else ROOT

    def inside(match: re.Match[str]) -> str:
        svg = (folder / match[2]).read_text(encoding="utf-8").replace(STANDALONE, "")
        svg = svg.replace("<svg ", f'<svg role="img" aria-label="{match[1]}" ', 1)
        return f'<figure class="drawing">{svg}</figure>'

    return _PICTURE.sub(inside, html)


def on_post_page(output: str, page: Any, config: Any) -> str:  # noqa: ANN401
    """Say in which language a page is, where that is not English."""
    language = "zh-Hans" if page.file.src_uri.endswith(".zh-CN.md") else ""
    return output.replace('<html lang="en"', f'<html lang="{language}"', 1) if language else output


def _outside(here: str, link: str) -> str | None:
    """Return the path in the repository of a link that leaves docs/; None where it stays."""
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(here), link))
    return None if path.startswith(("docs/", "..")) else path


def _targets(here: str, markdown: str) -> set[str]:
    found = (_outside(here, match[1]) for match in _LINK.finditer(markdown))
    return {target for target in found if target is not None}


def _page_of(target: str) -> str:
    return f"{SOURCE}/{target}.md"


def _source_page(file: Path, target: str) -> str:
    head = f"---\nsearch:\n  exclude: true\nhide: [toc]\n---\n\n# {target}\n\n"
    if file.is_dir():
        return head + "\n".join(f"- {one.name}" for one in sorted(file.iterdir()) if one.name[0] not in "._")
    text = file.read_text(encoding="utf-8")
    return f"{head}`````{_LANGUAGES.get(file.suffix, 'text')}\n{text}\n`````\n"
