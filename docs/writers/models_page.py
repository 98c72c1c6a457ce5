"""docs/models.md: every model profile, by attention family."""

from collections import defaultdict
from collections.abc import Mapping
from types import ModuleType

from docs.writers.markdown import code, document, prose, table
from docs.writers.source import submodules, summary
from kvcalc.catalog import models
from kvcalc.listings import models_table
from kvcalc.output.fields import shown
from kvcalc.shapes import families

UNNAMED = "No `model_type` in the checkpoint's config"


def page() -> str:
    """Return the page."""
    listed = models_table()
    names = [column.name for column in listed.columns]
    columns = dict(zip(names, listed.columns, strict=True))
    groups: dict[str, list[list[str]]] = defaultdict(list)
    headings = _headings()
    for row in sorted(listed.rows):
        cells = {name: shown(columns[name], value) for name, value in zip(names, row, strict=True)}
        groups[headings.get(cells["model_type"], UNNAMED)].append(_row(cells))
    blocks = []
    for heading, rows in sorted(groups.items()):
        blocks += [
            f"## {heading}",
            table(
                ["model", "parameters", "active", "KV a token", "constant KV", "context", "type"],
                rows,
                "lrrrrrl",
            ),
        ]
    return document(
        "Models",
        "the profiles in `models/`",
        f"{len(listed.rows)} profiles, by attention family; each file names the config that it was read "
        "from. Parameters "
        "in M (million) and B (billion). KV is one logical copy in the model's own dtype, without an "
        "engine; "
        "*constant* are full windows and recurrent states of one sequence. `kvcalc models show NAME` "
        "says more of "
        "one, `kvcalc models import` makes a profile of a config.",
        *blocks,
    )


def _headings() -> Mapping[str, str]:
    """Return the heading of each `model_type`: what its family says of itself."""
    return {
        model_type: f"{prose(summary(module).partition(':')[0].removesuffix('.'))} ({_file(module)})"
        for module in submodules(families)
        for model_type in getattr(module, "MODEL_TYPES", ())
    }


def _file(module: ModuleType) -> str:
    return f"{module.__name__.rpartition('.')[2]}.py"


def _row(cells: Mapping[str, str]) -> list[str]:
    name = cells["name"]
    hub = models.load(name).hub
    file = f"[{name}](../models/{name}.yaml)" + (f" ([hub](https://huggingface.co/{hub}))" if hub else "")
    numbers = [cells[key] for key in ("parameters", "active", "kv_per_token", "kv_constant", "max_tokens")]
    return [file, *numbers, code(cells["model_type"])]
