"""Fit what a prefill reaches of each kind of GPU, and write it to hardware/prefill_fit.json.

    python benchmarks/fit_prefill.py

Two efficiencies a kind (matrix products, attention), and on all of them one share for the products of
routed experts and one fixed cost, are fitted together on the odd-numbered `ttft_pair` rows of published
times alone; the even ones and the other kinds of rows are left to `tests/truth/test_prefill.py`.  The fit
minimizes the squared logarithm of predicted over measured time, in units of each row's own reading error,
and a weak prior holds what the rows leave open.  `hardware/generate.py` puts the result into the profiles;
run it and `python -m kvcalc.catalog.table` afterwards, and carry the experts' share and the fixed cost to
`planning/pace.py`.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from prefill_cases import Case, read_cases

from kvcalc.planning.pace import HANDLING, Pace
from kvcalc.planning.prefill import PrefillModel

OUTPUT = Path(__file__).resolve().parents[1] / "hardware" / "prefill_fit.json"

READING_ERROR = {"table": 0.10, "text": 0.10, "text/table": 0.10, "digitised": 0.15}
"""Relative error of a published time [1], by how it was read: what the collection of rows suggests."""
PRIOR_EXPERTS = 0.65
"""Share of a dense product's pace that routed experts reach [1]: published efficiencies of 0.25 to 0.45
for mixtures of experts against 0.55 for dense models on one GPU (offload reference, section 5.1)."""
PRIOR_FIXED = math.sqrt(0.010 * 0.030)
"""Fixed cost of one prefill [second]: between 10 and 30 ms (as above)."""
PRIOR_SPREAD = math.log(2) / 1.645
"""Deviation of the logarithm of a prior [1]: nine chances in ten that it is right within a factor of two."""
NINE_IN_TEN = 1.645
LEAST_SPREAD = 0.15
"""Least relative width of a range, to either side [1]: two revisions of one stack on the same GPU differ
by 10 to 18 % (gpt-oss-120b on H200, llm-d)."""
SIBLING_SPREAD = 0.3
"""The same for a GPU of the same generation that was not measured [1]; assumed."""
STEP = 1e-4  # of a logarithm, for derivatives
ROUNDS = 100


@dataclass(frozen=True, slots=True)
class Kind:
    """GPUs that share one pair of efficiencies, and siblings that take it over for want of their own."""

    machines: tuple[str, ...]
    prior: float  # efficiency of both, before any row is seen (offload reference, section 5.1)
    source: str  # key in `hardware/additions.json` of the page that most rows are from
    siblings: tuple[str, ...] = ()


KINDS = (
    Kind(
        ("h100-sxm-80gb", "h200-sxm-141gb"),
        0.55,
        "vllm_offload",
        (
            *("h100-pcie-80gb", "h100-nvl-94gb", "h200-nvl-141gb", "h800-sxm-80gb"),
            *("gh200-96gb", "gh200-144gb"),
        ),
    ),
    Kind(("h20-96gb",), 0.75, "agentic_kvc", ("h20-3e-141gb",)),
    Kind(("mi300x",), 0.30, "ceph", ("mi325x", "mi350x", "mi355x", "mi300a")),
    Kind(("gaudi3",), 0.20, "ceph", ("gaudi2",)),
    Kind(("rtx-3090",), 0.82, "kvreap_3090"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One case with its model, and which kind of GPU it ran on."""

    case: Case
    model: PrefillModel
    kind: int

    @property
    def reading_error(self) -> float:
        """Relative error of the published time."""
        return READING_ERROR[self.case.quality]

    def residual(self, logs: np.ndarray) -> float:
        """Return the logarithm of predicted over measured time, in units of the reading error."""
        products, attention = np.minimum(np.exp(logs[2 * self.kind : 2 * self.kind + 2]), 1.0)
        pace = Pace(float(products), float(attention), *np.exp(logs[-2:]).tolist(), HANDLING)
        time = float(self.model.time(float(self.case.tokens), float(self.case.cached), pace))
        return math.log(time / self.case.seconds) / self.reading_error


def odd_rows() -> list[Row]:
    """Return the rows to fit on; one that repeats a measurement (another tier, the same miss) counts once."""
    cases, _ = read_cases()
    distinct = {(c.machine, c.model, c.tokens, c.seconds): c for c in cases if c.is_odd}
    return [
        Row(case, case.model_on(), index)
        for case in distinct.values()
        for index, kind in enumerate(KINDS)
        if case.machine in kind.machines
    ]


def priors() -> np.ndarray:
    """Return the logarithms of all that is fitted, as they are before any row is seen."""
    return np.log([*(kind.prior for kind in KINDS for _ in range(2)), PRIOR_EXPERTS, PRIOR_FIXED])


def fit(rows: Sequence[Row], logs: np.ndarray, rounds: int = ROUNDS) -> np.ndarray:
    """Return the logarithms that fit best, from a guess on: Gauss-Newton with a prior on each."""
    prior = priors()
    for _ in range(rounds):
        off = np.array([row.residual(logs) for row in rows])
        slopes = np.stack([_moved(rows, logs, i) - off for i in range(len(logs))], axis=1) / STEP
        matrix = np.vstack([slopes, np.eye(len(logs)) / PRIOR_SPREAD])
        target = np.concatenate([-off, (prior - logs) / PRIOR_SPREAD])
        step = np.linalg.lstsq(matrix, target, rcond=None)[0]
        logs = np.minimum(logs + step, 0.0)  # no share passes one
        if np.abs(step).max() < STEP:
            break
    return logs


def _moved(rows: Sequence[Row], logs: np.ndarray, index: int) -> np.ndarray:
    moved = logs.copy()
    moved[index] += STEP
    # Just below one the slope is that of the other side.
    return (
        np.array([row.residual(moved) for row in rows]) if moved[index] <= 0 else _mirrored(rows, logs, index)
    )


def _mirrored(rows: Sequence[Row], logs: np.ndarray, index: int) -> np.ndarray:
    moved = logs.copy()
    moved[index] -= STEP
    here = np.array([row.residual(logs) for row in rows])
    return 2 * here - np.array([row.residual(moved) for row in rows])


def band(value: float, spread: float) -> Mapping[str, object]:
    """Return a share with its range."""
    return {
        "value": round(value, 3),
        "range": [round(value / (1 + spread), 3), round(min(1.0, value * (1 + spread)), 3)],
    }


def summary(kind: Kind, index: int, logs: np.ndarray, rows: Sequence[Row]) -> Mapping[str, object]:
    """Return the fitted kind as data."""
    own = [row for row in rows if row.kind == index]
    relative = [math.expm1(row.residual(logs) * row.reading_error) for row in own]
    spread = max(LEAST_SPREAD, NINE_IN_TEN * float(np.sqrt(np.mean(np.square(relative)))))
    products, attention = (float(share) for share in np.exp(logs[2 * index : 2 * index + 2]))
    return {
        "machines": list(kind.machines),
        "from": kind.source,
        "prefill_efficiency": band(products, spread),
        "attention_efficiency": band(attention, spread),
        "siblings": list(kind.siblings),
        "sibling_prefill_efficiency": band(products, max(spread, SIBLING_SPREAD)),
        "sibling_attention_efficiency": band(attention, max(spread, SIBLING_SPREAD)),
        "rows": [row.case.name for row in own],
        "median_error": round(float(np.median(np.abs(relative))), 3),
        "sources": sorted({row.case.source for row in own}),
    }


def main() -> None:
    """Fit, write the file, and print what came out."""
    rows = odd_rows()
    logs = fit(rows, priors())
    kinds = [summary(kind, index, logs, rows) for index, kind in enumerate(KINDS)]
    experts, fixed = (float(f"{math.exp(log):.3g}") for log in logs[-2:])
    OUTPUT.write_text(
        json.dumps(
            {"what": (__doc__ or "").splitlines()[0], "experts": experts, "fixed": fixed, "kinds": kinds},
            indent=1,
        )
        + "\n"
    )
    for found in kinds:
        print(
            *found["machines"],
            found["prefill_efficiency"],
            found["attention_efficiency"],
            found["median_error"],
        )
    print("experts", experts, "fixed", fixed)


if __name__ == "__main__":
    main()
