"""Checkpoint -> one ONNX graph that reads evidence, scores branches on evidence read before, or does both in one row.

Rows [B, T] of tokens; group: -1 padding, 0 evidence, 1, 2, ... branches; parent: the group of a branch's stem, 0 where it has
none. A token sees evidence, its own group and its parent in its row, and the past that its row belongs to: B = P * R, row i sees past i // R. ends [M, 2]: row and token of every branch's last token,
where its margin is read; also how much the cosine of evidence and option counts (`similarity`), and the last layer beside its
projection that recalls the untouched network (`hidden`), from which such vectors are made.

Past keys and values [P, H, E, ...] are never joined to a row's own. They start with a row of zeros that stands for all of the
row's own: own attention is done first, the logarithm of its sum of weights is taken off all past scores (a column of ones in
the keys does that within the product), and the weight of the zero row, whose score is 0, is the share of the own part. The
keys' last column is added to the score: -10000 where a past is padded. No past is that zero row alone.

A network with `relative` (heads by differences of positions) adds it to the scores: to the row's own with the mask, to those of the
past by `past_positions` [P, E], of which the first, the zero row's, counts for nothing.

int8: products of 8-bit numbers, each token with a step of its own, so that answers do not depend on what else is in a run. What `down`
reads is never below GELU_LOWEST: it is counted from there, and the bias makes up for it. The weights are whole steps already
(`rounding`), so nothing of them is lost here. The table of tokens may be of 4 bits, two numbers a byte.
"""
import itertools
from collections.abc import Mapping
from pathlib import Path

import numpy
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from .config import TUNED_SHARE, Network
from .rounding import BLOCK, GELU_LOWEST, TABLES, four_bit_steps, product_steps, table_steps

KINDS = ("float32", "int8")

ACTIVATION_STEPS, ACTIVATION_MIDDLE = 255, 128
EVIDENCE_MIN = 256  # from here on whole evidence goes through the fused attention
MS = "com.microsoft"


class Graph:
    """Nodes and weights under construction; a subgraph shares the weights of its graph, and the numbers in the names of nodes."""

    def __init__(self, outer: "Graph | None" = None) -> None:
        self.nodes = []
        self.weights = {} if outer is None else outer.weights
        self.numbers = itertools.count() if outer is None else outer.numbers

    def __call__(self, op: str, *inputs: str, domain: str = "", name: str = "", **attributes) -> str:
        name = name or f"{op}.{next(self.numbers)}"
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


class Exporter:
    def __init__(self, state: dict[str, numpy.ndarray], kind: str, shape: Network) -> None:
        self.state, self.kind, self.shape, self.g = state, kind, shape, Graph()
        self.width, self.size = shape.width, shape.width // shape.heads
        self.is_relative = "relative" in state and state["relative"].any()

    def vector(self, name: str) -> str:
        return self.g.weight(self.state[name], name)

    def table(self, ids: str, name: str) -> str:
        g, rows = self.g, self.state[name]
        if self.kind == "float32":
            return g("Gather", g.weight(rows, name), ids)
        if name == TABLES[0] and self.shape.token_bits == 4:
            return self.four_bit_table(ids, name)
        steps, step = table_steps(rows)
        steps = g("Cast", g("Gather", g.weight(steps, name), ids), to=T.FLOAT)
        return g("Mul", steps, g("Gather", g.weight(step, name + ".scale"), ids))

    def four_bit_table(self, ids: str, name: str) -> str:
        """A byte has a step of the first half of its row in its low bits, and one of the second half in its high ones."""
        g, width = self.g, self.width
        steps, step = four_bit_steps(self.state[name])
        counted = (steps + 8).astype("uint8")
        packed = g.weight(counted[:, : width // 2] | counted[:, width // 2 :] << 4, name)
        both = g("Cast", g("Gather", packed, ids), to=T.FLOAT)
        high = g("Floor", g("Mul", both, g.scalar(1 / 16)))
        low = g("Sub", both, g("Mul", high, g.scalar(16.0)))
        found = g("Sub", g("Concat", low, high, axis=-1), g.scalar(8.0))
        size = g("Cast", g("Gather", g.weight(step.astype("float16"), name + ".scale"), ids), to=T.FLOAT)
        blocks = g("Reshape", found, g.ints(0, 0, -1, BLOCK))
        return g("Reshape", g("Mul", blocks, g("Unsqueeze", size, g.ints(3))), g.ints(0, 0, width))

    def rounded(self, x: str, lowest: float | None = None) -> tuple[str, str]:
        """x [N, in] in whole steps, and the size of each token's step [N, 1]; counted from `lowest` where x is never below that."""
        g = self.g
        if self.kind == "float32":
            return x, ""
        counted = x if lowest is None else g("Sub", x, g.scalar(lowest))
        most = g("ReduceMax", g("Abs", x) if lowest is None else counted, g.ints(1), keepdims=0)
        zero, span = (ACTIVATION_MIDDLE, 127) if lowest is None else (0, ACTIVATION_STEPS)
        step = g("Mul", g("Max", most, g.scalar(1e-6)), g.scalar(1 / span))
        zeros = g("Expand", g.scalar(zero, "uint8"), g("Shape", step))
        return g("QuantizeLinear", counted, step, zeros, axis=0), g("Unsqueeze", step, g.ints(1))

    def linear(self, x: tuple[str, str], name: str, weight: numpy.ndarray, bias: numpy.ndarray, lowest: float | None = None) -> str:
        """What `rounded` gave times weight [out, in], plus the bias."""
        g, (read, size) = self.g, x
        if self.kind == "float32":
            return g("Gemm", read, g.weight(weight, name), g.weight(bias, name + ".bias"), transB=1)
        steps, step = product_steps(weight)
        w, s = g.weight(steps.T, name), g.weight(step[:, 0], name + ".scale")
        zero = g.scalar(ACTIVATION_MIDDLE if lowest is None else 0, "uint8")
        if lowest is not None:
            bias = bias + lowest * (steps.astype("float32") * step).sum(1)
        product = g("MatMulIntegerToFloat", read, w, g.scalar(1.0), s, zero, domain=MS)
        return g("Add", g("Mul", product, size), g.weight(bias, name + ".bias"))

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
        past = times(g("Sub", q, g("Mul", log_sum, column)), past_k)
        p = g("Softmax", g("Add", past, self.past_bias) if self.is_relative else past)
        y = g("Add", g("MatMul", p, past_v), g("Mul", g("Slice", p, g.ints(0), g.ints(1), g.ints(3)), own))
        return g("Reshape", g("Transpose", y, perm=[0, 2, 1, 3]), g.ints(-1, self.width))

    def attention(self, i: int, x: str) -> str:
        g, w, name, size, heads = self.g, self.width, f"blocks.{i}.", self.size, self.shape.heads
        weight, bias = self.state[name + "qkv.weight"].reshape(3, heads, size, w), self.state[name + "qkv.bias"].reshape(3, heads, size)
        more = lambda a, *last: numpy.concatenate([a, *(numpy.full((heads, 1, *a.shape[2:]), x, a.dtype) for x in last)], 1)
        flat = lambda a, *last: more(a, *last).reshape(-1, *a.shape[2:])
        s = self.rounded(x)
        q = self.linear(s, name + "q", flat(weight[0] / size**0.5, 0, 0), flat(bias[0] / size**0.5, 0, 1))
        k = self.linear(s, name + "k", flat(weight[1], 0, 0), flat(bias[1], 1, 0))
        v = self.linear(s, name + "v", flat(weight[2]), flat(bias[2]))
        by_head = lambda x, n: g("Transpose", g("Reshape", x, g.join(self.pasts, g.ints(-1, heads, n))), perm=[0, 2, 1, 3])
        qh, kh, vh = by_head(q, size + 2), by_head(k, size + 2), by_head(v, size)
        for x, out in (kh, f"keys.{i}"), (vh, f"values.{i}"):
            g("Pad", x, g.ints(0, 0, 1, 0, 0, 0, 0, 0), name=out)
        whole, parts = Graph(g), Graph(g)
        rows = lambda x, n: whole("Reshape", x, whole.join(self.run_shape, whole.ints(heads * n)))
        y = whole("MultiHeadAttention", rows(q, size + 2), rows(k, size + 2), rows(v, size), *self.whole_bias(whole), domain=MS, num_heads=heads, scale=1.0)
        whole_y = whole("Reshape", y, whole.ints(-1, w))
        parts_y = self.attend(parts, qh, kh, vh, f"past_keys.{i}", f"past_values.{i}")
        sub = lambda h, out, label: helper.make_graph(h.nodes, label, [], [helper.make_tensor_value_info(out, T.FLOAT, None)])
        y = g("If", self.whole, then_branch=sub(whole, whole_y, "whole"), else_branch=sub(parts, parts_y, "parts"))
        return g("Reshape", y, g.ints(-1, w))

    def layer(self, i: int, x: str) -> str:
        g, name = self.g, f"blocks.{i}."
        y = self.attention(i, x)
        if i == self.shape.layers - 1:  # only the tokens that answer go on
            x, y = g("Gather", x, self.ends), g("Gather", y, self.ends)

        def plain(x: str, n: str, lowest: float | None = None) -> str:
            return self.linear(self.rounded(x, lowest), name + n, self.state[f"{name}{n}.weight"], self.state[f"{name}{n}.bias"], lowest)

        # Two nodes: SkipLayerNormalization takes five times as long.
        norm = lambda x, y, n: self.norm(g("Add", x, y), f"{name}{n}")
        x = norm(x, plain(y, "attention_out"), "attention_norm")
        return norm(x, plain(g("Gelu", plain(x, "up"), domain=MS), "down", GELU_LOWEST), "feed_norm")

    def norm(self, x: str, name: str) -> str:
        return self.g("LayerNormalization", x, self.vector(name + ".weight"), self.vector(name + ".bias"), axis=-1, epsilon=self.shape.epsilon)

    def relative(self, queries: str, keys: str) -> str:
        """The bias [P, Q, K, H] of positions [P, Q] and [P, K]: all heads of a difference are gathered at once, which is ten times as fast."""
        g, table = self.g, self.state["relative"].T
        apart = g("Sub", g("Unsqueeze", keys, g.ints(1)), g("Unsqueeze", queries, g.ints(2)))
        return g("Gather", g.weight(table, "relative"), g("Add", apart, g.scalar(len(table) // 2, "int32")))

    def biases(self, per_past: str, tokens: str) -> None:
        """What is added to the scores of the row's own tokens, [P, H or 1, R, T, T], and to those of the past [P, H, R*T, E]."""
        g, heads = self.g, self.shape.heads
        self.unseen = g("Reshape", self.unseen, g.join(self.pasts, g.ints(1), per_past, tokens, tokens))
        if not self.is_relative:
            return
        own = g("Reshape", self.relative("positions", "positions"), g.join(self.pasts, per_past, tokens, tokens, g.ints(heads)))
        self.own_bias = g("Transpose", own, perm=[0, 4, 1, 2, 3])
        self.unseen = g("Add", self.unseen, self.own_bias)
        queries = g("Reshape", "positions", g.join(self.pasts, g.ints(-1)))
        past = g("Transpose", self.relative(queries, "past_positions"), perm=[0, 3, 1, 2])
        is_read = g("Cast", g("Range", g.scalar(0, "int64"), self.evidence, g.scalar(1, "int64")), to=T.BOOL)
        self.past_bias = g("Where", is_read, past, g.scalar(0.0))

    def whole_bias(self, g: Graph) -> tuple[str, ...]:
        """The inputs of the fused attention after its values: one row for each past."""
        return ("", "", g("Squeeze", self.own_bias, g.ints(2))) if self.is_relative else ()

    def model(self) -> onnx.ModelProto:
        g, heads, layers, shape = self.g, self.shape.heads, self.shape.layers, self.g("Shape", "ids")
        past = g("Shape", "past_keys.0")
        self.run_shape, self.pasts, rows, tokens = shape, g.part(past, 0, 1), g.part(shape, 0, 1), g.part(shape, 1, 2)
        per_past = g("Div", rows, self.pasts)
        self.row_shape = g.join(self.pasts, g.ints(heads), per_past, tokens)
        none, column = g.scalar(0, "int32"), lambda of, axis: g("Unsqueeze", of, g.ints(axis))
        key = column("group", 1)
        own, of_parent = (g("Equal", key, column(of, 2)) for of in ("group", "parent"))
        seen = g("Or", g("Or", own, of_parent), g("Equal", key, none))
        self.unseen = g("Where", seen, g.scalar(0.0), g.scalar(-1e4))
        self.evidence = g("Squeeze", g.part(past, 2, 3))
        self.biases(per_past, tokens)
        one_group = g("Equal", g("ReduceMin", "group", keepdims=0), g("ReduceMax", "group", keepdims=0))
        long = g("GreaterOrEqual", g("Squeeze", tokens), g.scalar(EVIDENCE_MIN, "int64"))
        self.whole = g("And", g("And", one_group, long), g("Equal", self.evidence, g.scalar(1, "int64")))
        at = lambda i: g("Gather", g("Cast", "ends", to=T.INT64), g.scalar(i, "int64"), axis=1)
        self.ends = g("Add", g("Mul", at(0), tokens), at(1))
        segment = g("Cast", g("Greater", "group", none), to=T.INT32)
        x = g("Add", g("Add", self.table("ids", "token.weight"), self.table("positions", "position.weight")), self.table(segment, "segment.weight"))
        x = g("Reshape", self.norm(x, "norm"), g.ints(-1, self.width))
        for i in range(layers):
            x = self.layer(i, x)
        recalled = g("Gemm", x, self.vector("recall.weight"), transB=1)
        g("Concat", x, recalled, axis=-1, name="hidden")
        gate = g("Sigmoid", g("Gemm", x, self.vector("gate.weight"), self.vector("gate.bias"), transB=1))
        g("Reshape", g("Mul", gate, g.scalar(2 * self.shape.similarity_scale * TUNED_SHARE)), g.ints(-1), name="similarity")
        x = g("Tanh", g("Gemm", x, self.vector("dense.weight"), self.vector("dense.bias"), transB=1))
        g("Reshape", g("Gemm", x, self.vector("out.weight"), self.vector("out.bias"), transB=1), g.ints(-1), name="margins")
        info, d = helper.make_tensor_value_info, self.size
        inputs = [*(info(n, T.INT32, ["B", "T"]) for n in ("ids", "positions", "group", "parent")), info("ends", T.INT32, ["M", 2])]
        if self.is_relative:
            inputs.append(info("past_positions", T.INT32, ["P", "E"]))
        outputs = [info("margins", T.FLOAT, ["M"]), info("similarity", T.FLOAT, ["M"]), info("hidden", T.FLOAT, ["M", 2 * self.width])]
        for i in range(layers):
            inputs += [info(f"past_keys.{i}", T.FLOAT, ["P", heads, "E", d + 2]), info(f"past_values.{i}", T.FLOAT, ["P", heads, "E", d])]
            outputs += [info(f"keys.{i}", T.FLOAT, ["P", heads, "S", d + 2]), info(f"values.{i}", T.FLOAT, ["P", heads, "S", d])]
        graph = helper.make_graph(g.nodes, "encoder", inputs, outputs, list(g.weights.values()))
        return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(MS, 1)])


def export(weights: Mapping[str, numpy.ndarray], out: Path, kind: str, shape: Network = Network()) -> None:
    assert kind in KINDS
    onnx.save(Exporter({name: array.astype("float32") for name, array in weights.items()}, kind, shape).model(), out)
