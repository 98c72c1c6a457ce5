from dataclasses import replace

from kvcalc.output import render
from kvcalc.output.table import Terminal


def test_a_model_is_told_in_one_sentence_and_by_part(model_result):
    page = render(model_result)
    for line in (
        "a-70b (llama, example/a-70b)",
        "70.0 B parameters in total, 7.00 B active for one token; weights 72.0 GB (67.1 GiB).",
        "80 layers, hidden size 8,192, 64 query heads, dtype bf16, made for up to 131,072 tokens.",
        "  MLP    70.0 B     100 %  ████████████████████",
        "  norms  1.00 M  < 0.01 %  ▏",
        "  fp8     68.0 GB (63.3 GiB)  94.4 %  ███████████████████",
        "KV cache, one logical copy: 327,680 B/token, 81,920 B/token on each GPU",
        "  - model: published; https://example.org/a-70b; read from a config",
    ):
        assert line in page.splitlines()


def test_a_dense_model_has_one_size(model_result):
    counts = replace(model_result.parameters, active=model_result.parameters.total)
    page = render(replace(model_result, parameters=counts))
    assert "\n70.0 B parameters; weights 72.0 GB (67.1 GiB).\n" in page


def test_drafts_that_are_not_in_the_total_have_no_share_of_it(model_result):
    parts = {**model_result.parameters.by_part, "mtp": 2_000_000_000}
    page = render(replace(model_result, parameters=replace(model_result.parameters, by_part=parts)))
    assert "Beside these, 2.00 B of multi-token-prediction layers" in page
    assert "  mtp" not in page
    assert "Beside these" not in render(model_result)


def test_weights_that_are_not_understood_are_said_so(model_result):
    page = render(replace(model_result, parameters=None, weights=None, max_tokens=None))
    assert "The weights of llama are not understood, so their size is not known." in page
    assert "dtype bf16.\n" in page
    assert "Parameters by part" not in page


def test_it_stays_within_60_columns(model_result):
    assert max(map(len, render(model_result, terminal=Terminal(60)).splitlines())) <= 60
