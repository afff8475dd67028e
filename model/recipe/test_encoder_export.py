"""The exported graph: what it computes, in one run and on a past."""
import dataclasses
import tempfile
import unittest
from pathlib import Path

try:
    import numpy
    import onnxruntime
    import torch

    from .encoder.config import Network
    from .encoder.export import export
    from .encoder.network import Encoder, tree_mask
    from .encoder.restore import restore
    from .encoder.rounding import rounded
except ModuleNotFoundError as missing:
    raise unittest.SkipTest(f"not installed: {missing.name}")

SHAPE = dataclasses.replace(
    Network(), vocabulary=40, layers=2, width=32, heads=4, feed_forward=64, evidence_positions=12, branch_positions=6, dropout=0.0
)
EVIDENCE, STEM, BRANCH = [5, 6, 7, 8, 9, 10, 11, 12], [13, 14], [15, 16, 17]


def weights_of(seed: int, is_relative: bool) -> dict:
    torch.manual_seed(seed)
    found = {name: value.numpy() for name, value in Encoder(SHAPE).state_dict().items()}
    found.pop("relative", None)
    if is_relative:
        positions = SHAPE.evidence_positions + SHAPE.branch_positions
        found["relative"] = numpy.random.default_rng(seed).normal(size=(SHAPE.heads, 2 * positions)).astype("float32")
    return found


class Exported:
    def __init__(self, weights: dict, kind: str, shape: "Network" = SHAPE) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "a.onnx"
            export(weights, file, kind, shape)
            self.session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])

    def run(self, parts, ends, past=None, rows: int = 1, padding: int = 0) -> dict:
        """`parts` of one row: tokens, group, parent and the position of the first; `rows` of the same."""
        size = SHAPE.width // SHAPE.heads
        empty = [(numpy.zeros((rows, SHAPE.heads, 1, size + 2), "float32"), numpy.zeros((rows, SHAPE.heads, 1, size), "float32"))]
        columns = {name: [] for name in ("ids", "positions", "group", "parent")}
        for tokens, group, parent, first in parts:
            places = [first + at for at in range(len(tokens))]
            here = [at % SHAPE.evidence_positions if group == 0 else SHAPE.evidence_positions + at % SHAPE.branch_positions for at in places]
            for name, values in zip(columns, (tokens, here, [group] * len(tokens), [parent] * len(tokens))):
                columns[name] += values
        for name, value in (("ids", 0), ("positions", 0), ("group", -1), ("parent", 0)):
            columns[name] += [value] * padding
        feeds = {name: numpy.array([values] * rows, "int32") for name, values in columns.items()}
        feeds["ends"] = numpy.array(ends, "int32")
        layers, positions = past or (empty * SHAPE.layers, numpy.zeros((rows, 1), "int32"))
        for layer, (keys, values) in enumerate(layers):
            feeds |= {f"past_keys.{layer}": keys, f"past_values.{layer}": values}
        feeds["past_positions"] = positions
        wanted = {value.name for value in self.session.get_inputs()}
        found = self.session.run(None, {name: value for name, value in feeds.items() if name in wanted})
        return dict(zip((value.name for value in self.session.get_outputs()), found)) | {"positions": feeds["positions"]}


WHOLE = [(EVIDENCE, 0, 0, 0), (STEM, 1, 0, 0), (BRANCH, 2, 1, len(STEM))]
END = [[0, len(EVIDENCE) + len(STEM) + len(BRANCH) - 1]]


class ExportedGraph(unittest.TestCase):
    def test_in_float32_it_is_the_network(self) -> None:
        network = Encoder(SHAPE)
        made = weights_of(1, is_relative=hasattr(network, "relative"))
        network.load_state_dict({name: torch.from_numpy(value) for name, value in made.items()}, strict=False)
        ids = torch.tensor([EVIDENCE + STEM + BRANCH])
        places = torch.tensor([[*range(len(EVIDENCE)), *range(len(STEM) + len(BRANCH))]])
        branches = torch.tensor([[0] * len(EVIDENCE) + [1] * len(STEM) + [2] * len(BRANCH)])
        parents = torch.tensor([[0] * (len(EVIDENCE) + len(STEM)) + [1] * len(BRANCH)])
        with torch.no_grad():
            hidden = network.eval()(ids, places, branches, tree_mask(torch.ones_like(ids), branches, parents))
            margin = network.margins(hidden[0, -1:]).item()
        self.assertAlmostEqual(Exported(made, "float32").run(WHOLE, END)["margins"].item(), margin, places=4)

    def test_a_branch_on_a_past_is_that_of_the_whole_row(self) -> None:
        for is_relative in (False, True):
            graph = Exported(weights_of(2, is_relative), "float32")
            whole = graph.run(WHOLE, END)["margins"].item()
            read = graph.run(WHOLE[:1], [[0, 0]])
            past = [(read[f"keys.{layer}"], read[f"values.{layer}"]) for layer in range(SHAPE.layers)]
            positions = numpy.pad(read["positions"], ((0, 0), (1, 0)))
            after = graph.run(WHOLE[1:], [[0, len(STEM) + len(BRANCH) - 1]], (past, positions))
            self.assertAlmostEqual(after["margins"].item(), whole, places=4)

    def test_the_relative_bias_counts(self) -> None:
        made = weights_of(3, is_relative=True)
        without = {name: value for name, value in made.items() if name != "relative"}
        apart = [Exported(weights, "float32").run(WHOLE, END)["margins"].item() for weights in (made, without)]
        self.assertGreater(abs(apart[0] - apart[1]), 1e-4)

    def test_with_8_bits_a_row_answers_the_same_alone_padded_and_beside_others(self) -> None:
        made = weights_of(4, is_relative=True)
        eight, exact = Exported(made, "int8"), Exported(made, "float32").run(WHOLE, END)["margins"].item()
        alone = eight.run(WHOLE, END)["margins"].item()
        self.assertAlmostEqual(alone, exact, delta=0.02)
        self.assertEqual(eight.run(WHOLE, END, padding=3)["margins"].item(), alone)
        self.assertEqual(set(eight.run(WHOLE, [[row, END[0][1]] for row in range(3)], rows=3)["margins"].tolist()), {alone})

    def test_a_table_of_four_bits_gives_what_it_was_rounded_to(self) -> None:
        made = rounded(weights_of(6, is_relative=False), token_bits=4)
        exact = Exported(made, "float32").run(WHOLE, END)["margins"].item()
        found = [Exported(made, "int8", dataclasses.replace(SHAPE, token_bits=bits)).run(WHOLE, END)["margins"].item() for bits in (4, 8)]
        self.assertAlmostEqual(found[0], exact, delta=0.02)
        # Steps of the 8-bit table are others than those that the weights have.
        self.assertAlmostEqual(found[0], found[1], delta=0.02)

    def test_an_8_bit_file_is_turned_back_into_its_weights(self) -> None:
        for bits in (8, 4):
            with self.subTest(bits=bits):
                self.turned_back(bits)

    def turned_back(self, bits: int) -> None:
        shape = dataclasses.replace(SHAPE, heads=Network().heads, width=96, token_bits=bits)  # `restore` knows as many heads
        made = rounded({name: value.numpy() for name, value in Encoder(shape).state_dict().items()}, bits)
        made["relative"] = numpy.random.default_rng(5).normal(size=made["relative"].shape).astype("float32")
        with tempfile.TemporaryDirectory() as folder:
            export(made, Path(folder) / "a.onnx", "int8", shape)
            restore(Path(folder) / "a.onnx", Path(folder) / "a.npz")
            with numpy.load(Path(folder) / "a.npz") as found:
                self.assertEqual(set(found), set(made))
                for name, array in made.items():
                    numpy.testing.assert_allclose(found[name], array, atol=1e-5, err_msg=name)


if __name__ == "__main__":
    unittest.main()
