"""How many bytes a weight matrix takes in each storage format, scales included."""

from dataclasses import dataclass

from kvcalc.errors import SettingsError, did_you_mean


@dataclass(frozen=True)
class Format:
    """One way to store a matrix: bits per element, and scales per block of elements.

    A block of 0 rows or columns spans the whole matrix in that direction.  `tensor_bytes` are stored
    once per matrix (a per-tensor or global scale).
    """

    name: str
    bits: float
    block_rows: int = 0
    block_columns: int = 0
    scale_bytes: float = 0.0  # per block, zero points included
    tensor_bytes: float = 0.0
    slice_multiple: int = 1  # engines round a rank's slice of an expert up to this many channels

    def matrix_bytes(self, rows: int, columns: int) -> float:
        """Return the bytes of a matrix of `rows` outputs by `columns` inputs.

        >>> FP8_BLOCK.matrix_bytes(256, 256)  # 65,536 values and 2 x 2 fp32 scales
        65552.0
        """
        blocks = _blocks(rows, self.block_rows) * _blocks(columns, self.block_columns)
        return rows * columns * self.bits / 8 + blocks * self.scale_bytes + self.tensor_bytes


def _blocks(size: int, block: int) -> int:
    return -(-size // block) if block else 1


BF16 = Format("bf16", 16)
FP16 = Format("fp16", 16)
FP32 = Format("fp32", 32)
FP8_TENSOR = Format("fp8", 8, tensor_bytes=4)  # one fp32 scale a matrix
FP8_CHANNEL = Format("fp8_channel", 8, block_rows=1, scale_bytes=4)  # one fp32 scale an output row
FP8_BLOCK = Format("fp8_block", 8, 128, 128, scale_bytes=4)  # DeepSeek V3: fp32 scale per 128 x 128
MXFP8 = Format("mxfp8", 8, 1, 32, scale_bytes=1)  # OCP MX: one e8m0 scale per 32 values
# OCP MX: one e8m0 scale per 32 values.  vLLM's Triton kernels on Hopper pad slices to 64 channels.
MXFP4 = Format("mxfp4", 4, 1, 32, scale_bytes=1, slice_multiple=64)
NVFP4 = Format("nvfp4", 4, 1, 16, scale_bytes=1, tensor_bytes=8)  # e4m3 per 16, two fp32 a matrix
INT8_CHANNEL = Format("int8", 8, block_rows=1, scale_bytes=4)
BNB_NF4 = Format("nf4", 4, 1, 64, scale_bytes=4)  # bitsandbytes: one fp32 absmax per 64 values
INT4 = Format("int4", 4, 1, 128, scale_bytes=2)  # weight-only, one 16-bit scale per 128 values


def integer_groups(bits: int, group: int, zeros: bool) -> Format:
    """Return a GPTQ or AWQ format: packed integers with a 16-bit scale and a zero point per group.

    Zero points are packed like the weights, `bits` each.  A group of -1 spans the input dimension.
    """
    scale = 2 + (bits / 8 if zeros else 0)
    return Format(f"int{bits}", bits, 1, max(group, 0), scale_bytes=scale)


def fp8_blocks(rows: int, columns: int, scale_bytes: float = 4) -> Format:
    """Return the block-scaled fp8 format of a checkpoint's `weight_block_size`."""
    return Format("fp8_block", 8, rows, columns, scale_bytes=scale_bytes)


NAMED = {
    "fp32": FP32,
    "bf16": BF16,
    "fp16": FP16,
    "fp8": FP8_TENSOR,
    "fp8_channel": FP8_CHANNEL,
    "fp8_block": FP8_BLOCK,
    "int8": INT8_CHANNEL,
    "mxfp8": MXFP8,
    "mxfp4": MXFP4,
    "nvfp4": NVFP4,
    "nf4": BNB_NF4,
    "int4": INT4,
}
"""Formats that a person may ask for by name."""

_LONG_NAMES = {
    **{"float32": "fp32", "bfloat16": "bf16", "float16": "fp16", "float8_e4m3fn": "fp8"},
    **{"f32": "fp32", "f16": "fp16", "half": "fp16"},
}


def named(name: str, others: tuple[str, ...] = ()) -> Format:
    """Return the format that `name` means, or raise `SettingsError` with the nearest valid name.

    `others` are names that the caller understands besides.
    """
    short = _LONG_NAMES.get(name.lower().removeprefix("torch."), name.lower())
    if short not in NAMED:
        known = (*NAMED, *others)
        raise SettingsError(f"weights dtype {name!r} is unknown{did_you_mean(name.lower(), known)}")
    return NAMED[short]
