"""Completes an exported encoder with what the engine reads of the file before it loads it.

python -m recipe.describe_encoder exported.onnx wordpiece.json calibration.json out.onnx

calibration.json: {"predicate": {"temperature": t, "bias": b}, "choice": {...}, "score": {...}}, as `encoder_calibrate` writes it.
"""
import json
import sys

import numpy
import onnx
from onnx import helper, numpy_helper

from .encoder.config import RECALLED_WEIGHT, SIMILARITY_CENTRE

NEUTRAL = {"temperature": 1, "bias": 0}
POSITIONS = {"evidencePositions": 384, "branchPositions": 128}


def description(model: onnx.ModelProto, calibration: dict) -> dict:
    keys = [value.type.tensor_type.shape.dim for value in model.graph.input if value.name.startswith("past_keys.")]
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    return {
        "version": 3,
        "name": "umpire-decide",
        "quantization": "INT8" if any(w.dtype == numpy.int8 for w in weights.values()) else "F32",
        "parameterCount": int(sum(w.size for name, w in weights.items() if w.size > 1 and not name.endswith(".scale"))),
        "contextTokensMax": 20_480,
        "layers": len(keys),
        "heads": keys[0][1].dim_value,
        "headSize": keys[0][3].dim_value - 2,
        **POSITIONS,
        "blockTokensMax": 512,
        "similarityCentre": SIMILARITY_CENTRE,
        "recalledWeight": RECALLED_WEIGHT,
        "calibration": {kind: calibration.get(kind, NEUTRAL) for kind in ("predicate", "choice", "score")},
    }


def vocabulary(tokenizer: dict) -> str:
    """One token a line, in the order of the ids."""
    tokens = sorted(tokenizer["model"]["vocab"].items(), key=lambda item: item[1])
    assert [number for _, number in tokens] == list(range(len(tokens)))
    return "\n".join(token for token, _ in tokens)


def main(source: str, wordpiece: str, calibration: str, out: str) -> None:
    model = onnx.load(source)
    with open(calibration, encoding="utf8") as file:
        about = description(model, json.load(file))
    with open(wordpiece, encoding="utf8") as file:
        words = vocabulary(json.load(file))
    helper.set_model_props(model, {"umpire.encoder": json.dumps(about), "umpire.vocabulary": words})
    onnx.save(model, out)
    print(json.dumps(about))


if __name__ == "__main__":
    main(*sys.argv[1:5])
