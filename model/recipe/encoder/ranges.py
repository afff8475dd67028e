"""The largest magnitude that each product reads, for the 8-bit form; and the weights as an archive of NumPy."""
import numpy
import torch

from ..config import Recipe
from .evaluate import load
from .network import tree_mask
from .rounding import PRODUCTS
from .rows import COLUMNS, rows_folder

ROWS = 48  # of training, 4,096 tokens each


@torch.no_grad()
def activation_ranges(recipe: Recipe) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network, largest = load(recipe, device), {}

    def watch(name: str):
        def hook(_module, inputs) -> None:
            largest[name] = max(largest.get(name, 0.0), inputs[0].abs().max().item())

        return hook

    for number, block in enumerate(network.blocks):
        for reader in PRODUCTS:
            getattr(block, reader).register_forward_pre_hook(watch(f"blocks.{number}.{reader}"))
    part = numpy.load(sorted(rows_folder(recipe).glob("part*.npz"))[0])
    for row in range(min(ROWS, len(part["ids"]))):
        columns = (torch.from_numpy(part[name][row : row + 1].astype("int64")).to(device) for name in COLUMNS)
        ids, positions, documents, branches, parents = columns
        network(ids, positions, branches, tree_mask(documents, branches, parents))
    numpy.savez(recipe.work / "encoder-ranges.npz", **largest)
    state = torch.load(recipe.checkpoint("encoder"), map_location="cpu", weights_only=True)
    numpy.savez(recipe.work / "encoder-weights.npz", **{name: value.numpy() for name, value in state.items()})
