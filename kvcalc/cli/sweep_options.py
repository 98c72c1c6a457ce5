"""The options of ``kvcalc sweep``."""

from typing import Annotated

import typer

Text = str | None


def key_names(incomplete: str) -> list[str]:
    """Return the inputs that a shell completes to, each ready for its values."""
    from kvcalc.keys import KEYS

    known = ["model", "on", *(item.name for item in KEYS if "plan" in item.commands)]
    return [f"{name}=" for name in known if name.startswith(incomplete)]


def column_names(incomplete: str) -> list[str]:
    """Return the columns with numbers that a shell completes to."""
    from kvcalc.planning.batch import COLUMNS

    return [item.name for item in COLUMNS if item.unit and item.name.startswith(incomplete)]


Vary = Annotated[
    list[str] | None,
    typer.Option(
        "--vary",
        metavar="KEY=RANGE",
        autocompletion=key_names,
        help="1..64, 1k..128k*2, '10..100 GB/s+10 GB/s', 0..1/5 or a,b,c. Repeatable.",
    ),
]
Best = Annotated[
    Text,
    typer.Option(
        "--best",
        metavar="KEY",
        autocompletion=column_names,
        help="Find the row that fits and is best in this column.",
    ),
]
Pareto = Annotated[
    Text, typer.Option("--pareto", metavar="KEY,KEY", help="Find the rows that no other one beats in all.")
]
Chart = Annotated[
    Text,
    typer.Option(
        "--chart",
        metavar="KEY",
        autocompletion=column_names,
        help="Draw this column over the first varied number.",
    ),
]
ChartFile = Annotated[
    Text, typer.Option("--chart-file", metavar="FILE", help="Draw it into a .png or .svg file.")
]
Scheduler = Annotated[
    Text,
    typer.Option("--scheduler", metavar="ADDRESS", help="Compute on a Dask cluster, e.g. tcp://host:8786."),
]
Form = Annotated[
    Text,
    typer.Option(
        "--format",
        metavar="table|json|csv|markdown|parquet",
        help="How to print or save [table, or by the name of --save].",
    ),
]
