"""Where profiles lie: a path that is given, the folders of $KVCALC_PATH, the built-in catalogue."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from kvcalc.errors import ProfileError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

SUFFIXES = (".yaml", ".yml", ".json")
"""Endings of profile files."""


def builtin(kind: str) -> "Traversable":
    """Return the folder of built-in profiles of a kind, ``models`` or ``hardware``.

    A wheel carries them inside the package, also when it is not unpacked; in a checkout or an
    editable install they lie beside the package, so that edits are seen at once.
    """
    inside = Path(__file__).resolve().parents[1] / "_catalog" / kind
    beside = Path(__file__).resolve().parents[2] / kind
    for folder in (inside, beside):
        if folder.is_dir():
            return folder
    # Inside a wheel that is not unpacked; importing this costs a fifth of what numpy does.
    from importlib import resources

    return resources.files("kvcalc") / "_catalog" / kind


def is_path(name: str) -> bool:
    """Tell a path from a profile's name: it has a folder in it or a profile's suffix.

    >>> is_path("h100-sxm-80gb"), is_path("./mine.yaml"), is_path("mine.json")
    (False, True, True)
    """
    return name.endswith(SUFFIXES) or "/" in name or os.sep in name


def given_path(name: str) -> Path | None:
    """Return the file or folder that a name is the path of; None where there is none.

    >>> given_path("no/such/file")
    """
    try:
        path = Path(name).expanduser()
        return path if name and path.exists() else None
    except (OSError, RuntimeError, ValueError):  # too long, of an unknown user, or with a null in it
        return None


def personal_files(kind: str) -> dict[str, Path]:
    """Return the profiles of a kind in the folders of $KVCALC_PATH, by name; earlier folders win.

    A folder may hold profiles itself, or in a subfolder named after the kind.

    Raises
    ------
    ProfileError
        If a folder that the variable names does not exist.
    """
    found: dict[str, Path] = {}
    for folder in filter(None, os.environ.get("KVCALC_PATH", "").split(os.pathsep)):
        root = Path(folder).expanduser()
        if not root.is_dir():
            raise ProfileError(f"KVCALC_PATH: {folder} is not a folder")
        for place in (root / kind, root):
            if place.is_dir():
                for file in sorted(place.iterdir()):
                    if file.suffix in SUFFIXES:
                        found.setdefault(file.stem, file)
    return found
