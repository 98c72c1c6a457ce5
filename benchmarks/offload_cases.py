"""Published restores as questions to kvcalc: which model, machine and mechanism a row names.

The rows are those of `truth/offload_cases.jsonl` in the folder of shared reference data (see
`prefill_cases.py`).  `fit_offload.py` fits constants of mechanisms on the odd rows of each kind,
`tests/truth/test_offload.py` scores the even ones.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from load_cases import SYSTEM as UNDER_LOAD
from load_cases import LoadCase, load_case
from prefill_cases import FILE, IN_WORDS, MACHINES, MODELS, cases_of

from kvcalc import api
from kvcalc.engines import lay_out
from kvcalc.formulas.reuse import mixed_throughput
from kvcalc.model import Model
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.offload import Hit, Restoring, Route, moved_bytes, restoring, route_of, times_of
from kvcalc.planning.speed import Speed, speed_of
from kvcalc.scenario import TierUse
from kvcalc.tiers import Figure

KINDS = ("ttft_pair", "restore_only", "ratio", "transfer", "bandwidth_vs_block", "throughput_vs_hit")
COUNTED = ("table", "text", "text/table", "digitised")
"""Qualities of rows that count."""

LINE = 50e9
"""Rate of a tier whose link the row does not say, and whose mechanism is slower [byte/second]: 400 Gbit/s."""

SYSTEMS: Mapping[str, tuple[str, str]] = {
    "LMCache + Ceph RGW S3": ("lmcache-s3", "object"),
    "LMCache NIXL-OBJ + Ceph S3": ("lmcache-nixl-obj", "object"),
    "Mooncake Transfer Engine P->D": ("mooncake", "rdma"),
    "PegaFlow": ("plain", "dram"),
    "llm-d FS backend": ("llmd-fs", "nvme"),
    "llm-d P2P": ("nixl-p2p-wide-ep", "rdma"),
    "llm-d P2P (CPU-to-CPU pull, NIXL/UCX)": ("nixl-p2p", "rdma"),
    "llm-d P2P (NIXL, wide-EP)": ("nixl-p2p-wide-ep", "rdma"),
    "llm-d P2P (guide revision)": ("nixl-p2p-guide", "rdma"),
    "llm-d P2P (older overlay stack, superseded by authors)": ("nixl-p2p-wide-ep-old", "rdma"),
    "llm-d, HMA off": ("vllm-batched", "dram"),
    "llm-d, HMA on": ("vllm-batched", "dram"),
    "raw pinned H2D floor": ("plain", "dram"),
    "vLLM + remote KV over RDMA": ("nixl-p2p", "rdma"),
    "vLLM 0.28 OffloadingConnector CPU (ROCm)": ("vllm-per-layer", "dram"),
    "vLLM 0.28 tiering fs": ("vllm-fs", "nvme"),
    "vLLM 0.28 tiering fs (SSD) (ROCm)": ("vllm-fs", "nvme"),
    "vLLM OffloadingConnector (native CPU)": ("vllm-offload", "dram"),
    "vLLM native CPU offload": ("vllm-offload", "dram"),
    "vLLM transfer microbenchmark": ("vllm-offload", "dram"),
    "wde offloading engine": ("swap-blocks", "dram"),
}
"""What rows call a system -> mechanism and kind of tier."""

STORAGE = {"IBM Storage Scale": ("llmd-fs", "nvme")}
"""Link in the row's words -> the same, where one system reads several tiers."""

NAMES = {
    "GLM-5.2-FP8 (753B)": "glm-5.2-fp8",
    "Llama-3.2-1B": "llama-3.2-1b",
    "Qwen2.5-32B": "qwen2.5-32b",
    "Qwen2.5-3B": "qwen2.5-3b",
    "Qwen2.5-7B": "qwen2.5-7b",
    "Qwen3-8B": "qwen3-8b",
    "glm-4-9b": "glm-4-9b",  # of 1M tokens, see MORE_HEADS
    "n/a": "llama-3.1-8b",
}
"""Models that only these rows have; a benchmark of copies alone needs any."""

LAYOUTS = {"H200 node": IN_WORDS["H200 (16-way DP/EP prefill, 2 pods)"]}
"""Machine in words of further rows of one deployment."""

ELSEWHERE: Mapping[str, tuple[str, str]] = {
    "wde offloading engine": (
        "rtx-4090",
        "the GPU is named on another page of the project, docs/performance_tuning_for_decoding_models.md",
    ),
}
"""What rows call a system -> machine that its source names elsewhere than beside the figures, and where."""

MORE_HEADS = {("wde offloading engine", "glm-4-9b"): 2}
"""KV heads of the model that ran over those of its profile: glm-4-9b-chat-1m has four, as its table says."""

WEIGHTS = {"gptq4": "int4", "fp8": "fp8", "bf16": "bf16"}
"""What rows call the precision of weights -> kvcalc's name."""

STEP = {"wde offloading engine": 1024}
"""Tokens of one step [token]: `max_num_batched_tokens = 1024`."""

COPIES_ALONE = ("raw", "wde")
"""Beginnings of systems whose measured time is that of the copies, without the engine's first token."""

BATCHES = {"Batch load of 10 x 128K prompts": 10, "Same batch with sliding-window": 10}
"""Prompts that one measured time loads together, by the words of the note."""

Key = tuple[str, str, str]
"""A fitted figure: mechanism, first machine of its rates or "", and its name."""


@dataclass(frozen=True)
class Case:
    """One published row, and what it measures."""

    name: str
    kind: str
    number: int  # among the rows of its kind, from 1
    quality: str
    speed: Speed
    route: Route
    tokens: int
    measured: float  # second, byte/second, token/second, or a ratio of times
    batch: int = 1
    recompute: float | None = None  # measured
    hit: float | None = None  # measured TTFT of a hit in the GPU's own cache
    piece: float | None = None  # byte, of a benchmark of copies
    share: float | None = None  # hit rate of a benchmark of throughput
    transfer_only: bool = False
    foreign: str = ""  # which input is not stated beside the figure, and where it is
    values: Mapping[Key, float] = field(default_factory=dict)

    @property
    def is_odd(self) -> bool:
        """Whether constants may be fitted on it."""
        return self.number % 2 == 1

    def with_values(self, values: Mapping[Key, float]) -> "Case":
        """Return the case with other constants of mechanisms."""
        return replace(self, values=values)

    @property
    def restored(self) -> int:
        """Tokens that the hit restores: whole blocks or chunks, and never the last token."""
        unit = self.route.mechanism.chunk_tokens or self.speed.layout.pool(0.0).block_tokens or 1
        return (self.tokens - 1) // unit * unit

    def restore(self) -> Restoring:
        """Return the restore of the whole prompt by the model."""
        size = float(moved_bytes(self.speed.layout, float(self.restored))) * self.batch
        return restoring(self.speed.scenario, _fitted(self.route, self.values), size)

    def remaining(self) -> float:
        """Return the TTFT of a device hit by the model."""
        return times_of(self.speed, Hit(float(self.tokens), self.restored)).remaining

    def predict(self, hit_known: bool = False, recompute_known: bool = False) -> float:
        """Return what the model says of the measured quantity."""
        if self.piece is not None:
            return float(
                replace(_fitted(self.route, self.values), rule_piece=self.piece).bandwidth(self.piece * 1000)
            )
        found = self.restore()
        if self.transfer_only:
            return float(found.parts.total)
        if self.share is not None:
            return self._throughput(found)
        total = float(found.total(self.hit if hit_known and self.hit is not None else self.remaining()))
        if self.kind != "ratio":
            return total
        return total / (self.recompute if recompute_known and self.recompute else self.modelled_recompute())

    def modelled_recompute(self) -> float:
        """Return the prefill of the whole prompt by the model."""
        return float(self.speed.prefill.time(float(self.tokens)))

    def _throughput(self, found: Restoring) -> float:
        """Return prompt tokens per second of a batch in which `share` of the prompts hit.

        A batch of prompts fills the GPU: no prompt waits for the fixed cost of another's prefill.
        """
        pace = replace(self.speed.prefill.paces.middle, fixed=0.0)
        computed = self.tokens / float(self.speed.prefill.time(float(self.tokens), 0.0, pace))
        return float(mixed_throughput(self.share or 0.0, computed, self.tokens / float(found.parts.transfer)))

    def error(self, **known: bool) -> float:
        """Return the relative error of the prediction."""
        return self.predict(**known) / self.measured - 1


def _fitted(route: Route, values: Mapping[Key, float]) -> Route:
    """Return a route with other constants, in all its hops."""
    if not values:
        return route
    machine = next((m for m, rates in route.mechanism.special.items() if rates is route.rates), "")
    own = {
        name: value
        for (mech, on, name), value in values.items()
        if (mech, on) == (route.mechanism.name, machine)
    }
    figures = {name: Figure(value, "derived", "fit") for name, value in own.items()}
    then = None if route.then is None else _fitted(route.then, values)
    return replace(route, rates=replace(route.rates, **figures), then=then)


@cache
def _speed(
    model: str, machine: str, tokens: int, said: tuple[tuple[str, object], ...], heads: int = 1
) -> Speed:
    question = api.question_of(model, on=machine, prompt=tokens, generate=1, engine="vllm", **dict(said))
    scenario = api.scenario(question)
    if heads > 1:
        scenario = replace(scenario, model=_with_heads(scenario.model, heads))
    return speed_of(scenario, lay_out(scenario.model.shape, scenario.settings), Notebook())


def read_cases() -> tuple[list[Case | LoadCase], dict[str, str]]:
    """Return the rows that can be asked, and why each of the others cannot."""
    return cases_of(KINDS, _case)


def unanswered(kind: str) -> list[str]:
    """Return the even rows of a kind that count by their quality and that no question can be made of."""
    left, found, number = read_cases()[1], [], 0
    for row in map(json.loads, FILE.read_text(encoding="utf-8").splitlines()):
        if row["kind"] == kind:
            number += 1
            if row["id"] in left and number % 2 == 0 and row["quality"] in COUNTED:
                found.append(row["id"])
    return found


def _case(row: Mapping, number: int) -> Case | LoadCase | str:
    if row["quality"] not in COUNTED:
        return f"its quality is {row['quality']}"
    if row["system"].startswith(UNDER_LOAD):
        return load_case(row, number)
    machine, settings = (LAYOUTS | dict(IN_WORDS)).get(
        row["gpu"], (MACHINES.get(row["gpu_profile"] or ""), {})
    )
    foreign = ""
    if machine is None and row["system"] in ELSEWHERE:
        machine, foreign = ELSEWHERE[row["system"]]
        settings = {"gpus": 1, "weights_dtype": WEIGHTS[row["weight_dtype"]]}
        settings |= {"max_batched_tokens": STEP[row["system"]]}
    model = (MODELS | NAMES).get(row["model"])
    if machine is None:
        return "the GPU is not named"
    if model is None:
        return "the model is not named"
    if row["tier"] == "HBM":
        return "a hit in the GPU's own cache, with no tier"
    if not settings:
        if row.get("gpus") is None:
            return "how many GPUs share the work is not stated"
        settings = {"gpus": row["gpus"], "tp": row["tp"] or row["gpus"]}
    if row["system"] == "llm-d, HMA off":
        settings = {**settings, "hybrid_manager": False}
    mechanism, kind = STORAGE.get(row["link"]) or SYSTEMS[row["system"]]
    tokens = row["tokens"] or 16384
    heads = MORE_HEADS.get((row["system"], row["model"]), 1)
    speed = _speed(model, machine, tokens, tuple(settings.items()), heads)
    rate = speed.scenario.hardware.host_to_device.bandwidth if kind == "dram" else LINE
    route = route_of(speed, TierUse("tier", rate, mechanism=mechanism, kind=kind), Notebook())
    return Case(
        name=row["id"],
        kind=row["kind"],
        number=number,
        quality=row["quality"],
        speed=speed,
        route=route,
        tokens=tokens,
        measured=_measured(row),
        batch=next((count for words, count in BATCHES.items() if words in row["notes"]), 1),
        recompute=row["ttft_recompute_ms"] / 1e3 if row.get("ttft_recompute_ms") else None,
        hit=row["gpu_hit_ms"] / 1e3 if row.get("gpu_hit_ms") else None,
        piece=row.get("block_bytes"),
        share=row.get("hit_rate"),
        transfer_only=row["kind"] == "transfer" or row["system"].startswith(COPIES_ALONE),
        foreign=foreign,
    )


def _measured(row: Mapping) -> float:
    if row["kind"] == "bandwidth_vs_block":
        return row["eff_bw_GBps"] * 1e9
    if row["kind"] == "throughput_vs_hit":
        return row["throughput_tok_s"]
    if row["kind"] == "ratio":
        return row.get("ratio_restore_over_recompute") or 1 / row["speedup_stated"]
    return row["ttft_restore_ms"] / 1e3


def _with_heads(model: Model, factor: int) -> Model:
    """Return a model whose layers keep that many times the KV heads."""
    parts = tuple(
        replace(part, entry=tuple(replace(one, heads=one.heads * factor) for one in part.entry))
        for part in model.shape.components
    )
    return replace(model, shape=replace(model.shape, components=parts))


def summary(errors: list[float]) -> tuple[float, float]:
    """Return the median and the 90th percentile of the errors' sizes."""
    sizes = np.abs(errors)
    return float(np.median(sizes)), float(np.quantile(sizes, 0.9))
