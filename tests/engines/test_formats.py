import pytest

from kvcalc.errors import SettingsError
from kvcalc.shapes.formats import FORMATS, find_format, row_bytes, slot_bytes


@pytest.mark.parametrize(
    ("name", "heads", "width", "payload", "stored"),
    [
        pytest.param("bf16", 8, 128, 8 * 128 * 2, 8 * 128 * 2, id="bf16 is two bytes a value"),
        pytest.param("fp32", 1, 64, 256, 256, id="fp32 is four"),
        pytest.param("fp8", 8, 128, 1024, 1024, id="fp8 with scales per layer adds nothing per token"),
        pytest.param("int8", 8, 128, 1024, 1024, id="so does int8"),
        pytest.param("fp8_per_token_head", 8, 128, 1024, 8 * (128 + 4), id="an fp32 scale per head"),
        pytest.param("int4_per_token_head", 8, 128, 512, 8 * (64 + 4), id="int4 with the same scale"),
        pytest.param("nvfp4", 8, 128, 512, 8 * (64 + 8), id="nvfp4: a byte per 16 values"),
        pytest.param("fp4_e2m1", 1, 576, 288, 288 + 36, id="SGLang's fp4 on a latent row"),
        pytest.param("mxfp8", 8, 128, 1024, 8 * (128 + 4), id="mxfp8: a byte per 32 values"),
        pytest.param("fp8_block128", 1, 128, 128, 132, id="an indexer key with its fp32 scale"),
        pytest.param("q8_0", 8, 64, 512, 512 / 32 * 34, id="q8_0: 34 bytes per 32 values"),
        pytest.param("q5_1", 8, 64, 320, 512 / 32 * 24, id="q5_1: 24"),
        pytest.param("q5_0", 8, 64, 320, 512 / 32 * 22, id="q5_0: 22"),
        pytest.param("q4_1", 8, 64, 256, 512 / 32 * 20, id="q4_1: 20"),
        pytest.param("q4_0", 8, 64, 256, 512 / 32 * 18, id="q4_0: 18"),
        pytest.param("iq4_nl", 8, 64, 256, 512 / 32 * 18, id="iq4_nl: 18"),
        pytest.param("q8_0", 4, 80, 320, 320 / 32 * 34, id="llama.cpp's groups run across heads"),
    ],
)
def test_row(name, heads, width, payload, stored):
    row = row_bytes(name, heads, width)
    assert (row.payload, row.stored) == (payload, stored)


@pytest.mark.parametrize(
    ("name", "slot"),
    [
        # 128 wide heads; keys: ceil(128 bits / 8) + 2, values: ceil(128 bits / 8) + 4, even
        pytest.param("turboquant_k8v4", 128 + (64 + 4), id="fp8 keys have no norm"),
        pytest.param("turboquant_4bit_nc", (64 + 2) + (64 + 4), id="4 bits"),
        pytest.param("turboquant_k3v4_nc", (48 + 2) + (64 + 4), id="3 and 4 bits"),
        pytest.param("turboquant_3bit_nc", (48 + 2) + (48 + 4), id="3 bits"),
    ],
)
def test_turboquant_slot(name, slot):
    assert slot_bytes(name, [("key", 4, 128), ("value", 4, 128)]).stored == 4 * slot


def test_turboquant_slot_is_rounded_up_to_even():
    # width 72 at 3 bits: 27 + 2 and 27 + 4 are 60; width 40: 15 + 2 and 15 + 4 are 36;
    # keys of 40 and values of 48 at 3 bits: (15 + 2) + (18 + 4) = 39, so 40
    assert slot_bytes("turboquant_3bit_nc", [("key", 2, 40), ("value", 2, 48)]).stored == 2 * 40


@pytest.mark.parametrize(
    ("name", "latent", "payload", "stored"),
    [
        pytest.param("fp8_ds_mla", 512, 512 + 128, 512 + 16 + 128, id="656"),
        pytest.param("fp8_ds_mla_v4", 448, 448 + 128, 584, id="448 + 7 scales + 128 padded to 584"),
        pytest.param("nvfp4_ds_mla", 512, 256 + 64, 256 + 32 + 64, id="352"),
        pytest.param("fp8", 512, 576, 576, id="plain fp8"),
        pytest.param("bf16", 512, 1152, 1152, id="bf16"),
    ],
)
def test_latent_row(name, latent, payload, stored):
    slot = slot_bytes(name, [("key", 1, latent), ("rope", 1, 64)])
    assert (slot.payload, slot.stored) == (payload, stored)


def test_a_spelling_belongs_to_one_format():
    spellings = [spelling for item in FORMATS for spelling in (item.name, *item.aliases)]
    assert len(spellings) == len(set(spellings))


@pytest.mark.parametrize("spelling", ["half", "float16", "f16", "FP16"])
def test_engines_spellings(spelling):
    assert find_format(spelling).name == "fp16"


def test_unknown_format_names_the_nearest():
    with pytest.raises(
        SettingsError, match=r"--kv-dtype: unknown format 'fp8_e4m4', did you mean 'fp8_e4m3'"
    ):
        find_format("fp8_e4m4")


def test_format_of_another_engine_is_refused():
    with pytest.raises(SettingsError, match=r"vllm has no 'q8_0'; it takes .*nvfp4"):
        find_format("q8_0", "vllm")


def test_a_row_that_no_block_divides_is_refused():
    with pytest.raises(SettingsError, match="80 values is no multiple of the 32"):
        row_bytes("q4_0", 1, 80)
