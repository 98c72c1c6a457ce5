"""A hub id (``org/name``) -> its config.json, fetched with huggingface_hub into that package's own cache."""

import re
from pathlib import Path
from typing import Any

from kvcalc.errors import ProfileError, UnknownProfileError
from kvcalc.shapes.readers.huggingface import SIDECAR

BESIDE = (SIDECAR, "model.safetensors.index.json")
"""Further files that say something about a model; they need not exist."""

TIMEOUT = 5.0
"""How long a machine without network waits for an answer [second]."""

_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
"""What the hub allows in names, as far as it matters here."""


def fetch_config(hub_id: str) -> Path:
    """Return the path of a model's config.json, fetched if it is not in the cache of huggingface_hub.

    The quantization sidecar and the index of the weights come along where they exist.

    Raises
    ------
    UnknownProfileError
        If the id is malformed, or there is no such model or no config.json in it.
    ProfileError
        If huggingface_hub is not installed, the hub cannot be reached, or the model is gated.
    """
    if not _ID.fullmatch(hub_id):
        raise UnknownProfileError(f"{hub_id!r:.120} is neither a file nor a hub id such as org/name")
    try:
        import huggingface_hub as hub
    except ImportError:
        raise ProfileError(
            f"{hub_id}: no such file, and to ask the hub huggingface_hub is needed: pip install 'kvcalc[hub]'"
        ) from None
    if _cached(hub, hub_id, "config.json") is None:
        _ask(hub, hub_id)
    config = _fetch(hub, hub_id, "config.json")
    for name in BESIDE:
        try:
            _fetch(hub, hub_id, name)
        except UnknownProfileError:
            continue  # most models have no such file
        except ProfileError:
            if _cached(hub, hub_id, name) is None:
                raise  # it may exist, and what it says may change the answer
    return config


def _cached(hub: Any, hub_id: str, name: str) -> Any:  # noqa: ANN401 - a module without types
    """Return a path, or that the file is known not to exist; None when nothing is known."""
    return hub.try_to_load_from_cache(hub_id, name)


def _ask(hub: Any, hub_id: str) -> None:  # noqa: ANN401
    """Ask once for the config, since a download repeats its question for a minute without network."""
    try:
        hub.get_hf_file_metadata(hub.hf_hub_url(hub_id, "config.json"), timeout=TIMEOUT)
    except Exception as error:
        raise _explained(error, hub_id, "config.json") from None


def _fetch(hub: Any, hub_id: str, name: str) -> Path:  # noqa: ANN401
    try:
        return Path(hub.hf_hub_download(hub_id, name, etag_timeout=TIMEOUT))
    except Exception as error:  # the package raises those of three HTTP libraries besides its own
        raise _explained(error, hub_id, name) from None


def _explained(error: Exception, hub_id: str, name: str) -> Exception:
    """Return the error in the user's words; the package's own classes are told apart by name.

    Their place in the package has moved between versions, and its bases are those of an HTTP library.
    """
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if "GatedRepoError" in kinds:
        return ProfileError(
            f"{hub_id}: access is gated; accept its terms at https://huggingface.co/{hub_id}, "
            "then log in with `hf auth login` or set HF_TOKEN"
        )
    if kinds & {"EntryNotFoundError", "RemoteEntryNotFoundError"} and "LocalEntryNotFoundError" not in kinds:
        return UnknownProfileError(f"{hub_id}: the hub has no {name} for it")
    if "RepositoryNotFoundError" in kinds:
        return UnknownProfileError(
            f"{hub_id}: no such file, and no such model on the hub; for a private one, log in with "
            "`hf auth login` or set HF_TOKEN"
        )
    if "HFValidationError" in kinds:
        return UnknownProfileError(f"{hub_id!r} is neither a file nor a hub id such as org/name")
    reason = " ".join(str(error).split())[:120] or type(error).__name__
    return ProfileError(
        f"{hub_id}: no such file, and {name} cannot be fetched from the hub ({reason}); "
        "without network, give a path to config.json"
    )
