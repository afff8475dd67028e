"""The trained weights, mixed with those that the training began from: what one of them has lost the other may still have."""
from collections.abc import Mapping

import numpy

from ..config import Recipe
from .config import START_SHARE

Weights = Mapping[str, numpy.ndarray]


def mix(trained: Weights, start: Weights, share: float) -> dict[str, numpy.ndarray]:
    """`share` is the part of `start`."""
    assert trained.keys() == start.keys()
    return {name: ((1 - share) * trained[name].astype("float32") + share * start[name].astype("float32")) for name in trained}


def average(recipe: Recipe) -> None:
    """Replaces the checkpoint; nothing to do for a training from the pretrained weights."""
    import torch

    start, checkpoint = recipe.work / "encoder-start.npz", recipe.checkpoint("encoder")
    if not start.exists():
        return
    trained = {name: value.numpy() for name, value in torch.load(checkpoint, map_location="cpu", weights_only=True).items()}
    mixed = mix(trained, dict(numpy.load(start)), START_SHARE)
    torch.save({name: torch.from_numpy(value).half() for name, value in mixed.items()}, checkpoint)
