"""The graph of the embedding model: where it finds its weights, and what it computes with them."""
import json
import math
import tempfile
import unittest
from pathlib import Path

try:
    import numpy
    import onnxruntime

    from .sentence_encoder import main
except ModuleNotFoundError as missing:
    raise unittest.SkipTest(f"not installed: {missing.name}")

WIDTH, INNER, HEADS = 8, 16, 2
CONFIG = {
    "hidden_act": "gelu",
    "hidden_size": WIDTH,
    "layer_norm_eps": 1e-12,
    "num_attention_heads": HEADS,
    "num_hidden_layers": 1,
    "position_embedding_type": "absolute",
}
LAYER = "encoder.layer.0"
LINEAR = {
    **{f"{LAYER}.attention.self.{part}": (WIDTH, WIDTH) for part in ("query", "key", "value")},
    f"{LAYER}.attention.output.dense": (WIDTH, WIDTH),
    f"{LAYER}.intermediate.dense": (INNER, WIDTH),
    f"{LAYER}.output.dense": (WIDTH, INNER),
}
TABLES = {"word": (20, WIDTH), "position": (6, WIDTH), "token_type": (2, WIDTH)}


def drawn() -> dict:
    random = numpy.random.default_rng(1)
    draw = lambda *shape: random.normal(size=shape).astype("float16")
    found = {f"embeddings.{kind}_embeddings.weight": draw(*shape) for kind, shape in TABLES.items()}
    for name, shape in LINEAR.items():
        found |= {f"{name}.weight": draw(*shape), f"{name}.bias": draw(shape[0])}
    for name in ("embeddings", f"{LAYER}.attention.output", f"{LAYER}.output"):
        found |= {f"{name}.LayerNorm.weight": draw(WIDTH), f"{name}.LayerNorm.bias": draw(WIDTH)}
    return found


def write_safetensors(weights: dict, file: Path) -> None:
    table, at = {}, 0
    for name, array in weights.items():
        table[name] = {"dtype": "F16", "shape": array.shape, "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    head = json.dumps(table).encode()
    file.write_bytes(len(head).to_bytes(8, "little") + head + b"".join(array.tobytes() for array in weights.values()))


def expected(weights: dict, ids: list[int]) -> numpy.ndarray:
    w = {name: array.astype("float64") for name, array in weights.items()}
    erf = numpy.vectorize(math.erf)
    linear = lambda x, name: x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        return centred / centred.std(-1, keepdims=True) * w[f"{name}.LayerNorm.weight"] + w[f"{name}.LayerNorm.bias"]

    table = lambda kind: w[f"embeddings.{kind}_embeddings.weight"]
    x = norm(table("word")[ids] + table("position")[: len(ids)] + table("token_type")[0], "embeddings")
    by_head = lambda part: linear(x, f"{LAYER}.attention.self.{part}").reshape(len(ids), HEADS, -1).transpose(1, 0, 2)
    q, k, v = map(by_head, ("query", "key", "value"))
    scores = numpy.exp(q @ k.transpose(0, 2, 1) / (WIDTH // HEADS) ** 0.5)
    y = (scores / scores.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(len(ids), WIDTH)
    x = norm(x + linear(y, f"{LAYER}.attention.output.dense"), f"{LAYER}.attention.output")
    y = linear(x, f"{LAYER}.intermediate.dense")
    y = linear(0.5 * y * (1 + erf(y / 2**0.5)), f"{LAYER}.output.dense")
    return norm(x + y, f"{LAYER}.output").mean(0)


class SentenceEncoderTest(unittest.TestCase):
    def test_it_computes_the_mean_of_the_last_layer_with_weights_that_lie_in_the_other_file(self) -> None:
        weights = drawn()
        with tempfile.TemporaryDirectory() as folder:
            source, config, out = (Path(folder) / name for name in ("a.safetensors", "config.json", "a.onnx"))
            write_safetensors(weights, source)
            config.write_text(json.dumps(CONFIG))
            main(str(source), str(config), str(out))
            first = out.read_bytes()
            main(str(source), str(config), str(out))
            self.assertEqual(out.read_bytes(), first)
            session = onnxruntime.InferenceSession(str(out), providers=["CPUExecutionProvider"])
            for ids in ([3, 7, 1], [5], [1, 2, 3, 4, 5, 19]):
                (mean,) = session.run(None, {"ids": numpy.array(ids, "int32")})
                numpy.testing.assert_allclose(mean, expected(weights, ids), atol=1e-4)


if __name__ == "__main__":
    unittest.main()
