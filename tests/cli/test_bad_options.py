"""Every bad option is one line that names the option, what was typed, and what would be valid."""

import pytest

PLAN = ("plan", "llama-3.1-8b", "--on", "h100-sxm-80gb")
RESTORE = ("restore", "--bytes", "1 GB", "--prefill", "100 ms")


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--pool", "80 gigs", ["'80 gigs'", "GB", "GiB"]),
        ("--pool", "80", ["no unit", "GB", "GiB"]),
        ("--pool", "-80 GB", ["more than zero"]),
        ("--pool", "1e400 GB", ["not a finite number"]),
        ("--pool", "1e30 GB", ["more than the", "h100-sxm-80gb"]),
        ("--prompt", "32K", ["ambiguous", "32k", "32Ki"]),
        ("--prompt", "1M", ["ambiguous", "1,000,000", "1Mi"]),
        ("--prompt", "-5", ["not a token count"]),
        ("--prompt", "1.5", ["whole number"]),
        ("--prompt", "²", ["not a token count"]),
        ("--prompt", "9" * 25, ["too large"]),
        ("--generate", "0", ["1 or more"]),
        ("--cached", "8k", ["8,000", "4,096"]),
        ("--hit", "1.5", ["'1.5'", "between 0 and 1"]),
        ("--hit", "-0.1", ["between 0 and 1"]),
        ("--hit", "nan", ["not a share", "60%"]),
        ("--utilization", "0", ["more than 0"]),
        ("--utilization", "90", ["at most 1"]),
        ("--concurrency", "1e3", ["whole number"]),
        ("--concurrency", "²", ["whole number"]),
        ("--concurrency", "0", ["1 or more"]),
        ("--tp", "3", ["8 KV heads", "1, 2, 4, 8"]),
        ("--tp", "0", ["1 or more"]),
        ("--pp", "99", ["32 layers"]),
        ("--spec-tokens", "-1", ["0 or more"]),
        ("--engine", "vlm", ["'vlm'", "'vllm'"]),
        ("--kv-dtype", "fp7", ["'fp7'", "'fp8'"]),
        ("--weights-dtype", "fp7", ["'fp7'", "'fp8'"]),
        ("--compute-capability", "-1", ["positive number"]),
        ("--k-type", "q8_0", ["generic", "--engine llama.cpp"]),
        ("--page-size", "64", ["--engine sglang"]),
        ("--rate", "10", ["no unit", "10/s"]),
        ("--rate", "0/s", ["more than zero"]),
        ("--prefill", "100", ["no unit", "ms"]),
        ("--prefill-rate", "100 token", ["token/s"]),
        ("--window", "-1 s", ["zero or more"]),
        ("--queue", "nan s", ["not a number"]),
        ("--price", "2 EUR/hour", ["USD/hour"]),
        ("--tier", "dram", ["NAME=CAPACITY@BANDWIDTH", "dram=512 GB@54 GB/s"]),
        ("--tier", "dram=512 GB", ["bandwidth is missing"]),
        ("--tier", "dram=512@54 GB/s", ["'512'", "no unit"]),
        ("--tier", "dram=512 GB@54 GB", ["GB/s"]),
        ("--tier", "dram=512 GB@54 GB/s,setp=1 ms", ["'setp'", "'setup'"]),
        ("--tier", "dram=512 GB@54 GB/s,setup", ["setup has no value"]),
        ("--set", "host_to_device.bandwith=20 GB/s", ["'host_to_device.bandwidth'"]),
        ("--set", "host_to_device.bandwidth=20 GB", ["GB/s"]),
        ("--set", "host_to_device.bandwidth", ["KEY=VALUE"]),
        ("--set", "host_to_device.bandwidth=-1 GB/s", ["positive"]),
        ("--set", "prefill_efficiency=2", ["at most 1"]),
        ("--format", "yaml", ["'yaml'", "csv, json, markdown, table"]),
        ("--promt", "4k", ["--promt", "--prompt"]),
    ],
)
def test_an_option_is_refused_by_name(refusal, option, value, words):
    line = refusal(*PLAN, option, value)
    assert option.removeprefix("--").replace("-", " ") in line.replace("-", " ")
    for word in words:
        assert word in line


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        ("20 Gb/s", ["'Gb/s'", "Gbit", "GB"]),
        ("20 GB", ["not a byte/second", "GB/s"]),
        ("-20 GB/s", ["more than zero"]),
        ("0 GB/s", ["more than zero"]),
        ("nan GB/s", ["not a number"]),
        ("inf GB/s", ["not a number"]),
        ("20", ["no unit"]),
        ("", ["not a number"]),
    ],
)
def test_a_bandwidth_is_refused_by_its_unit_or_sign(refusal, rate, words):
    line = refusal(*RESTORE, "--bandwidth", rate)
    assert line.startswith("--bandwidth: ")
    for word in words:
        assert word in line


def test_both_ways_to_say_a_hit(refusal):
    line = refusal(*PLAN, "--hit", "0.5", "--cached", "1k")
    assert "--cached" in line
    assert "--hit" in line


def test_gpus_and_tp_that_disagree(refusal):
    assert "3 is not tp*pp*dp = 2*1*1" in refusal(*PLAN, "--gpus", "3", "--tp", "2")


def test_gpus_that_the_heads_do_not_allow(refusal):
    assert "7 does not divide 8 KV heads" in refusal(*PLAN, "--gpus", "7")


def test_a_tier_given_twice(refusal):
    tiers = ("--tier", "dram=1 GB@1 GB/s", "--tier", "dram=2 GB@1 GB/s")
    assert "dram is given twice" in refusal(*PLAN, *tiers)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plann", "llama-3.1-8b"), ["'plann'", "'plan'"]),
        (("models", "lst"), ["'lst'", "'list'"]),
        (("kv", "llama-3.1-8b", "more"), ["more"]),
        (("kv", "llama-3.1-8b", "--tp"), ["--tp", "requires an argument"]),
        (("plan", "llama-3.1-8b"), ["--on", "h100-sxm-80gb", "kvcalc hardware list"]),
        (("explain", "brek_even"), ["'brek_even'", "break_even"]),
        (("restore", "--bytes", "1 GB"), ["--bandwidth: missing"]),
        (("restore", "--bytes", "1 GB", "--bandwidth", "1 GB/s"), ["--prefill: missing"]),
        (("restore", "--bandwidth", "1 GB/s", "--prefill", "1 s"), ["--bytes: missing"]),
        (("kv", "llama-3.1-8b", "--dcp", "3"), ["--dcp"]),
        (("kv", "llama-3.1-8b", "--tokens", "32K"), ["--tokens", "ambiguous"]),
        (("kv", "llama-3.1-8b", "--pool", "1 GB", "--sequences", "0"), ["--sequences"]),
        (("kv", "llama-3.1-8b", "--engine", "llama.cpp", "--k-type", "q9"), ["--k-type", "'q9'"]),
        (("kv", "llama-3.1-8b", "--engine", "vllm", "--engine-version", "x"), ["--engine-version", "'x'"]),
    ],
)
def test_commands_and_missing_options(refusal, arguments, words):
    line = refusal(*arguments)
    for word in words:
        assert word in line


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lama-3.1-8b", ["'lama-3.1-8b'", "'llama-3.1-8b'"]),
        ("nosuchthingatall", ["kvcalc models list"]),
        ("", ["model: empty"]),
        ("missing.json", ["missing.json: no such file"]),
        ("missing.yaml", ["missing.yaml: no such file"]),
        ("missing.gguf", ["missing.gguf: no such file"]),
        ("./missing/config.json", ["./missing/config.json: no such file"]),
        ("~nosuchuser/x", ["no such file"]),
        ("a\nb", [r"'a\nb'"]),
        ("\x1b[31mred", [r"'\x1b[31mred'"]),
        ("x" * 5000, ["no model is named 'xxx"]),
    ],
)
@pytest.mark.parametrize("command", ["kv", "plan", "models"])
def test_a_model_that_is_not_there(refusal, command, name, words):
    arguments = {
        "kv": ("kv", name),
        "plan": ("plan", name, "--on", "h100-sxm-80gb"),
        "models": ("models", "show", name),
    }
    line = refusal(*arguments[command])
    for word in words:
        assert word in line
    assert len(line) < 400


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("h1000-sxm-80gb", ["'h1000-sxm-80gb'", "'h100-sxm-80gb'"]),
        ("h100", ["h100-nvl-94gb", "h100-pcie-80gb", "h100-sxm-80gb", "say which"]),
        ("", ["kvcalc hardware list"]),
        ("missing.yaml", ["missing.yaml: no such file"]),
        ("x" * 5000, ["no hardware is named 'xxx"]),
        ("x" * 5000 + ".yaml", ["no such file"]),
    ],
)
def test_a_machine_that_is_not_there(refusal, name, words):
    for arguments in (("plan", "llama-3.1-8b", "--on", name), ("hardware", "show", name)):
        line = refusal(*arguments)
        for word in words:
            assert word in line
        assert len(line) < 400
