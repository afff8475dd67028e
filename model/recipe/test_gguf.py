"""What is written as GGUF can be read back, and the shipped file has what the product needs."""
import tempfile
import unittest
from pathlib import Path

from .gguf_format import MAGIC, ValueType
from .gguf_reader import GgufFile, read_gguf

try:
    import numpy

    from .config import TINY_SHAPE, Recipe
    from .export import CHAT_TEMPLATE, model_entries, tensors, tokenizer_entries
    from .gguf_format import TensorType
    from .gguf_writer import Entry, Tensor, dequantize_q8, quantize_q8, write_gguf
except ModuleNotFoundError:  # the reader alone needs nothing
    numpy = None

SHIPPED = Path(__file__).parent.parent / "umpire-nano-q8_0.gguf"


@unittest.skipIf(numpy is None, "numpy is not installed")
class RoundTrip(unittest.TestCase):
    def test_metadata_and_tensors_come_back_as_they_were_written(self) -> None:
        entries = [
            Entry("general.architecture", ValueType.STRING, "qwen3"),
            Entry("a.count", ValueType.UINT32, 4_294_967_295),
            Entry("a.flag", ValueType.BOOL, True),
            Entry("a.words", ValueType.STRING, ["Ġt", "", "日"]),
            Entry("a.numbers", ValueType.INT32, [-1, 0, 1]),
        ]
        matrix = numpy.arange(96, dtype=numpy.float32).reshape(3, 32)
        written = [
            Tensor("first", matrix, TensorType.F16),
            Tensor("second", numpy.array([1.5, -2.0]), TensorType.F32),
            Tensor("third", matrix, TensorType.Q8_0),
        ]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.gguf"
            write_gguf(path, entries, written)
            read = read_gguf(path)
            content = path.read_bytes()
        self.assertEqual(read.metadata, {entry.key: entry.value for entry in entries})
        self.assertEqual([t.name for t in read.tensors], ["first", "second", "third"])
        self.assertEqual(read.tensors[0].dimensions, (32, 3))
        self.assertEqual(read.parameters, 96 + 2 + 96)
        second = numpy.frombuffer(content, numpy.float32, 2, read.tensors_start + read.tensors[1].offset)
        self.assertEqual(second.tolist(), [1.5, -2.0])
        self.assertEqual(len(content) % 32, 0)

    def test_q8_is_right_to_half_a_level(self) -> None:
        values = numpy.random.default_rng(1).normal(size=320).astype(numpy.float32)
        back = dequantize_q8(quantize_q8(values))
        levels = numpy.abs(values.reshape(-1, 32)).max(1) / 127
        # Half a level, and what the half-precision scale adds at the far end of a block.
        bound = levels * (0.5 + 127 * 2**-11)
        self.assertTrue((numpy.abs(values - back).reshape(-1, 32).max(1) <= bound * 1.001).all())

    def test_a_block_of_zeros_stays_zero(self) -> None:
        self.assertEqual(dequantize_q8(quantize_q8(numpy.zeros(32))).tolist(), [0.0] * 32)

    def test_an_exported_file_has_every_key_that_the_product_reads(self) -> None:
        recipe = Recipe(Path("w"), Path("s"), Path("h"), shape=TINY_SHAPE)
        tokenizer = {
            "model": {"vocab": {"<|endoftext|>": 0, "<|im_end|>": 2, "a": 3}, "merges": [["a", "b"], "c d"]},
            "added_tokens": [{"id": 0, "content": "<|endoftext|>"}, {"id": 2, "content": "<|im_end|>"}],
        }
        entries = [*model_entries(recipe, TINY_SHAPE, "q8_0"), *tokenizer_entries(tokenizer, 5)]
        entries.append(Entry("tokenizer.chat_template", ValueType.STRING, CHAT_TEMPLATE))
        made = GgufFile({entry.key: entry.value for entry in entries}, [], 0)
        self.assertEqual(made.missing(), [])
        self.assertEqual(
            made.metadata["tokenizer.ggml.tokens"],
            ["<|endoftext|>", "[unused1]", "<|im_end|>", "a", "[unused4]"],
        )
        self.assertEqual(made.metadata["tokenizer.ggml.token_type"], [3, 5, 3, 1, 5])
        self.assertEqual(made.metadata["tokenizer.ggml.merges"], ["a b", "c d"])

    def test_fused_projections_are_taken_apart_in_order(self) -> None:
        shape = TINY_SHAPE
        query, key = shape.heads * shape.head_width, shape.kv_heads * shape.head_width
        weights = {"embedding.weight": numpy.zeros((4, shape.width)), "norm": numpy.zeros(shape.width)}
        for layer in range(shape.layers):
            for name in ("attention_norm", "query_norm", "key_norm", "feed_norm"):
                weights[f"blocks.{layer}.{name}"] = numpy.zeros(2)
            rows = numpy.arange(query + 2 * key)[:, None] * numpy.ones((1, shape.width))
            weights[f"blocks.{layer}.qkv.weight"] = rows
            weights[f"blocks.{layer}.gate_up.weight"] = numpy.zeros((2 * shape.feed_forward, shape.width))
            weights[f"blocks.{layer}.attention_out.weight"] = numpy.zeros((shape.width, query))
            weights[f"blocks.{layer}.down.weight"] = numpy.zeros((shape.width, shape.feed_forward))
        made = {tensor.name: tensor for tensor in tensors(weights, shape, TensorType.Q8_0)}
        self.assertEqual(len(made), 2 + 11 * shape.layers)
        self.assertEqual(made["blk.1.attn_q.weight"].values[0, 0], 0)
        self.assertEqual(made["blk.1.attn_k.weight"].values[0, 0], query)
        self.assertEqual(made["blk.1.attn_v.weight"].values[-1, 0], query + 2 * key - 1)
        self.assertEqual(made["blk.1.ffn_up.weight"].values.shape, (shape.feed_forward, shape.width))
        self.assertEqual(made["blk.1.attn_norm.weight"].kind, TensorType.F32)


class Refusals(unittest.TestCase):
    def read(self, content: bytes) -> GgufFile:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.gguf"
            path.write_bytes(content)
            return read_gguf(path)

    def test_another_kind_of_file_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "not a GGUF file"):
            self.read(b"PK\x03\x04")

    def test_a_cut_file_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "ends early"):
            self.read(MAGIC + b"\x03\x00")

    def test_a_header_that_promises_too_much_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "not plausible"):
            self.read(MAGIC + b"\x03\0\0\0" + b"\xff" * 16)


@unittest.skipUnless(SHIPPED.exists(), "the weights are not here")
class Shipped(unittest.TestCase):
    def test_the_shipped_file_is_what_the_card_says(self) -> None:
        read = read_gguf(SHIPPED)
        self.assertEqual(read.missing(), [])
        self.assertEqual(read.metadata["general.architecture"], "qwen3")
        self.assertEqual(read.metadata["qwen3.context_length"], 4_096)
        self.assertEqual(len(read.metadata["tokenizer.ggml.tokens"]), 16_384)
        self.assertEqual(round(read.parameters / 1e6, 2), 58.74)
        tokens = read.metadata["tokenizer.ggml.tokens"]
        self.assertEqual((tokens.index("yes"), tokens.index("no")), (941, 874))

    @unittest.skipIf(numpy is None, "numpy is not installed")
    def test_the_exporter_writes_the_template_of_the_shipped_file(self) -> None:
        self.assertEqual(read_gguf(SHIPPED).metadata["tokenizer.chat_template"], CHAT_TEMPLATE)


if __name__ == "__main__":
    unittest.main()
