"""Weights as the 8-bit file keeps them: whole steps, at most 127 of them to either side, a step for each row.

A processor without instructions for 8-bit products multiplies two neighbours by numbers up to 255 and adds them in 16 bits. So of two
neighbours in a row of a product the positive parts, and the negative ones, are 127 steps together at most: 255 * 127 = 32,385.
"""
from collections.abc import Mapping

import numpy

STEPS = 127
# What a GELU gives is never below this.
GELU_LOWEST = -0.17
BLOCK = 32  # numbers of a 4-bit table that share a step
TABLES = ("token.weight", "position.weight", "segment.weight")
PRODUCTS = ("qkv", "attention_out", "up", "down")
Rounded = tuple[numpy.ndarray, numpy.ndarray]


def table_steps(rows: numpy.ndarray) -> Rounded:
    """How many steps each weight is, as int8, and the size of each row's step."""
    step = numpy.maximum(abs(rows).max(1, keepdims=True), 1e-9) / STEPS
    return numpy.round(rows / step).astype("int8"), step.astype("float32")


def product_steps(rows: numpy.ndarray) -> Rounded:
    """As `table_steps`, with the bound on neighbours; weights that are whole steps already stay so."""
    step = numpy.maximum(_together(rows).max((1, 2)), 1e-9)[:, None] / STEPS
    steps = numpy.round(rows / step).astype("int32")
    # Rounding can move two neighbours by one step: what is then too much is taken off the larger of them, and of the largest pair
    # nothing is lost, so that rounding again finds the same step.
    for row, pair, sign in numpy.argwhere(_together(steps) > STEPS):
        one = max((2 * pair, 2 * pair + 1), key=lambda at: steps[row, at] * (1 - 2 * sign))
        steps[row, one] -= 1 - 2 * sign
    largest = _together(rows).reshape(len(rows), -1).argmax(1)
    for row in numpy.flatnonzero(_together(steps).max((1, 2)) == STEPS - 1):
        pair, sign = divmod(int(largest[row]), 2)
        one = max((2 * pair, 2 * pair + 1), key=lambda at: steps[row, at] * (1 - 2 * sign))
        steps[row, one] += 1 - 2 * sign
    return steps.astype("int8"), step.astype("float32")


def _together(rows: numpy.ndarray) -> numpy.ndarray:
    """Of every two neighbours the sum of the positive parts and that of the negative ones: [rows, pairs, 2]."""
    pairs = rows.reshape(len(rows), -1, 2)
    return numpy.stack([numpy.maximum(pairs, 0).sum(2), numpy.maximum(-pairs, 0).sum(2)], 2)


def four_bit_steps(rows: numpy.ndarray) -> Rounded:
    """Steps from -8 to 7, and a step for every `BLOCK` columns that makes the largest of them -8: of what was so before nothing is lost."""
    blocks = rows.reshape(len(rows), -1, BLOCK)
    largest = numpy.take_along_axis(blocks, abs(blocks).argmax(2, keepdims=True), 2)
    step = (largest / -8).astype("float16").astype("float32")
    steps = numpy.clip(numpy.round(blocks / numpy.where(step == 0, 1, step)), -8, 7)
    return steps.astype("int8").reshape(rows.shape), step[:, :, 0]


def from_four_bits(steps: numpy.ndarray, step: numpy.ndarray) -> numpy.ndarray:
    return (steps.reshape(len(steps), -1, BLOCK) * step[:, :, None]).reshape(steps.shape).astype("float32")


def rounded(weights: Mapping[str, numpy.ndarray], token_bits: int = 8) -> dict[str, numpy.ndarray]:
    """All weights as float32; those of tables and of the layers' products are whole steps."""

    def one(name: str, array: numpy.ndarray) -> numpy.ndarray:
        array = array.astype("float32")
        if name == TABLES[0] and token_bits == 4:
            return from_four_bits(*four_bit_steps(array))
        if name in TABLES:
            steps, step = table_steps(array)
        elif name.endswith(tuple(f".{product}.weight" for product in PRODUCTS)):
            steps, step = product_steps(array)
        else:
            return array
        return steps * step

    return {name: one(name, array) for name, array in weights.items()}
