"""Write the generated pages of this folder: `python -m docs.build`, or with `--check` tell what is stale.

A page is made by a module in `docs/writers`, with a function `page` that returns its text or `pages` that
returns several by file name, or of a template in `docs/templates`, whose commands are run.  It is made from
the code, the catalogue and what the tests recorded.  Nothing on a page is typed twice.
"""

import sys
from importlib import import_module
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

from docs.writers.pictures import Picture  # noqa: E402 - found only on the path above
from docs.writers.template import from_template  # noqa: E402

PAGES = (
    "index",
    "commands",
    "formulas",
    "families",
    "formats",
    "engines",
    "models",
    "hardware",
    "tiers",
    "json",
    "accuracy",
    "quota",
    "probe",
    "traces",
    "workbook",
    "report",
    "peers",
)
"""Names of the pages; the writer of each has the same name, with `_page` behind it."""


TEMPLATES = FOLDER / "templates"
OWN_WRITER = ("index",)
"""Templates that a writer of the same name fills; the others hold nothing but their text and commands."""


def texts() -> dict[str, str]:
    """Return the text of every page by file name."""
    found = {name: text for writer in PAGES for name, text in _written(writer).items()}
    for file in sorted(TEMPLATES.rglob("*.md")):
        name = file.relative_to(TEMPLATES)
        if name.stem not in OWN_WRITER:
            found[name.as_posix()] = from_template(file, f"docs/templates/{name.as_posix()}")
    return found


def pictures() -> dict[str, Picture]:
    """Return every picture by file name."""
    return {name: picture for writer in PAGES for name, picture in _drawn(writer).items()}


def stale(folder: Path, pages: dict[str, str], drawings: dict[str, Picture]) -> list[str]:
    """Return the names of the files in a folder that differ from what they should be."""
    found = [name for name, text in pages.items() if _on_disk(folder / name) != text]
    return [*found, *(name for name, picture in drawings.items() if not picture.is_in(folder / name))]


def main(arguments: list[str]) -> int:
    """Write the pages and pictures, or check them; return the exit status."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python -m docs.build [--check]\n")
        return 2
    pages, drawings = texts(), pictures()
    names = stale(FOLDER, pages, drawings)
    if arguments:
        for name in names:
            sys.stderr.write(f"docs/{name} is stale: run python -m docs.build\n")
        return 1 if names else 0
    for name in names:
        file = FOLDER / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(pages[name] if name in pages else drawings[name].drawn(), encoding="utf-8")
    return 0


def _written(writer: str) -> dict[str, str]:
    module = import_module(f"docs.writers.{writer}_page")
    return module.pages() if hasattr(module, "pages") else {f"{writer}.md": module.page()}


def _drawn(writer: str) -> dict[str, Picture]:
    module = import_module(f"docs.writers.{writer}_page")
    return module.pictures() if hasattr(module, "pictures") else {}


def _on_disk(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
