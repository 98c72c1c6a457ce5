"""Parameters that transformers builds, and weight bytes per rank that vLLM would load.

Each row must agree, exactly for counts and within `WITHIN` for bytes, unless it is listed here with the
reason why it does not; a listed row that agrees after all fails, so the lists cannot rot.
"""

import json
import os
from pathlib import Path

import pytest

from kvcalc.errors import UnsupportedModelError
from kvcalc.parameters import count_parameters
from kvcalc.shapes.config import Config
from kvcalc.shapes.readers.huggingface import read_config

SHARED = Path(os.environ.get("KVCALC_SHARED", Path(__file__).resolve().parents[3] / "shared"))
WITHIN = 0.01  # vLLM adds scales and padding of its own; a hundredth of the weights is decided by neither

NO_VISION = "the config has no vision_config; the oracle added the class's default tower"
COUNTS = {
    "google__flan-t5-xl.json": "the oracle tied a head that Flan-T5 has of its own",
    "internlm__internlm2-7b-reward.json": "the oracle built a language model; vLLM's count agrees with ours",
    "meta-llama__Llama-4-Maverick-17B-128E-Instruct.json": NO_VISION,
    "meta-llama__Llama-4-Scout-17B-16E-Instruct.json": NO_VISION,
    "microsoft__VibeVoice.json": "only the language model is counted, which the result notes",
    "mistralai__Mistral-Small-3.2-24B-flux2-text-encoder.json": "silent on ties; the oracle ties it",
    "openbmb__MiniCPM-V-4_6.json": "only the language model is counted, which the result notes",
    "PaddlePaddle__PaddleOCR-VL.json": "the config unties the head, the oracle ties it",
    "Qwen__Qwen3-ASR.json": "the oracle ignored thinker_config; vLLM's count agrees with ours",
    "specforge-draft__kimi-k3-dspark.json": "a draft model without a head; the oracle gave it one",
    "stepfun-ai__Step-3.7-Flash-FP8.json": NO_VISION,
}
ACTIVE = {"databricks__dbrx-instruct.json": "the oracle did not find moe_top_k and counted every expert"}

UNCUT = "vLLM ran it through its Transformers backend, which had no plan to cut it"
TWICE = "vLLM's count holds the token embedding twice"
FP4 = "the file is FP8 and names no expert_dtype; vLLM assumes fp4 experts"
WEIGHTS = {
    "bigcode__gpt_bigcode-santacoder.json": UNCUT,
    "bigcode__starcoder.json": UNCUT,
    "WizardLM__WizardCoder-15B-V1.0.json": UNCUT,
    "fla-org__flame-mamba_1B.json": "vLLM took it for an embedding model and left out the head",
    "intfloat__e5-mistral-7b-instruct.json": "an embedding model; vLLM still counts the unused head",
    "microsoft__Phi-3-vision-128k-instruct.json": TWICE,
    "microsoft__Phi-3.5-vision-instruct.json": TWICE,
    "mistralai__Devstral-Small-2-24B-Instruct-2512.json": "vLLM reserves an FP8 tower; the file keeps BF16",
    "mistralai__Mistral-Small-3.2-24B-flux2-text-encoder.json": "silent on ties; vLLM ties it",
    "moonshotai__Kimi-Linear-48B-A3B-Instruct.json": "at 8 ranks vLLM holds each expert twice",
    "PaddlePaddle__PaddleOCR-VL.json": "the config unties the head, vLLM ties it",
    "Qwen__Qwen3-32B-FP8-Static-PerTensor.json": "a config without quant_method, which vLLM took for BF16",
    "Qwen__Qwen3-ASR.json": "vLLM keeps parts of the audio tower whole that are cut here",
    "sgl-project__DeepSeek-V4-Flash-FP8.json": FP4,
    "sgl-project__DeepSeek-V4-Pro-FP8.json": FP4,
}
REFUSED = {"google__gemma-3n-E2B-it.json", "google__gemma-3n-E4B-it.json", "allenai__Molmo-7B-D-0924.json"}
"""Models that vLLM sizes and kvcalc does not know; a refusal is not a miss."""


def rows(name):
    path = SHARED / "truth" / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


COUNTED = [row for row in rows("transformers.jsonl") if row.get("params_valid")]
LOADED = [row for row in rows("vllm.jsonl") if not row["error"] and row["kv_dtype"] == "auto"]
FILES = {row["file"]: row for row in LOADED}  # the largest need more ranks than one
pytestmark = pytest.mark.skipif(not COUNTED, reason="the folder of shared reference data is absent")


UNWEIGHED = {"deepseek_v4", "deepseek_ref", "nemotron_h", "step3p7"}
"""Model types whose draft layers are known by what they cache alone; their draft weights are not counted."""


def parameters_of(file):
    config = Config(json.loads((SHARED / "corpus" / file).read_text()), file)
    beside = SHARED / "corpus" / "hf_quant_config" / file
    sidecar = json.loads(beside.read_text()) if beside.exists() else {}
    # vLLM reads a ModelOpt file only where it lists what was left alone.
    usable = "exclude_modules" in sidecar.get("quantization", {})
    return count_parameters(config, quantization=sidecar if usable else None)


def deviations(row):
    ranks = [other for other in LOADED if other["file"] == row["file"]]
    parameters = parameters_of(row["file"])
    return {
        rank["tp"]: parameters.bytes_per_rank(rank["tp"]) / rank["weight_bytes_per_rank"] - 1
        for rank in ranks
    }


def marked(found, reasons):
    return [
        pytest.param(
            row,
            id=row["file"].removesuffix(".json"),
            marks=[pytest.mark.xfail(reason=reasons[row["file"]], strict=True)]
            if row["file"] in reasons
            else [],
        )
        for row in found
    ]


@pytest.mark.parametrize("row", marked(COUNTED, COUNTS))
def test_total_parameters(row, accuracy):
    total, file = parameters_of(row["file"]).total, row["file"]
    accuracy.point("transformers-parameters", row["params_total"], total)
    accuracy.row(
        "transformers-parameters", file, total == row["params_total"], len(COUNTED), COUNTS.get(file)
    )
    assert total == row["params_total"]


@pytest.mark.parametrize("row", marked(COUNTED, {**COUNTS, **ACTIVE}))
def test_active_parameters(row, accuracy):
    active, file = parameters_of(row["file"]).active, row["file"]
    excuse = {**COUNTS, **ACTIVE}.get(file)
    accuracy.point("transformers-active", row["params_active"], active)
    accuracy.row("transformers-active", file, active == row["params_active"], len(COUNTED), excuse)
    assert active == row["params_active"]


@pytest.mark.parametrize("row", marked([row for file, row in FILES.items() if file not in REFUSED], WEIGHTS))
def test_weight_bytes_of_every_rank_count(row, accuracy):
    found, file = deviations(row), row["file"]
    loaded = {other["tp"]: other["weight_bytes_per_rank"] for other in LOADED if other["file"] == file}
    for tp, off in found.items():
        accuracy.point("vllm-weights", loaded[tp], loaded[tp] * (1 + off))
        accuracy.row("vllm-weights", f"{file} tp {tp}", abs(off) <= WITHIN, len(LOADED), WEIGHTS.get(file))
    assert {tp: off for tp, off in found.items() if abs(off) > WITHIN} == {}


@pytest.mark.parametrize("file", sorted(REFUSED))
def test_unknown_models_are_refused(file, accuracy):
    for row in LOADED:
        if row["file"] == file:
            excuse = "refused: the weights of this model_type are not counted"
            accuracy.row("vllm-weights", f"{file} tp {row['tp']}", False, len(LOADED), excuse)
    with pytest.raises(UnsupportedModelError, match="cannot be counted"):
        parameters_of(file)


def test_most_rows_agree():
    exact = [row["params_total"] == parameters_of(row["file"]).total for row in COUNTED]
    within = [
        abs(off) <= WITHIN
        for row in FILES.values()
        for off in ([1.0] * 4 if row["file"] in REFUSED else deviations(row).values())
    ]
    assert sum(exact) / len(exact) >= 0.95
    assert sum(within) / len(within) >= 0.90


def test_draft_layers_have_weights_where_they_cache():
    both, cache_alone = 0, set()
    for row in COUNTED:
        shape = read_config(SHARED / "corpus" / row["file"])
        cached = {layer for part in shape.draft for layer in part.layers}
        weighed = {layer for part in parameters_of(row["file"]).draft for layer in part.layers or ()}
        if cached and not weighed:
            cache_alone.add(shape.model_type)
        else:
            assert weighed == cached, row["file"]
            both += bool(cached)
    assert both > 10
    assert cache_alone == UNWEIGHED
