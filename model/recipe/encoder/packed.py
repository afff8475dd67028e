"""Weights in a quarter of their size: 8-bit whole numbers by groups of columns, each group with a scale, to keep and to go on from.

`NAME|q` [rows, columns] int8 and `NAME|s` [rows, columns / GROUP] float16; what is no such table stays, as float16.
"""
from pathlib import Path
from typing import Mapping

import numpy

GROUP = 64
STEPS = 127


def pack(weights: Mapping[str, numpy.ndarray]) -> dict[str, numpy.ndarray]:
    made: dict[str, numpy.ndarray] = {}
    for name, array in weights.items():
        array = numpy.asarray(array, "float32")
        if array.ndim != 2 or array.shape[1] % GROUP:
            made[name] = array.astype("float16")
            continue
        grouped = array.reshape(len(array), -1, GROUP)
        scales = numpy.maximum(abs(grouped).max(-1) / STEPS, 1e-7).astype("float16")
        steps = numpy.clip(numpy.round(grouped / scales[..., None].astype("float32")), -STEPS, STEPS)
        made[f"{name}|q"], made[f"{name}|s"] = steps.astype("int8").reshape(array.shape), scales
    return made


def unpack(stored: Mapping[str, numpy.ndarray]) -> dict[str, numpy.ndarray]:
    """Float32 weights by name, of an archive of either form."""
    made: dict[str, numpy.ndarray] = {}
    for name in stored.keys():
        if name.endswith("|q"):
            steps, scales = stored[name].astype("float32"), stored[name[:-1] + "s"].astype("float32")
            made[name[:-2]] = (steps.reshape(len(steps), -1, GROUP) * scales[..., None]).reshape(steps.shape)
        elif not name.endswith("|s"):
            made[name] = stored[name].astype("float32")
    return made


def read(path: Path) -> dict[str, numpy.ndarray]:
    with numpy.load(path) as stored:
        return unpack(stored)
