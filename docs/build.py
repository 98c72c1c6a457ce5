"""Write the generated pages of this folder: `python docs/build.py`, or with `--check` tell what is stale.

Each page has a module in `docs/writers` with a function `page` that returns its text, made from the
code, the catalogue and what the tests recorded.  Nothing on a page is typed twice.
"""

import sys
from importlib import import_module
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

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
    "report",
    "peers",
)
"""Names of the pages; the writer of each has the same name, with `_page` behind it."""


def texts() -> dict[str, str]:
    """Return the text of every page by file name."""
    return {f"{name}.md": import_module(f"docs.writers.{name}_page").page() for name in PAGES}


def stale() -> list[str]:
    """Return the names of the pages that differ from what the code gives now."""
    return [name for name, text in texts().items() if _on_disk(FOLDER / name) != text]


def main(arguments: list[str]) -> int:
    """Write the pages, or check them; return the exit status."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python docs/build.py [--check]\n")
        return 2
    if arguments:
        names = stale()
        for name in names:
            sys.stderr.write(f"docs/{name} is stale: run python docs/build.py\n")
        return 1 if names else 0
    for name, text in texts().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


def _on_disk(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
