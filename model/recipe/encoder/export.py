"""Checkpoint -> one ONNX graph that reads evidence, scores branches on evidence read before, or does both in one row.

Rows [B, T] of tokens; group: -1 padding, 0 evidence, 1, 2, ... branches; parent: the group of a branch's stem, 0 where it has
none. A token sees evidence, its own group and its parent in its row, and the past that its row belongs to: B = P * R, row i sees past i // R. ends [M, 2]: row and token of every branch's last token,
where its margin is read; also how much the cosine of evidence and option counts (`similarity`), and the last layer beside its
projection that recalls the untouched network (`hidden`), from which such vectors are made.

Past keys and values [P, H, E, ...] are never joined to a row's own. They start with a row of zeros that stands for all of the
row's own: own attention is done first, the logarithm of its sum of weights is taken off all past scores (a column of ones in
the keys does that within the product), and the weight of the zero row, whose score is 0, is the share of the own part. The
keys' last column is added to the score: -10000 where a past is padded. No past is that zero row alone.

int8: products of 8-bit numbers. The weights are whole steps already (`rounding`), so nothing of them is lost. What a product reads
is made of two numbers of 7 bits, the second for what the first leaves over, and goes through the product twice; so the answers
are those of float32 within 0.02, and do not depend on what else is in a run. With 7 bits no sum saturates where a
processor adds pairs of products in 16 bits. The first number's steps span the range that `activation_ranges` has measured, and
some more; what lies beyond is cut off.
"""
from pathlib import Path
from typing import NamedTuple

import numpy
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from .config import SIMILARITY_SCALE, TUNED_SHARE
from .rounding import steps_of

KINDS = ("float32", "int8")

HEADS = 12
GELU_LOWEST = -0.17
ROOM = 1.25  # times the measured range
PART_STEPS, PART_MIDDLE = 127, 64  # of a number of 7 bits
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


class Parts(NamedTuple):
    """What products read, [N, in]: as float32, and as two 8-bit numbers, the first in steps of `step` about `zero`."""

    plain: str
    coarse: str
    fine: str
    step: float
    zero: int


class Exporter:
    def __init__(self, state: dict[str, numpy.ndarray], kind: str, ranges: dict[str, numpy.ndarray] | None = None) -> None:
        """`ranges`: by the name of a product, the largest magnitude that it reads."""
        self.state, self.ranges = state, ranges or {}
        self.kind, self.g = kind, Graph()
        self.width = self.state["norm.weight"].shape[0]
        self.size = self.width // HEADS
        self.layers = 1 + max(int(k.split(".")[1]) for k in self.state if k.startswith("blocks."))

    def vector(self, name: str) -> str:
        return self.g.weight(self.state[name], name)

    def table(self, ids: str, name: str) -> str:
        g, rows = self.g, self.state[name]
        if self.kind == "float32":
            return g("Gather", g.weight(rows, name), ids)
        steps, step = steps_of(rows)
        steps = g("Cast", g("Gather", g.weight(steps, name), ids), to=T.FLOAT)
        return g("Mul", steps, g("Gather", g.weight(step, name + ".scale"), ids))

    def parts(self, x: str, name: str, lowest: float | None = None) -> Parts:
        """Of x [N, in]; `lowest` where it is never below that."""
        g = self.g
        if self.kind == "float32":
            return Parts(x, "", "", 0, 0)
        highest = ROOM * float(self.ranges[name])
        step = (highest - (-highest if lowest is None else lowest)) / PART_STEPS
        zero = PART_MIDDLE if lowest is None else round(-lowest / step)
        of_coarse = g.scalar(step), g.scalar(zero, "uint8")
        coarse = g("QuantizeLinear", x, *of_coarse)
        rest = g("Sub", x, g("DequantizeLinear", coarse, *of_coarse))
        fine = g("QuantizeLinear", rest, g.scalar(step / PART_STEPS), g.scalar(PART_MIDDLE, "uint8"))
        return Parts(x, coarse, fine, step, zero)

    def linear(self, x: Parts, name: str, weight: numpy.ndarray, bias: numpy.ndarray) -> str:
        """x [N, in] times weight [out, in], plus the bias."""
        g = self.g
        if self.kind == "float32":
            return g("Gemm", x.plain, g.weight(weight, name), g.weight(bias, name + ".bias"), transB=1)
        steps, step = steps_of(weight)
        w, s = g.weight(steps.T, name), g.weight(step[:, 0], name + ".scale")
        times = lambda part, size, zero, *more: g("MatMulIntegerToFloat", part, w, g.scalar(size), s, g.scalar(zero, "uint8"), *more, domain=MS)
        coarse = times(x.coarse, x.step, x.zero, "", g.weight(bias, name + ".bias"))
        return g("Add", coarse, times(x.fine, x.step / PART_STEPS, PART_MIDDLE))

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
        s = self.parts(x, name + "qkv")
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
            return self.linear(self.parts(x, name + n, lowest), name + n, self.state[f"{name}{n}.weight"], self.state[f"{name}{n}.bias"])

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
        x = g("Tanh", g("Gemm", x, self.vector("dense.weight"), self.vector("dense.bias"), transB=1))
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
