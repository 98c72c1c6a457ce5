"""`kvcalc replay` with a description, a model, a machine, tiers and a picture."""

import json

import pytest

from kvcalc.cli import run
from tests.replay.conftest import row

BLOCK = 512 * 131_072
"""Llama 3.1 8B: 131,072 bytes a token."""


@pytest.fixture
def trace(tmp_path):
    """Four prompts of four blocks, asked for in turn, twice: a loop over 16 blocks."""
    file = tmp_path / "loop.jsonl"
    chains = [list(range(4 * one, 4 * one + 4)) for one in range(4)]
    lines = [row(chain, 2048, 1000 * place, 64) for place, chain in enumerate(chains * 2)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(file)


@pytest.fixture
def asked(capsys):
    """Run the command and return its JSON."""

    def asking(*words):
        assert run(["replay", *words, "--format", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    return asking


def row_of(body, policy, tiers=False):
    return next(one for one in body["rows"] if one["policy"] == policy and bool(one["tiers"]) == tiers)


def test_a_description_needs_no_cache(trace, asked):
    body = asked(trace, "--describe")
    assert body["schema"] == "kvcalc.replay-describe/1"
    assert body["infinite"]["hit_rate_tokens"] == 0.5
    assert body["units"]["trace.input_tokens"] == "token"


def test_a_model_gives_bytes_by_its_layout_and_the_engine_s_blocks(trace, asked):
    body = asked(trace, "--model", "llama-3.1-8b", "--engine", "vllm", "--capacity", f"{16 * BLOCK} B")
    found = row_of(body, "lru")
    assert (found["capacity_blocks"], found["capacity_bytes"]) == (16, 16 * BLOCK)
    assert found["restored_bytes"] == 16 * BLOCK
    assert found["serving"] is None
    assert body["inputs"]["model"] == "llama-3.1-8b"
    assert any("lower bound" in line for line in body["assumptions"])


@pytest.mark.parametrize(
    "sized", [["--model", "llama-3.1-8b", "--engine", "vllm"], ["--bytes-per-token", "131072"]]
)
def test_blocks_that_are_split_take_their_part_of_the_bytes(trace, asked, sized):
    body = asked(trace, *sized, "--refine", "16", "--capacity", f"{16 * BLOCK} B")
    found = row_of(body, "lru")
    assert body["load"]["block_tokens"] == body["inputs"]["refine"] == 16
    # 16 blocks of 512 tokens are 512 of 16.
    assert (found["capacity_blocks"], found["capacity_tokens"], found["capacity_bytes"]) == (
        512,
        8192,
        16 * BLOCK,
    )


def test_ranks_hold_their_parts_together(trace, asked):
    body = asked(trace, "--model", "llama-3.1-8b", "--tp", "2", "--capacity", f"{16 * BLOCK} B")
    assert row_of(body, "lru")["capacity_blocks"] == 16
    assert body["inputs"]["gpus"] == 2


def test_the_engine_s_larger_blocks_are_put_together(trace, asked):
    body = asked(trace, "--model", "qwen3-next-80b-a3b", "--engine", "vllm", "--capacity", "100 %")
    # Blocks of 576 tokens: three whole ones of each prompt of 2,048, of which all hit the second time.
    assert body["load"]["block_tokens"] == 576
    assert row_of(body, "infinite")["hit_tokens"] == 4 * 3 * 576
    assert any("cannot be compared" in line for line in body["assumptions"])


def test_a_machine_gives_its_own_pool_times_and_money(trace, asked):
    options = ["--model", "llama-3.1-8b", "--on", "h100-sxm-80gb", "--engine", "vllm"]
    more = ["--prefill-rate", "1000 token/s", "--price", "3600 USD/hour"]
    body = asked(trace, *options, *more)
    found = row_of(body, "lru")["serving"]
    # Half of the prompts hit whole, but for their last token.
    assert found["ttft_mean"] == pytest.approx((4 * 2.048 + 4 * 0.001) / 8)
    assert found["ttft_mean_without"] == pytest.approx(2.048)
    assert found["recompute_avoided"] == found["money_saved"] == pytest.approx(4 * 2.047)
    assert found["paths"] == []


def test_tiers_are_restored_from_over_their_paths(trace, asked):
    options = ["--model", "llama-3.1-8b", "--on", "h100-sxm-80gb", "--engine", "vllm", "--pool", "500 MB"]
    body = asked(
        trace, *options, "--tier", "dram=64 GB@10 GB/s,mechanism=plain", "--prefill-rate", "1000 token/s"
    )
    found = row_of(body, "lru", tiers=True)
    assert [part["tier"] for part in found["tiers"]] == ["gpu", "dram"]
    (path,) = found["serving"]["paths"]
    assert path["restored_bytes"] == pytest.approx(4 * 4 * BLOCK)
    transfer = 4 * BLOCK / 10e9
    assert path["utilization"] == pytest.approx(4 * transfer / 7)
    assert found["serving"]["ttft_mean"] == pytest.approx((4 * 2.048 + 4 * (0.001 + transfer)) / 8)


def test_a_picture_is_drawn(trace, asked, tmp_path):
    pytest.importorskip("matplotlib", reason="the extra chart is not installed")
    asked(trace, "--chart-file", str(tmp_path / "misses.svg"))
    assert (tmp_path / "misses.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(("form", "shown"), [("table", "dram"), ("csv", "belady"), ("markdown", "dram")])
def test_every_face_of_a_replay_on_a_machine(trace, form, shown, capsys):
    options = ["--model", "llama-3.1-8b", "--on", "h100-sxm-80gb", "--pool", "1 GB"]
    assert run(["replay", trace, *options, "--tier", "dram=64 GB@10 GB/s", "--format", form]) == 0
    assert shown in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--on", "h100-sxm-80gb"], "--on: needs --model"),
        (["--tp", "2"], "--tp: needs --model"),
        (["--tier", "dram=5 GB@54 GB/s"], "a rate is of use with --model and --on alone"),
        (
            ["--model", "llama-3.1-8b", "--on", "h100-sxm-80gb", "--tier", "dram=5 GB"],
            "with --on its rate counts",
        ),
        (["--model", "llama-3.1-8b", "--on", "h100-sxm-80gb", "--tier", "dram=@5 GB/s"], "needs its size"),
        (
            ["--model", "llama-3.1-8b", "--tier", "dram=5 GB@5 GB/s,store=write_back"],
            "takes --write and --incl",
        ),
        (["--model", "llama-3.1-8b", "--bytes-per-token", "5 B"], "leave one of them out"),
        (["--model", "lama-3.1-8b"], "did you mean"),
        (["--dialect", "mooncacke"], "did you mean 'mooncake'"),
        (["--trace-block", "-4"], "--trace-block: '-4' is not a whole number"),
        (["--trace-block", "2048"], "4 blocks of 2,048 tokens for an input of 2,048"),
        (["--session-every", "5"], "--session-every"),
        (["--time-unit", "min"], "--time-unit: unknown unit 'min'; valid are s, ms, us, ns"),
        (["--time-unit", "s"], "has a unit of its own"),
        (["--chart-file", "x.gif"], "must end in .png or .svg"),
        (["--describe", "--format", "xml"], "--format"),
    ],
)
def test_wrong_questions_are_one_line(trace, options, message, capsys):
    assert run(["replay", trace, *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_model_that_does_not_fit_is_named_and_no_capacity(trace, capsys):
    assert run(["replay", trace, "--model", "llama-3.1-405b", "--on", "l40s"]) == 2
    said = capsys.readouterr().err
    assert "--on: the KV pool that is left beside the weights has 0 GB" in said
    assert "the model does not fit" in said
