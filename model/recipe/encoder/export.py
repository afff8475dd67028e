"""Checkpoint -> one ONNX graph that reads evidence, scores branches on evidence read before, or does both in one row.

Rows [B, T] of tokens; group: -1 padding, 0 evidence, 1, 2, ... branches; parent: the group of a branch's stem, 0 where it has
none. A token sees evidence, its own group and its parent in its row, and the past that its row belongs to: B = P * R, row i sees past i // R. ends [M, 2]: row and token of every branch's last token,
where its margin is read; also how much the cosine of evidence and option counts (`similarity`), and the last layer beside its
projection that recalls the untouched network (`hidden`), from which such vectors are made.

Past keys and values [P, H, E, ...] are never joined to a row's own. They start with a row of zeros that stands for all of the
row's own: own attention is done first, the logarithm of its sum of weights is taken off all past scores (a column of ones in
the keys does that within the product), and the weight of the zero row, whose score is 0, is the share of the own part. The
keys' last column is added to the score: -10000 where a past is padded. No past is that zero row alone.

float16 and stored8 (int8 with a scale per 64 weights): stored so, computed as float32. int8: computed so, weights with a scale per
output channel, activations per run. token8: activations with a scale per token: an answer does not depend on its batch.

A few channels of the network's activations are far larger than the rest, and a scale per token that has room for them leaves
the rest few steps. So each channel is first divided by a factor that its weights are multiplied with (SmoothQuant), from the
ranges that `activation_ranges` has measured. What GELU gives has no such channels, but is never far below zero: it is shifted, so that
all steps lie above its lowest value.
"""
from pathlib import Path
from typing import NamedTuple

import numpy
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from .config import SIMILARITY_SCALE, TUNED_SHARE

KINDS = ("float32", "float16", "stored8", "int8", "token8")

HEADS, BLOCK = 12, 64
GELU_LOWEST = -0.17  # so that its results have all 8 bits above it
EVIDENCE_MIN = 256  # from here on whole evidence goes through the fused attention, which keeps no T x T matrix
MS = "com.microsoft"


class Graph:
    """Nodes and weights under construction; a subgraph shares the weights of its graph."""

    def __init__(self, outer: "Graph | None" = None) -> None:
        self.nodes = []
        self.weights = {} if outer is None else outer.weights

    def __call__(self, op: str, *inputs: str, domain: str = "", name: str = "", **attributes) -> str:
        name = name or f"{op}.{id(self)}.{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], domain=domain, **attributes))
        return name

    def weight(self, array, name: str) -> str:
        self.weights.setdefault(name, numpy_helper.from_array(numpy.asarray(array, order="C"), name))
        return name

    def ints(self, *values: int) -> str:
        return self.weight(numpy.array(values, numpy.int64), "ints " + " ".join(map(str, values)))

    def scalar(self, value, kind: str = "float32") -> str:
        return self.weight(numpy.array(value, kind), f"{kind} {value}")

    def join(self, *parts: str) -> str:
        return self("Concat", *parts, axis=0)

    def part(self, shape: str, start: int, end: int) -> str:
        return self("Slice", shape, self.ints(start), self.ints(end))


class Scaled(NamedTuple):
    """What products read: [N, in] as float32, in 8 bits about `zero`, the scales of its rows [N, 1], and what was taken off its channels."""

    plain: str
    small: str
    scales: str
    zero: int
    shift: numpy.ndarray | None


class Exporter:
    def __init__(self, state: dict[str, numpy.ndarray], kind: str, ranges: dict[str, numpy.ndarray] | None = None) -> None:
        """`ranges`: by the name of a product, the largest magnitude of each channel that it reads."""
        self.state, self.ranges = state, ranges or {}
        self.kind, self.g = kind, Graph()
        self.width = self.state["norm.weight"].shape[0]
        self.size = self.width // HEADS
        self.layers = 1 + max(int(k.split(".")[1]) for k in self.state if k.startswith("blocks."))

    def stored(self, array: numpy.ndarray, name: str) -> str:
        """A weight in its stored form; what turns it into float32 is done once, when a session is made."""
        g = self.g
        if self.kind == "float16":
            return g("Cast", g.weight(array.astype("float16"), name), to=T.FLOAT)
        if self.kind != "stored8":
            return g.weight(array, name)
        blocks = array.reshape(-1, BLOCK)
        scale = numpy.maximum(abs(blocks).max(1, keepdims=True), 1e-9) / 127
        small = g("Cast", g.weight(numpy.round(blocks / scale).astype("int8"), name), to=T.FLOAT)
        return g("Reshape", g("Mul", small, g.weight(scale, name + ".scale")), g.ints(*array.shape))

    def vector(self, name: str) -> str:
        return self.g.weight(self.state[name], name)

    def table(self, ids: str, name: str) -> str:
        g, rows = self.g, self.state[name]
        if self.kind.startswith("float"):
            return g("Gather", self.stored(rows, name), ids)
        scale = numpy.maximum(abs(rows).max(1, keepdims=True), 1e-9) / 127
        small = g("Gather", g.weight(numpy.round(rows / scale).astype("int8"), name), ids)
        return g("Mul", g("Cast", small, to=T.FLOAT), g("Gather", g.weight(scale, name + ".scale"), ids))

    def factors(self, name: str) -> numpy.ndarray:
        """What each channel that the product reads is divided by, and its weights multiplied with: half of the way to equal ranges."""
        weight = self.state[name + ".weight"]
        if self.kind != "token8" or name not in self.ranges:
            return numpy.ones(weight.shape[1], "float32")
        of_values, of_weights = (numpy.maximum(x, 1e-4) for x in (self.ranges[name], abs(weight).max(0)))
        found = numpy.sqrt(of_values / of_weights)
        return (found / numpy.exp(numpy.log(found).mean())).astype("float32")

    def scaled(self, x: str, name: str, factors: numpy.ndarray, lowest: float | None = None) -> Scaled:
        """x [N, in] in 8 bits with one scale per token: about 128, or from 0 where it is never below `lowest`."""
        g = self.g
        if self.kind != "token8":
            return Scaled(x, "", "", 0, None)
        if lowest is not None:
            x = g("Sub", x, g.scalar(lowest))
        if (factors != 1).any():
            x = g("Mul", x, g.weight(1 / factors, name + ".factors"))
        zero, largest = (128, g("Abs", x)) if lowest is None else (0, x)
        scale = g("Mul", g("ReduceMax", largest, g.ints(1), keepdims=0), g.scalar(1 / (255 - zero)))
        zeros = g("Expand", g.scalar(zero, "uint8"), g("Shape", scale))
        shift = None if lowest is None else lowest / factors
        return Scaled(x, g("QuantizeLinear", x, scale, zeros, axis=0), g("Unsqueeze", scale, g.ints(1)), zero, shift)

    def linear(self, x: Scaled, name: str, weight: numpy.ndarray, bias: numpy.ndarray) -> str:
        """x [N, in] times weight [out, in], plus the bias."""
        g = self.g
        if self.kind not in ("int8", "token8"):
            return g("Gemm", x.plain, self.stored(weight, name), g.weight(bias, name + ".bias"), transB=1)
        scale = numpy.maximum(abs(weight).max(1), 1e-9) / 127
        rounded = numpy.round(weight / scale[:, None])
        w, s = g.weight(rounded.astype("int8").T, name), g.weight(scale, name + ".scale")
        if self.kind == "int8":
            return g("DynamicQuantizeMatMul", x.plain, w, s, "", g.weight(bias, name + ".bias"), domain=MS)
        y = g("MatMulIntegerToFloat", x.small, w, g.scalar(1.0), s, g.scalar(x.zero, "uint8"), domain=MS)
        y = g("Add", g("Mul", y, x.scales), g.weight(bias, name + ".bias"))
        if x.shift is None:
            return y
        return g("Add", y, g.weight(((rounded * scale[:, None]) @ x.shift).astype("float32"), name + ".shift"))

    def attend(self, g: Graph, q: str, k: str, v: str, past_k: str, past_v: str) -> str:
        """q, k [P, H, R*T, D+2], v [P, H, R*T, D]; answers [N, width]."""
        times = lambda a, b: g("FusedMatMul", a, b, domain=MS, transB=1)
        rows = lambda x, size: g("Reshape", x, g.join(self.row_shape, g.ints(size)))  # [P, H, R, T, size]
        own = g("Add", times(rows(q, self.size + 2), rows(k, self.size + 2)), self.unseen)
        p, most = g("Softmax", own), lambda x: g("ReduceMax", x, g.ints(-1))
        log_sum = g("Sub", most(own), g("Log", most(p)))
        log_sum = g("Reshape", log_sum, g.join(g.part(g("Shape", q), 0, 3), g.ints(1)))
        own = g("Reshape", g("MatMul", p, rows(v, self.size)), g("Shape", v))
        column = g.weight(numpy.eye(self.size + 2, dtype="float32")[self.size], "log sum column")
        p = g("Softmax", times(g("Sub", q, g("Mul", log_sum, column)), past_k))
        y = g("Add", g("MatMul", p, past_v), g("Mul", g("Slice", p, g.ints(0), g.ints(1), g.ints(3)), own))
        return g("Reshape", g("Transpose", y, perm=[0, 2, 1, 3]), g.ints(-1, self.width))

    def attention(self, i: int, x: str) -> str:
        g, w, name, size = self.g, self.width, f"blocks.{i}.", self.size
        weight, bias = self.state[name + "qkv.weight"].reshape(3, HEADS, size, w), self.state[name + "qkv.bias"].reshape(3, HEADS, size)
        more = lambda a, *last: numpy.concatenate([a, *(numpy.full((HEADS, 1, *a.shape[2:]), x, a.dtype) for x in last)], 1)
        flat = lambda a, *last: more(a, *last).reshape(-1, *a.shape[2:])
        factors = self.factors(name + "qkv")
        s, weight = self.scaled(x, name + "qkv", factors), weight * factors
        q = self.linear(s, name + "q", flat(weight[0] / size**0.5, 0, 0), flat(bias[0] / size**0.5, 0, 1))
        k = self.linear(s, name + "k", flat(weight[1], 0, 0), flat(bias[1], 1, 0))
        v = self.linear(s, name + "v", flat(weight[2]), flat(bias[2]))
        heads = lambda x, n: g("Transpose", g("Reshape", x, g.join(self.pasts, g.ints(-1, HEADS, n))), perm=[0, 2, 1, 3])
        qh, kh, vh = heads(q, size + 2), heads(k, size + 2), heads(v, size)
        for x, out in (kh, f"keys.{i}"), (vh, f"values.{i}"):
            g("Pad", x, g.ints(0, 0, 1, 0, 0, 0, 0, 0), name=out)
        whole, parts = Graph(g), Graph(g)
        rows = lambda x, n: whole("Reshape", x, whole.join(self.shape, whole.ints(HEADS * n)))
        y = whole("MultiHeadAttention", rows(q, size + 2), rows(k, size + 2), rows(v, size), domain=MS, num_heads=HEADS, scale=1.0)
        whole_y = whole("Reshape", y, whole.ints(-1, w))
        parts_y = self.attend(parts, qh, kh, vh, f"past_keys.{i}", f"past_values.{i}")
        sub = lambda h, out, label: helper.make_graph(h.nodes, label, [], [helper.make_tensor_value_info(out, T.FLOAT, None)])
        y = g("If", self.whole, then_branch=sub(whole, whole_y, "whole"), else_branch=sub(parts, parts_y, "parts"))
        return g("Reshape", y, g.ints(-1, w))

    def layer(self, i: int, x: str) -> str:
        g, name = self.g, f"blocks.{i}."
        y = self.attention(i, x)
        if i == self.layers - 1:  # only the tokens that answer go on
            x, y = g("Gather", x, self.ends), g("Gather", y, self.ends)

        def plain(x: str, n: str, lowest: float | None = None) -> str:
            factors, weight = self.factors(name + n), self.state[f"{name}{n}.weight"]
            scaled = self.scaled(x, name + n, factors, lowest)
            return self.linear(scaled, name + n, weight * factors, self.state[f"{name}{n}.bias"])

        # Two nodes: SkipLayerNormalization takes five times as long.
        norm = lambda x, y, n: g("LayerNormalization", g("Add", x, y), self.vector(f"{name}{n}.weight"), self.vector(f"{name}{n}.bias"), axis=-1, epsilon=1e-12)
        x = norm(x, plain(y, "attention_out"), "attention_norm")
        return norm(x, plain(g("Gelu", plain(x, "up"), domain=MS), "down", GELU_LOWEST), "feed_norm")

    def model(self) -> onnx.ModelProto:
        g, s, shape = self.g, self.state, self.g("Shape", "ids")
        past = g("Shape", "past_keys.0")
        self.shape, self.pasts, rows, tokens = shape, g.part(past, 0, 1), g.part(shape, 0, 1), g.part(shape, 1, 2)
        per_past = g("Div", rows, self.pasts)
        self.row_shape = g.join(self.pasts, g.ints(HEADS), per_past, tokens)
        none, column = g.scalar(0, "int32"), lambda of, axis: g("Unsqueeze", of, g.ints(axis))
        key = column("group", 1)
        own, of_parent = (g("Equal", key, column(of, 2)) for of in ("group", "parent"))
        seen = g("Or", g("Or", own, of_parent), g("Equal", key, none))
        unseen = g("Where", seen, g.scalar(0.0), g.scalar(-1e4))
        self.unseen = g("Reshape", unseen, g.join(self.pasts, g.ints(1), per_past, tokens, tokens))
        evidence = g("Squeeze", g.part(past, 2, 3))
        one_group = g("Equal", g("ReduceMin", "group", keepdims=0), g("ReduceMax", "group", keepdims=0))
        long = g("GreaterOrEqual", g("Squeeze", tokens), g.scalar(EVIDENCE_MIN, "int64"))
        self.whole = g("And", g("And", one_group, long), g("Equal", evidence, g.scalar(1, "int64")))
        at = lambda i: g("Gather", g("Cast", "ends", to=T.INT64), g.scalar(i, "int64"), axis=1)
        self.ends = g("Add", g("Mul", at(0), tokens), at(1))
        segment = g("Cast", g("Greater", "group", none), to=T.INT32)
        x = g("Add", g("Add", self.table("ids", "token.weight"), self.table("positions", "position.weight")), self.table(segment, "segment.weight"))
        x = g("LayerNormalization", x, self.vector("norm.weight"), self.vector("norm.bias"), axis=-1, epsilon=1e-12)
        x = g("Reshape", x, g.ints(-1, self.width))
        for i in range(self.layers):
            x = self.layer(i, x)
        recalled = g("Gemm", x, self.vector("recall.weight"), transB=1)
        g("Concat", x, recalled, axis=-1, name="hidden")
        gate = g("Sigmoid", g("Gemm", x, self.vector("gate.weight"), self.vector("gate.bias"), transB=1))
        g("Reshape", g("Mul", gate, g.scalar(2 * SIMILARITY_SCALE * TUNED_SHARE)), g.ints(-1), name="similarity")
        x = g("Tanh", g("Gemm", x, self.stored(s["dense.weight"], "dense.weight"), self.vector("dense.bias"), transB=1))
        g("Reshape", g("Gemm", x, self.vector("out.weight"), self.vector("out.bias"), transB=1), g.ints(-1), name="margins")
        info, d = helper.make_tensor_value_info, self.size
        inputs = [*(info(n, T.INT32, ["B", "T"]) for n in ("ids", "positions", "group", "parent")), info("ends", T.INT32, ["M", 2])]
        outputs = [info("margins", T.FLOAT, ["M"]), info("similarity", T.FLOAT, ["M"]), info("hidden", T.FLOAT, ["M", 2 * self.width])]
        for i in range(self.layers):
            inputs += [info(f"past_keys.{i}", T.FLOAT, ["P", HEADS, "E", d + 2]), info(f"past_values.{i}", T.FLOAT, ["P", HEADS, "E", d])]
            outputs += [info(f"keys.{i}", T.FLOAT, ["P", HEADS, "S", d + 2]), info(f"values.{i}", T.FLOAT, ["P", HEADS, "S", d])]
        graph = helper.make_graph(g.nodes, "encoder", inputs, outputs, list(g.weights.values()))
        return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(MS, 1)])


def export(weights: Path, out: Path, kind: str, ranges: Path | None = None) -> None:
    """`weights` and `ranges` are archives of NumPy, as `encoder_ranges` writes them."""
    assert kind in KINDS
    stored = {name: array.astype("float32") for name, array in numpy.load(weights).items()}
    onnx.save(Exporter(stored, kind, None if ranges is None else dict(numpy.load(ranges))).model(), out)
