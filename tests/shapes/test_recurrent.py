"""What recurrent families share, and counts of layers that no model has."""

import pytest

from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.recurrent import attention_free, conv_rows


def test_a_convolution_keeps_one_input_less_than_its_kernel():
    assert conv_rows(Config({"conv_kernel": 4}), "conv_kernel") == 3


def test_a_kernel_of_one_is_refused():
    with pytest.raises(UnsupportedModelError, match="conv_kernel: a kernel of 1"):
        conv_rows(Config({"conv_kernel": 1}), "conv_kernel")


@pytest.mark.parametrize("layers", [0, 10**10])
def test_impossible_numbers_of_layers_are_refused_before_any_work(layers):
    with pytest.raises(UnsupportedModelError, match=r"num_hidden_layers: \d+ is not within 1 to 4096 layers"):
        attention_free(Config({"num_hidden_layers": layers, "hidden_size": 64}))
