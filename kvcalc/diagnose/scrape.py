"""Prometheus text, from a file or a URL on the local network -> samples by name."""

import ipaddress
import math
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from kvcalc.errors import ProfileError, SettingsError

MOST_BYTES = 32 * 2**20
"""Largest scrape that is read [byte]; an engine's is a few hundred kilobytes."""

PATIENCE = 10.0
"""Longest wait for an endpoint [second]."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One number of one series."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Scrape:
    """All samples of one scrape, by the name they are printed under."""

    source: str
    samples: Mapping[str, tuple[Sample, ...]]

    def total(self, name: str, labels: Mapping[str, str] | None = None) -> float | None:
        """Return the sum over all series of a name that have these labels; None where there is none."""
        found = self.matching(name, labels or {})
        return sum(sample.value for sample in found) if found else None

    def highest(self, name: str) -> float | None:
        """Return the highest value of a name: of several engines the fullest counts."""
        return max((sample.value for sample in self.matching(name, {})), default=None)

    def matching(self, name: str, labels: Mapping[str, str]) -> list[Sample]:
        """Return the samples of a name that have these labels."""
        found = self.samples.get(name, ())
        return [s for s in found if all(s.labels.get(key) == value for key, value in labels.items())]


def read_scrape(source: str) -> Scrape:
    """Read one scrape.

    Raises
    ------
    ProfileError
        If it cannot be read, is no Prometheus text, or has no samples.
    SettingsError
        If a URL does not lead to the local network.
    """
    text = _fetched(source) if source.startswith(("http://", "https://")) else _file(source)
    return parse(text, source)


def parse(text: str, source: str) -> Scrape:
    """Return the samples of a text; NaN stands for a value that is not there, and is left out."""
    from prometheus_client.parser import text_string_to_metric_families

    found: dict[str, list[Sample]] = {}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                value = float(sample.value)
                if not math.isnan(value):
                    found.setdefault(sample.name, []).append(Sample(dict(sample.labels), value))
    except Exception as error:  # the parser raises whatever its string handling does
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ProfileError(f"{source}: not Prometheus text: {reason:.80}") from None
    if not found:
        raise ProfileError(f"{source}: no samples; expected Prometheus text such as an engine's /metrics")
    return Scrape(source, {name: tuple(samples) for name, samples in found.items()})


def _file(source: str) -> str:
    path = Path(source).expanduser()
    try:
        if path.is_file() and path.stat().st_size > MOST_BYTES:
            raise ProfileError(f"{source}: larger than {MOST_BYTES // 2**20} MiB, so no scrape")
        return path.read_bytes().decode("utf-8", errors="replace")
    except OSError as error:
        raise ProfileError(f"{source}: {(error.strerror or str(error)).lower()}") from None


class _NoRedirect(HTTPRedirectHandler):
    """Only what the user names is asked."""

    def redirect_request(self, *_: object) -> None:
        """Follow nothing."""


def _fetched(url: str) -> str:
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(socket.gethostbyname(host))
    except (OSError, ValueError):
        raise ProfileError(f"{url}: unknown host {host!r:.60}") from None
    if not address.is_private:
        raise SettingsError(f"{url}: {host} is not on the local network; save its metrics to a file first")
    try:
        with build_opener(_NoRedirect).open(Request(url), timeout=PATIENCE) as answer:
            content: bytes = answer.read(MOST_BYTES + 1)
    except (URLError, OSError, ValueError) as error:
        raise ProfileError(f"{url}: {' '.join(str(error).split()):.80}") from None
    if len(content) > MOST_BYTES:
        raise ProfileError(f"{url}: larger than {MOST_BYTES // 2**20} MiB, so no scrape")
    return content.decode("utf-8", errors="replace")
