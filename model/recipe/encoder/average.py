"""The mean of two trainings from the same start: `python3 -m recipe.encoder.average A.npz B.npz OUT.npz`.

What one of them has lost the other may still have; the card has figures for other shares.
"""
import sys

import numpy


def average(one: dict[str, numpy.ndarray], other: dict[str, numpy.ndarray]) -> dict[str, numpy.ndarray]:
    assert one.keys() == other.keys()
    return {name: ((one[name].astype("float32") + other[name].astype("float32")) / 2).astype("float16") for name in one}


if __name__ == "__main__":
    numpy.savez(sys.argv[3], **average(*(dict(numpy.load(path)) for path in sys.argv[1:3])))
