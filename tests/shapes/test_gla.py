"""Gated linear attention: key and value widths by expansion, one fp32 matrix per head."""

import pytest

from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.config import Config
from kvcalc.shapes.families.gla import build

GLA = {
    "model_type": "gla",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_heads": 4,
    "expand_k": 0.5,
    "expand_v": 1,
}


def test_the_state_is_key_by_value_width_per_head():
    (gla,) = build(Config(GLA)).components
    # Keys 64 x 0.5 / 4 = 8 wide, values 64 / 4 = 16: 4 x 8 x 16 = 512, fp32.
    assert gla.entry[0].elements == 512
    assert gla.entry[0].storage == "float32"


@pytest.mark.parametrize(
    ("key", "value"),
    [("expand_k", 0.3), ("expand_v", "wide"), ("use_short_conv", True), ("num_kv_heads", 2), ("attn", {})],
)
def test_an_odd_value_is_refused_by_key(key, value):
    with pytest.raises(UnsupportedModelError, match=key):
        build(Config({**GLA, key: value}))
