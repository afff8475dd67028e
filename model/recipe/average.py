"""Averages two checkpoints and softens the answers: the shipped weights."""
import torch
from torch import Tensor

from .config import Recipe
from .network import load_checkpoint, save_checkpoint
from .tokenizer import Encoder


def average(recipe: Recipe, first: str, second: str, name: str) -> None:
    network, one = load_checkpoint(recipe.checkpoint(first), "cpu")
    _, other = load_checkpoint(recipe.checkpoint(second), "cpu")
    share, encoder = recipe.finish.first_share, Encoder(recipe.tokenizer)
    mean = {
        key: share * weight + (1 - share) * other["weights"][key] for key, weight in one["weights"].items()
    }
    soften(mean["embedding.weight"], encoder.yes, encoder.no, recipe.finish.temperature)
    network.load_state_dict(mean)
    save_checkpoint(recipe.checkpoint(name), network)
    print(f"{name}: mean of {first} and {second}, margins divided by {recipe.finish.temperature}", flush=True)


@torch.no_grad()
def soften(embedding: Tensor, yes: int, no: int, temperature: float) -> None:
    """Draws the rows of the two answers together, which divides logit(yes) - logit(no) by exactly the temperature.

    No other logit changes. As input the bare words hardly occur: inside a text they carry a leading space and are
    other tokens.
    """
    middle, half = (embedding[yes] + embedding[no]) / 2, (embedding[yes] - embedding[no]) / 2
    embedding[yes], embedding[no] = middle + half / temperature, middle - half / temperature
