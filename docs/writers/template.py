"""Pages of a template: its commands are run, and what they print is put under them."""

from pathlib import Path

from docs.writers.blocks import BlockError, filled


def from_template(file: Path, source: str) -> str:
    """Return the page: the template with a remark under its title, and outputs behind each `$ command`."""
    title, _, rest = file.read_text(encoding="utf-8").partition("\n")
    remark = f"<!-- Made by `python -m docs.build` from `{source}`. Do not edit. -->"
    try:
        return f"{title}\n\n{remark}\n{filled(rest)}"
    except Exception as error:  # whatever a block raises, its page is to be named
        raise BlockError(f"{source}: {error!r}") from error
