"""Step times of the simulator against the models that they are made from."""

import numpy as np
import pytest

from kvcalc.api import question_of, scenario
from kvcalc.engines import lay_out
from kvcalc.eviction.steps import constant, modelled
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.speed import speed_of


@pytest.fixture(scope="module", params=[("llama-3.1-8b", "l40s", 1), ("llama-3.1-70b", "h100-sxm-80gb", 4)])
def both(request):
    model, machine, gpus = request.param
    asked = scenario(question_of(model, machine, gpus=gpus, engine="vllm", prompt=3000, generate=500))
    speed = speed_of(asked, lay_out(asked.model.shape, asked.settings), Notebook())
    return speed, modelled(speed, most=64, budget=2048, held=3250.0)


@pytest.mark.parametrize(("batch", "context"), [(1, 100), (1, 6000), (16, 3000), (64, 3000), (64, 6500)])
def test_a_decode_step_is_that_of_the_decode_model(both, batch, context):
    speed, steps = both
    hardware = speed.scenario.hardware
    shares = hardware.prefill_efficiency.mid, hardware.decode_efficiency.mid
    model = float(speed.decode.step(float(batch), float(context), *shares).total)
    assert steps.step(batch, batch * context) == pytest.approx(model, rel=0.01)


@pytest.mark.parametrize(("new", "cached"), [(1, 0), (500, 0), (2048, 0), (2048, 3250), (600, 3000)])
def test_a_chunk_is_that_of_the_prefill_model(both, new, cached):
    speed, steps = both
    assert float(steps.prefill_time(new, cached)) == pytest.approx(
        float(speed.prefill.time(new, cached)), rel=0.03
    )


def test_chunks_one_by_one_take_as_long_as_their_sum():
    # 5,000 tokens in chunks of 2,048: each on the tokens before it.
    steps = constant(0.01, 4, 1e-4, 2048)
    steps = type(steps)(steps.decode, steps.context, steps.prefill, cached=1e-8)
    parts = [(2048, 0), (2048, 2048), (904, 4096)]
    one_by_one = sum(steps.step(0, 0, new, new * cached) for new, cached in parts)
    assert float(steps.prefill_time(5000.0)) == pytest.approx(one_by_one)
    assert steps.prefill_time(np.array([5000.0, 0.0])) == pytest.approx([one_by_one, 0.0])


def test_two_prompts_in_one_chunk_do_not_attend_to_each_other():
    # 1,000 + 1,000 tokens as one prompt would be priced with a million pairs too many.
    steps = constant(0.01, 4, 1e-4, 2048)
    steps = type(steps)(steps.decode, steps.context, steps.prefill, cached=1e-8)
    assert steps.step(0, 0, 2000, 0 - 1000 * 1000) == pytest.approx(0.2 - 0.01)
