"""Muon for the matrices, AdamW for the embedding and the norms."""
from typing import Sequence

import torch
from torch import Tensor
from torch.optim import AdamW, Optimizer

from .network import Network

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # the usual quintic iteration, tuned for few steps
NEWTON_SCHULZ_STEPS = 5


class Muon(Optimizer):
    """Momentum whose update is made orthogonal; the pieces of a fused projection are treated as matrices of their own."""

    def __init__(self, matrices: Sequence[tuple[Tensor, list[int] | None]], rate: float, momentum: float = 0.95) -> None:
        super().__init__([matrix for matrix, _ in matrices], {"lr": rate, "momentum": momentum, "decay": 0.02})
        self._pieces = {matrix: pieces or [matrix.shape[0]] for matrix, pieces in matrices}

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]  # no closure: nothing here re-evaluates the loss
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[tuple[Tensor, Tensor]]] = {}
            for matrix in group["params"]:
                update = self._momentum(matrix, group["momentum"])
                matrix.mul_(1 - group["lr"] * group["decay"])
                pieces = self._pieces[matrix]
                for target, piece in zip(matrix.split(pieces), update.split(pieces)):
                    by_shape.setdefault(piece.shape, []).append((target, piece))
            # Pieces of one shape go through the iteration together.
            for (rows, columns), found in by_shape.items():
                scale = group["lr"] * max(1.0, rows / columns) ** 0.5
                updates = orthogonalise(torch.stack([piece for _, piece in found]))
                for (target, _), update in zip(found, updates):
                    target.add_(update.to(target.dtype), alpha=-scale)

    def _momentum(self, matrix: Tensor, momentum: float) -> Tensor:
        state = self.state[matrix]
        if "average" not in state:
            state["average"] = torch.zeros_like(matrix)
        state["average"].lerp_(matrix.grad, 1 - momentum)
        return matrix.grad.lerp(state["average"], momentum)


def orthogonalise(matrices: Tensor) -> Tensor:
    """The nearest (half-)orthogonal matrices, roughly, of a batch [n, rows, columns]."""
    a, b, c = NEWTON_SCHULZ
    x = matrices.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    x = x.transpose(-1, -2) if tall else x
    x = x / (x.float().norm(dim=(-2, -1), keepdim=True).to(x.dtype) + 1e-7)
    for _ in range(NEWTON_SCHULZ_STEPS):
        square = x @ x.transpose(-1, -2)
        x = a * x + (b * square + c * (square @ square)) @ x
    return x.transpose(-1, -2) if tall else x


def make_optimizers(network: Network, muon_rate: float, adam_rate: float) -> list[Optimizer]:
    matrices: list[tuple[Tensor, list[int] | None]] = []
    for block in network.blocks:
        matrices += [(block.qkv.weight, block.qkv_pieces), (block.gate_up.weight, block.gate_up_pieces)]
        matrices += [(block.attention_out.weight, None), (block.down.weight, None)]
    norms = [parameter for parameter in network.parameters() if parameter.ndim < 2]
    adam = AdamW(
        [
            {"params": [network.embedding.weight], "lr": adam_rate, "weight_decay": 0.01},
            {"params": norms, "lr": adam_rate, "weight_decay": 0.0},
        ],
        betas=(0.9, 0.95),
        eps=1e-10,
    )
    made: list[Optimizer] = [Muon(matrices, muon_rate), adam]
    for optimizer in made:
        for group in optimizer.param_groups:
            group["peak"] = group["lr"]
    return made


def step_all(optimizers: Sequence[Optimizer], share: float) -> None:
    """One step of each at this share of its peak rate, then the gradients are cleared."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * share
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
