"""Weights as the 8-bit file keeps them: whole steps, at most 127 of them to either side, a step for each row."""
from collections.abc import Mapping

import numpy

STEPS = 127
TABLES = ("token.weight", "position.weight", "segment.weight")
PRODUCTS = ("qkv", "attention_out", "up", "down")


def steps_of(rows: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """How many steps each weight is, as int8, and the size of each row's step."""
    step = numpy.maximum(abs(rows).max(1, keepdims=True), 1e-9) / STEPS
    return numpy.round(rows / step).astype("int8"), step.astype("float32")


def rounded(weights: Mapping[str, numpy.ndarray]) -> dict[str, numpy.ndarray]:
    """All weights as float32; those of tables and of the layers' products are whole steps."""

    def one(name: str, array: numpy.ndarray) -> numpy.ndarray:
        array = array.astype("float32")
        if name not in TABLES and not name.endswith(tuple(f".{product}.weight" for product in PRODUCTS)):
            return array
        steps, step = steps_of(array)
        return steps * step

    return {name: one(name, array) for name, array in weights.items()}
