"""Completes an exported encoder with what the engine reads of the file before it loads it.

python -m recipe.describe_encoder exported.onnx tokenizer.json calibration.json out.onnx [name]

calibration.json: {"predicate": {"temperature": t, "bias": b}, "choice": {...}, "score": {...}}, as the stage `calibrate` writes it.
"""
import base64
import hashlib
import json
import sys
from pathlib import Path

import numpy
import onnx
from onnx import helper, numpy_helper

from .encoder.config import MODELS, RECALLED_WEIGHT

NEUTRAL = {"temperature": 1, "bias": 0}
# Git hosts take files of up to 100 MB: of a larger one this table goes into a file of its own.
TABLE, APART_FROM = "token.weight", 90_000_000


def description(model: onnx.ModelProto, calibration: dict, name: str) -> dict:
    keys = [value.type.tensor_type.shape.dim for value in model.graph.input if value.name.startswith("past_keys.")]
    shape = MODELS[name].shape
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    return {
        "version": 5 if MODELS[name].is_multilingual else 4,
        "name": name,
        "quantization": "INT8" if any(w.dtype == numpy.int8 for w in weights.values()) else "F32",
        "parameterCount": int(sum(w.size * (2 if w.dtype == numpy.uint8 else 1) for name, w in weights.items() if w.size > 1 and not name.endswith(".scale"))),
        "contextTokensMax": 20_480,
        "layers": len(keys),
        "heads": keys[0][1].dim_value,
        "headSize": keys[0][3].dim_value - 2,
        "evidencePositions": shape.evidence_positions,
        "branchPositions": shape.branch_positions,
        "blockTokensMax": 512,
        "similarityCentre": shape.similarity_centre,
        "recalledWeight": RECALLED_WEIGHT,
        "calibration": {kind: calibration.get(kind, NEUTRAL) for kind in ("predicate", "choice", "score")},
        **({"tokenizer": "unigram"} if MODELS[name].is_multilingual else {}),
    }


def tokens_of(tokenizer: dict) -> dict[str, str]:
    """What the metadata has of the tokens: one a line, in the order of the ids; of Unigram ones the scores too."""
    if tokenizer["model"]["type"] != "Unigram":
        return {"umpire.vocabulary": vocabulary(tokenizer)}
    pieces, scores = zip(*tokenizer["model"]["vocab"])
    # The blank behind a special token is the trainer's.
    return {
        "umpire.vocabulary": "\n".join(piece.removesuffix(" ") for piece in pieces),
        "umpire.scores": base64.b64encode(numpy.array(scores, "<f4").tobytes()).decode(),
    }


def vocabulary(tokenizer: dict) -> str:
    tokens = sorted(tokenizer["model"]["vocab"].items(), key=lambda item: item[1])
    assert [number for _, number in tokens] == list(range(len(tokens)))
    return "\n".join(token for token, _ in tokens)


def set_apart(model: onnx.ModelProto, out: Path) -> dict:
    """Writes the table of tokens beside `out`; returns how the description names that file."""
    table = next(tensor for tensor in model.graph.initializer if tensor.name == TABLE)
    beside, content = out.with_suffix(".weights"), table.raw_data
    beside.write_bytes(content)
    table.ClearField("raw_data")
    table.data_location = onnx.TensorProto.EXTERNAL
    del table.external_data[:]
    for key, value in (("location", beside.name), ("offset", "0"), ("length", str(len(content)))):
        table.external_data.add(key=key, value=value)
    return {"name": beside.name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def main(source: str, tokenizer: str, calibration: str, out: str, name: str = "umpire-decide") -> None:
    model = onnx.load(source)
    with open(calibration, encoding="utf8") as file:
        about = description(model, json.load(file), name)
    if model.ByteSize() > APART_FROM:
        about["weightsFile"] = set_apart(model, Path(out))
    with open(tokenizer, encoding="utf8") as file:
        tokens = tokens_of(json.load(file))
    helper.set_model_props(model, {"umpire.encoder": json.dumps(about), **tokens})
    onnx.save(model, out)
    print(json.dumps(about))


if __name__ == "__main__":
    main(*sys.argv[1:6])
