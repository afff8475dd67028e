"""An exported 8-bit file back to weights: to go on from where a checkpoint is gone."""
from pathlib import Path

import numpy

from .config import Network
from .rounding import GELU_LOWEST, TABLES, from_four_bits


def restore(source: Path, out: Path) -> None:
    import onnx
    from onnx import numpy_helper

    numpy.savez(out, **weights_of({t.name: numpy_helper.to_array(t) for t in onnx.load(str(source)).graph.initializer}))


def table(steps: numpy.ndarray, step: numpy.ndarray) -> numpy.ndarray:
    if steps.dtype != numpy.uint8:
        return steps * step
    both = numpy.concatenate([steps & 15, steps >> 4], 1).astype("int8") - 8
    return from_four_bits(both, step.astype("float32"))


def weights_of(stored: dict[str, numpy.ndarray]) -> dict[str, numpy.ndarray]:
    found = {name: table(stored[name], stored[name + ".scale"]) for name in TABLES}
    found |= {name: stored[name] for part in ("norm", "dense", "out", "gate") for name in (f"{part}.weight", f"{part}.bias")}
    found["recall.weight"] = stored["recall.weight"]
    if "relative" in stored:
        found["relative"] = stored["relative"].T
    layers = 1 + max(int(name.split(".")[1]) for name in stored if name.startswith("blocks."))
    width = found["norm.weight"].shape[0]
    count = Network().heads
    size = width // count

    def product(name: str) -> numpy.ndarray:
        """[out, in]"""
        return stored[name].T.astype("float32") * stored[name + ".scale"][:, None]

    def heads(array: numpy.ndarray, scale: float = 1.0) -> numpy.ndarray:
        """Without the rows that the export adds to each head."""
        rest = array.shape[1:]
        return array.reshape(count, -1, *rest)[:, :size].reshape(width, *rest) * scale

    for layer in range(layers):
        name = f"blocks.{layer}."
        scales = {"q": size**0.5, "k": 1.0, "v": 1.0}
        found[name + "qkv.weight"] = numpy.concatenate([heads(product(name + part), scale) for part, scale in scales.items()])
        found[name + "qkv.bias"] = numpy.concatenate([heads(stored[f"{name}{part}.bias"], scale) for part, scale in scales.items()])
        for part in ("attention_out", "up", "down"):
            found[f"{name}{part}.weight"], found[f"{name}{part}.bias"] = product(name + part), stored[f"{name}{part}.bias"]
        # The export counts what this product reads from GELU_LOWEST, which its bias makes up for.
        found[name + "down.bias"] = found[name + "down.bias"] - GELU_LOWEST * found[name + "down.weight"].sum(1)
        for part in ("attention_norm", "feed_norm"):
            for kind in ("weight", "bias"):
                found[f"{name}{part}.{kind}"] = stored[f"{name}{part}.{kind}"]
    return {name: array.astype("float32") for name, array in found.items()}
