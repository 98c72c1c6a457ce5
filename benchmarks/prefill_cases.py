"""Published prefill times as questions to kvcalc: which model and which machine a row names.

The rows are those of `truth/offload_cases.jsonl` in the folder of shared reference data, which lies
beside the repository or where KVCALC_SHARED says.  `fit_prefill.py` fits on some of them,
`tests/truth/test_prefill.py` scores the others, `docs/writers/scatter.py` draws those.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kvcalc import api
from kvcalc.engines import lay_out
from kvcalc.planning.memory import counted
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.prefill import PrefillModel
from kvcalc.profiles import Hardware

SHARED = Path(os.environ.get("KVCALC_SHARED", Path(__file__).resolve().parents[2] / "shared"))
FILE = SHARED / "truth" / "offload_cases.jsonl"
KINDS = ("ttft_pair", "prefill_only", "suffix_prefill")

MODELS = {
    "GLM-5.2 NVFP4": "glm-5.2-nvfp4",
    "GLM-5.2-FP8": "glm-5.2-fp8",
    "Llama-3.1-70B": "llama-3.1-70b",
    "Llama-3.1-8B": "llama-3.1-8b",
    "Mistral-Nemo-12B": "mistral-nemo",
    "Nemotron-3-Super-120B-A12B NVFP4": "nemotron-3-super-120b-a12b-nvfp4",
    "Qwen2.5-14B-1M": "qwen2.5-14b",  # trained further for long contexts, the same shape
    "Qwen2.5-7B-1M": "qwen2.5-7b",  # as above
    "Qwen3-32B": "qwen3-32b",
    "Qwen3-Coder-30B-A3B": "qwen3-30b-a3b",  # the same shape
    "Seed-OSS-36B": "seed-oss-36b",
    "UltraLong-8B-1M": "llama-3.1-8b",  # Llama 3.1 trained further for long contexts
    "gpt-oss-120b": "gpt-oss-120b",
    "gpt-oss-20b": "gpt-oss-20b",
}
"""What rows call a model -> its profile."""

MACHINES = {
    "b200": "b200-sxm-180gb",
    "gaudi3": "gaudi3",
    "h100-sxm-80gb": "h100-sxm-80gb",
    "h20": "h20-96gb",
    "h200-sxm-141gb": "h200-sxm-141gb",
    "h800-sxm": "h800-sxm-80gb",
    "mi300x": "mi300x",
    "rtx-3090": "rtx-3090",
}
"""What rows call a GPU profile -> its profile here."""

IN_WORDS: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "DGX Spark": ("gb10", {}),
    "H200 (16-way DP/EP prefill, 2 pods)": ("h200-sxm-141gb", {"dp": 16, "ep": 16}),
    "H200 (16-way DP/EP)": ("h200-sxm-141gb", {"dp": 16, "ep": 16}),
}
"""Machine and layout of rows that state them in words alone."""

QUEUEING = "queueing"
"""A row whose notes say this is no time of a single request."""


@dataclass(frozen=True, slots=True)
class Case:
    """One published time, and what it measures."""

    name: str
    kind: str
    number: int  # among the rows of its kind, from 1
    model: str
    machine: str
    settings: Mapping[str, int]
    tokens: int
    cached: int
    seconds: float
    quality: str
    source: str

    @property
    def is_odd(self) -> bool:
        """Whether the efficiencies were fitted on it."""
        return self.kind == "ttft_pair" and self.number % 2 == 1

    def model_on(self, hardware: Hardware | None = None) -> PrefillModel:
        """Return the prefill model that answers this case."""
        said = {"prompt": self.tokens + self.cached, "generate": 1, "engine": "vllm", **self.settings}
        scenario = api.scenario(api.question_of(self.model, on=self.machine, **said))
        if hardware is not None:
            scenario = replace(scenario, hardware=hardware)
        layout = lay_out(scenario.model.shape, scenario.settings)
        return PrefillModel(scenario, counted(scenario, Notebook()), layout)

    def error(self) -> float:
        """Return the relative error of the predicted time."""
        return float(self.model_on().time(float(self.tokens), float(self.cached))) / self.seconds - 1


def read_cases() -> tuple[list[Case], dict[str, str]]:
    """Return the rows that name model, machine and layout, and why each of the others is left out."""
    return cases_of(KINDS, _case)


def cases_of(
    kinds: Collection[str], case_of: Callable[[Mapping, int], Any]
) -> tuple[list[Any], dict[str, str]]:
    """Return what `case_of` makes of each row and its number among its kind, and why it makes nothing."""
    cases: list[Any] = []
    left_out: dict[str, str] = {}
    numbers: Counter[str] = Counter()
    for row in map(json.loads, FILE.read_text(encoding="utf-8").splitlines()):
        if row["kind"] in kinds:
            numbers[row["kind"]] += 1
            found = case_of(row, numbers[row["kind"]])
            if isinstance(found, str):
                left_out[row["id"]] = found
            else:
                cases.append(found)
    return cases, left_out


def _case(row: Mapping, number: int) -> Case | str:
    machine, settings = IN_WORDS.get(row["gpu"], (MACHINES.get(row["gpu_profile"] or ""), {}))
    if machine is None:
        return "the GPU is not named"
    if row["model"] not in MODELS:
        return "the model is not named"
    if row["gpu"] not in IN_WORDS:
        if row["gpus"] is None:
            return "how many GPUs share the work is not stated"
        settings = {"gpus": row["gpus"], "tp": row["tp"] or row["gpus"]}
    if QUEUEING in row["notes"].lower():
        return "the time includes queueing"
    return Case(
        name=row["id"],
        kind=row["kind"],
        number=number,
        model=MODELS[row["model"]],
        machine=machine,
        settings=settings,
        tokens=row["tokens"],
        cached=row.get("cached_tokens") or 0,
        seconds=row["ttft_recompute_ms"] / 1e3,
        quality=row["quality"],
        source=row["source_url"],
    )
