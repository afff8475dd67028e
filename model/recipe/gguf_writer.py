"""Writes GGUF files: metadata, and tensors as F32, F16 or Q8_0."""
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Sequence

import numpy

from .gguf_format import ALIGNMENT, BLOCK, BLOCK_BYTES, MAGIC, SCALARS, VERSION, TensorType, ValueType, tensor_bytes

Scalar = str | int | float | bool


@dataclass(frozen=True)
class Entry:
    """A metadata value; for an array `kind` is the type of its elements."""

    key: str
    kind: ValueType
    value: Scalar | Sequence[Scalar]


@dataclass(frozen=True)
class Tensor:
    name: str
    values: numpy.ndarray
    kind: TensorType


def write_gguf(path: Path, entries: Sequence[Entry], tensors: Sequence[Tensor]) -> None:
    """Writes beside the path and renames, so that a file under that name is always whole."""
    places, offset = [], 0
    sizes = [_padded(tensor_bytes(tensor.kind, tensor.values.size)) for tensor in tensors]
    for tensor, size in zip(tensors, sizes):
        places.append(_place(tensor, offset))
        offset += size
    head = MAGIC + struct.pack("<IQQ", VERSION, len(tensors), len(entries))
    head += b"".join(map(_entry, entries)) + b"".join(places)
    unfinished = path.with_suffix(".part")
    with unfinished.open("wb") as file:
        file.write(_pad(head))
        for tensor in tensors:
            file.write(_pad(encode(tensor.values, tensor.kind)))
    unfinished.replace(path)


def encode(values: numpy.ndarray, kind: TensorType) -> bytes:
    values = numpy.ascontiguousarray(values, dtype=numpy.float32)
    match kind:
        case TensorType.F32:
            return values.tobytes()
        case TensorType.F16:
            return values.astype(numpy.float16).tobytes()
        case TensorType.Q8_0:
            return quantize_q8(values)


def quantize_q8(values: numpy.ndarray) -> bytes:
    """Q8_0: blocks of 32 values, each a half-precision scale and 32 signed bytes."""
    blocks = values.reshape(-1, BLOCK).astype(numpy.float32)
    scales = numpy.abs(blocks).max(1) / 127
    inverse = numpy.divide(1, scales, out=numpy.zeros_like(scales), where=scales > 0)
    packed = numpy.empty((len(blocks), BLOCK_BYTES), numpy.uint8)
    packed[:, :2] = scales.astype(numpy.float16).view(numpy.uint8).reshape(-1, 2)
    levels = numpy.clip(numpy.round(blocks * inverse[:, None]), -127, 127)
    packed[:, 2:] = levels.astype(numpy.int8).view(numpy.uint8)
    return packed.tobytes()


def dequantize_q8(content: bytes) -> numpy.ndarray:
    blocks = numpy.frombuffer(content, numpy.uint8).reshape(-1, BLOCK_BYTES)
    scales = blocks[:, :2].copy().view(numpy.float16).astype(numpy.float32)
    return (blocks[:, 2:].copy().view(numpy.int8).astype(numpy.float32) * scales).reshape(-1)


def _padded(size: int) -> int:
    return size + -size % ALIGNMENT


def _pad(content: bytes) -> bytes:
    return content + b"\0" * (-len(content) % ALIGNMENT)


def _string(text: str) -> bytes:
    content = text.encode()
    return struct.pack("<Q", len(content)) + content


def _entry(entry: Entry) -> bytes:
    if isinstance(entry.value, (str, int, float, bool)):
        return _string(entry.key) + struct.pack("<I", entry.kind) + _scalar(entry.kind, entry.value)
    head = struct.pack("<IIQ", ValueType.ARRAY, entry.kind, len(entry.value))
    return _string(entry.key) + head + b"".join(_scalar(entry.kind, value) for value in entry.value)


def _scalar(kind: ValueType, value: Scalar) -> bytes:
    return _string(str(value)) if kind == ValueType.STRING else struct.pack(f"<{SCALARS[kind]}", value)


def _place(tensor: Tensor, offset: int) -> bytes:
    shape = tensor.values.shape
    head = _string(tensor.name) + struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
    return head + struct.pack("<IQ", tensor.kind, offset)
