"""The mean of the trainings' weights, mixed with those that they began from: what one of them has lost the others may still have.

Then rounded to what the 8-bit file can keep: these are the weights of the model, whichever form it is exported in.
"""
from collections.abc import Mapping, Sequence

import numpy

from ..config import Recipe
from .config import MODELS, START_SHARE
from .packed import read
from .rounding import rounded

Weights = Mapping[str, numpy.ndarray]


def mean(trained: Sequence[Weights]) -> dict[str, numpy.ndarray]:
    return {name: numpy.mean([one[name].astype("float32") for one in trained], axis=0) for name in trained[0]}


def mix(trained: Weights, start: Weights, share: float) -> dict[str, numpy.ndarray]:
    """`share` is the part of `start`."""
    assert trained.keys() == start.keys()
    return {name: ((1 - share) * trained[name].astype("float32") + share * start[name].astype("float32")) for name in trained}


def average(recipe: Recipe) -> None:
    """Writes the checkpoint; a training from the pretrained weights has nothing to be mixed with."""
    import torch

    paths = [recipe.checkpoint(f"encoder-{seed}") for seed in MODELS[recipe.model].training.seeds]
    stored = [torch.load(path, map_location="cpu", weights_only=True) for path in paths]
    made = mean([{name: value.numpy() for name, value in one.items()} for one in stored])
    if recipe.start.exists():
        made = mix(made, read(recipe.start), START_SHARE)
    made = rounded(made, MODELS[recipe.model].shape.token_bits)
    torch.save({name: torch.from_numpy(value) for name, value in made.items()}, recipe.checkpoint("encoder"))
