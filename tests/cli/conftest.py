"""A command line run in this process, and what must hold of every refusal."""

from dataclasses import dataclass

import pytest

from kvcalc.cli import run


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str


@pytest.fixture
def kvcalc(capsys):
    """Run a command line and return its exit status and what it wrote."""

    def call(*arguments: str) -> Outcome:
        capsys.readouterr()
        status = run(arguments)
        return Outcome(status, *capsys.readouterr())

    return call


@pytest.fixture
def refusal(kvcalc):
    """Run a command line that is bad input, and return its one line."""

    def call(*arguments: str) -> str:
        outcome = kvcalc(*arguments)
        assert outcome.status == 2
        assert outcome.out == ""
        assert outcome.err.startswith("kvcalc: ")
        assert outcome.err.endswith("\n")
        assert outcome.err.count("\n") == 1
        assert "internal error" not in outcome.err
        return outcome.err.removeprefix("kvcalc: ").rstrip("\n")

    return call
