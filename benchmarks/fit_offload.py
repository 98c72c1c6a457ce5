"""Fit the constants of mechanisms that carry `"fitted": true` in kvcalc/tiers/mechanisms.json.

    python benchmarks/fit_offload.py

The odd rows of each kind (see `offload_cases.py`) alone are fitted on; the even ones are left to
`tests/truth/test_offload.py`.  The fit minimizes the squared logarithm of predicted over measured, in
units of each row's own reading error; a weak prior, the value found on paper, holds what the rows leave
open.  Constants belong to a mechanism, and to a machine where its rates name one, never to a row.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from offload_cases import Case, Key, read_cases

FILE = Path(__file__).resolve().parents[1] / "kvcalc" / "tiers" / "mechanisms.json"

READING_ERROR = {"table": 0.05, "text": 0.10, "text/table": 0.05, "digitised": 0.07}
"""Relative error of a published value [1], by how it was read: digitised points carry 2 to 10 %."""
PRIOR_SPREAD = math.log(2) / 1.645
"""Deviation of the logarithm of a prior [1]: nine chances in ten that it is right within a factor of two."""
PRIORS: Mapping[str, float] = {"fixed": 0.005, "share": 0.9, "per_piece": 3.5e-6}
"""Values that a first guess is drawn to where a mechanism's own data has no better one."""
ROBUST = 3.0
"""Residuals above so many reading errors count in proportion, not squared [1] (P. Huber, Annals of
Mathematical Statistics 35 (1964) 73)."""
STEP = 1e-4  # of a logarithm, for derivatives
ROUNDS = 25


def fitted_keys(data: Mapping) -> dict[Key, float]:
    """Return the figures to fit with their present values."""
    return {
        (entry["name"], (rates.get("machines") or [""])[0], name): figure["value"]
        for entry in data["mechanisms"]
        for rates in entry["rates"]
        for name, figure in rates.items()
        if isinstance(figure, dict) and figure.get("fitted")
    }


def fittable() -> list[Case]:
    """Return the rows that a constant of a mechanism can be fitted on: those of one request."""
    return [case for case in read_cases()[0] if isinstance(case, Case)]


def residuals(cases: Sequence[Case], keys: Sequence[Key], logs: np.ndarray) -> np.ndarray:
    """Return the logarithm of predicted over measured of each row, in units of its reading error."""
    values = dict(zip(keys, map(float, np.exp(logs)), strict=True))
    return np.array(
        [
            math.log(case.with_values(values).predict() / case.measured) / READING_ERROR[case.quality]
            for case in cases
        ]
    )


def fit(cases: Sequence[Case], priors: Mapping[Key, float]) -> dict[Key, float]:
    """Return the fitted values: damped Gauss-Newton with a prior on each."""
    keys = list(priors)
    prior = np.log(np.array(list(priors.values())))
    most = np.array([0.0 if name == "share" else np.inf for _, _, name in keys])
    logs = np.minimum(prior, most)
    for _ in range(ROUNDS):
        off = residuals(cases, keys, logs)
        moved = [residuals(cases, keys, logs - STEP * np.eye(len(keys))[i]) for i in range(len(keys))]
        slopes = np.stack([(off - other) / STEP for other in moved], axis=1)
        weight = np.sqrt(np.minimum(1.0, ROBUST / np.maximum(np.abs(off), 1e-9)))
        matrix = np.vstack([slopes * weight[:, None], np.eye(len(keys)) / PRIOR_SPREAD])
        target = np.concatenate([-off * weight, (prior - logs) / PRIOR_SPREAD])
        step = np.clip(np.linalg.lstsq(matrix, target, rcond=None)[0], -0.5, 0.5)
        logs = np.minimum(logs + step, most)
        if np.abs(step).max() < STEP:
            break
    return dict(zip(keys, map(float, np.exp(logs)), strict=True))


def rounded(value: float) -> float:
    """Return a value with three digits, more than the rows support."""
    return float(f"{value:.3g}")


def written(data: Mapping) -> str:
    """Return the data as JSON with one figure a line."""
    lines = json.dumps(data, indent=1).splitlines()
    text, depth = [], 0
    for line in lines:
        inner = line.strip()
        if depth:
            text[-1] += (" " if text[-1][-1] not in "{[" and inner[0] not in "}]" else "") + inner
            depth += inner.endswith(("{", "[")) - inner.startswith(("}", "]"))
        else:
            text.append(line)
            is_leaf = inner.endswith("[") and '"mechanisms"' not in inner and '"rates"' not in inner
            depth = int(is_leaf or (inner.endswith("{") and '": {' in inner and '"sources"' not in inner))
    return "\n".join(text) + "\n"


def main() -> None:
    """Fit, write the file, and print what came out."""
    data = json.loads(FILE.read_text(encoding="utf-8"))
    odd = [case for case in fittable() if case.is_odd]
    priors = {key: figure_prior(data, key) for key in fitted_keys(data)}
    found = fit(odd, priors)
    for entry in data["mechanisms"]:
        for rates in entry["rates"]:
            for name, figure in rates.items():
                key = (entry["name"], (rates.get("machines") or [""])[0], name)
                if key in found:
                    figure["value"] = rounded(found[key])
                    print(*key, figure["value"])
    FILE.write_text(written(data), encoding="utf-8")


def figure_prior(data: Mapping, key: Key) -> float:
    """Return the prior of a figure: the one its data states, else the general one of its name."""
    for entry in data["mechanisms"]:
        for rates in entry["rates"]:
            if (entry["name"], (rates.get("machines") or [""])[0]) == key[:2]:
                figure = rates[key[2]]
                return float(figure.get("prior", PRIORS.get(key[2], figure["value"])))
    raise KeyError(key)


if __name__ == "__main__":
    main()
