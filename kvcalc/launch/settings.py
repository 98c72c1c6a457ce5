"""What a launch says, read but not run: frozen fields with value, unit, scope and place."""

from dataclasses import dataclass
from typing import Any, Literal

Scope = Literal["", "total", "worker"]
"""Whom a size is for: all workers of one replica together, or each worker."""

UNIT_BYTES = {"byte": 1, "GB": 10**9, "GiB": 2**30, "MiB": 2**20}
"""Bytes in each unit in which engines take sizes [byte]."""


@dataclass(frozen=True)
class Field:
    """One thing that a launch says, under kvcalc's name for it."""

    name: str  # kvcalc's name: tp, max_len, host_size, ...
    value: Any
    flag: str  # as written
    where: str  # file and line
    unit: str = ""  # unit of `value`, as the engine reads it
    scope: Scope = ""

    @property
    def bytes(self) -> float:
        """The size in bytes, as the engine reads it."""
        return float(self.value) * UNIT_BYTES[self.unit]


@dataclass(frozen=True)
class Remark:
    """Something about the launch's own text: an unknown flag, a value that is set elsewhere."""

    id: str
    severity: str
    message: str
    instead: str
    where: str
    source: str = ""


@dataclass(frozen=True)
class LaunchSettings:
    """One launch of one engine, as its file says it."""

    file: str
    engine: str  # vllm, sglang or llama.cpp
    version: str | None = None
    fields: tuple[Field, ...] = ()
    remarks: tuple[Remark, ...] = ()
    container: bool = False  # started by docker, which gives it its own /dev/shm

    def field(self, name: str) -> Field | None:
        """Return the last field of this name, as the last one wins in every engine."""
        return next((item for item in reversed(self.fields) if item.name == name), None)

    def value(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - any field
        """Return the value of a field, or `default` where the launch does not say it."""
        found = self.field(name)
        return default if found is None else found.value

    def where(self, *names: str) -> str:
        """Return the place of the first of these fields that is said, or the file."""
        return next((found.where for name in names if (found := self.field(name))), self.file)

    def has(self, *names: str) -> bool:
        """Whether the launch says any of these."""
        return any(self.field(name) is not None for name in names)
