"""Flags that the launch's own release does not have yet, or no longer has."""

from collections.abc import Iterator

from kvcalc.launch.checks.check import Check, Finding
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.connectors import release_of
from kvcalc.launch.flags import DIALECTS
from kvcalc.launch.flags.dialect import Release, known_names


def find(deployment: Deployment) -> Iterator[Finding]:
    """Compare each flag's releases with the launch's version, or with the newest where none is said."""
    launch = deployment.launch
    dialect, release = DIALECTS[launch.engine], release_of(launch)
    table = dict(known_names(dialect.names))
    table |= {name: (flag.since, flag.until) for flag in dialect.document for name in flag.names}
    for item in launch.fields:
        since, until = table.get(item.flag.replace("--no-", "--"), (None, None))
        if release is None:
            if until is not None:
                yield Finding(
                    "warning", f"{item.flag} is gone after {dialect.engine} {_text(until)}", "", item.where
                )
        elif since is not None and release < since:
            yield Finding(
                "error",
                f"{dialect.engine} {launch.version} does not have {item.flag}, which came with "
                f"{_text(since)}",
                f"{dialect.engine} {_text(since)} or later",
                item.where,
            )
        elif until is not None and release > until:
            yield Finding(
                "error",
                f"{dialect.engine} {launch.version} no longer has {item.flag}, which left after "
                f"{_text(until)}",
                "leave it out",
                item.where,
            )


def _text(release: Release) -> str:
    return f"{release[0]}.{release[1]}"


CHECK = Check(
    "release-has-flag", "https://docs.vllm.ai/en/latest/configuration/engine_args/", find, ("vllm",)
)
