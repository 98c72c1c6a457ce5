"""How much of the restores' accuracy rests on fits and choices: the same rows without them, or with fewer.

    python benchmarks/offload_checks.py

writes the constants that come out when the even rows are fitted on instead (`docs/offload_checks.json`);
`tests/truth/test_offload.py` scores them on the odd ones, beside checks that need no fit.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from fit_offload import FILE, figure_prior, fit, fittable, fitted_keys
from offload_cases import Case, Key

from kvcalc.planning.offload import prefix

RECORD = Path(__file__).resolve().parents[1] / "docs" / "offload_checks.json"

REVISIONS = {"nixl-p2p-guide": "nixl-p2p", "nixl-p2p-wide-ep-old": "nixl-p2p-wide-ep"}
"""Mechanisms that rest on one report each -> the one that they are a revision of."""

Values = Mapping[Key, float]


def _data() -> Mapping:
    return json.loads(FILE.read_text(encoding="utf-8"))


def on_paper() -> Values:
    """Return each constant as it is read off its source before any fit."""
    return {key: figure_prior(_data(), key) for key in fitted_keys(_data())}


def without_revisions() -> Values:
    """Return the constants with those of each revision replaced by those of what it revises."""
    now = fitted_keys(_data())
    return {
        key: now.get((REVISIONS[key[0]], *key[1:]), value) if key[0] in REVISIONS else value
        for key, value in now.items()
    }


def swapped() -> Values:
    """Return the recorded constants of a fit on the even rows."""
    found = json.loads(RECORD.read_text(encoding="utf-8"))["fitted on the even rows"]
    return {(name, machine, figure): value for name, machine, figure, value in found}


@contextmanager
def launched_like_prefills() -> Iterator[None]:
    """Take the rule for hits of few remaining tokens away: their steps cost what a prefill's do."""
    kept, prefix.CAPTURED_FIXED = prefix.CAPTURED_FIXED, np.inf
    try:
        yield
    finally:
        prefix.CAPTURED_FIXED = kept


def errors(kind: str, odd: bool, values: Values | None = None) -> list[float]:
    """Return the errors of a kind's rows under other constants, those of one request alone."""
    cases: list[Case] = [case for case in fittable() if case.kind == kind and case.is_odd == odd]
    return [case.with_values(values or {}).error() for case in cases if not case.foreign]


def main() -> None:
    """Fit on the even rows and write what came out."""
    found = fit([case for case in fittable() if not case.is_odd], on_paper())
    rows = [[*key, float(f"{value:.3g}")] for key, value in sorted(found.items())]
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    RECORD.write_text(f'{{\n "fitted on the even rows": [\n{lines}\n ]\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
