"""Stage 1: language modelling on windows of the corpus at a constant rate."""
import time
from pathlib import Path

import numpy
import torch
from torch import Tensor

from .config import Language, Recipe
from .network import Network, save_checkpoint
from .optimizers import Muon, make_optimizers, step_all
from .schedule import muon_momentum, steps_for, warm_then_constant

LOG_EVERY = 50


class Windows:
    """Fixed windows of the token files; the first `held_back` of the shuffled order are for validation."""

    def __init__(self, corpus: Path, length: int, held_back: int, seed: int) -> None:
        self._length = length
        self._files = [numpy.fromfile(path, dtype=numpy.uint16) for path in sorted(corpus.glob("*.bin"))]
        index = [(f, w) for f, ids in enumerate(self._files) for w in range((len(ids) - 1) // length)]
        if len(index) <= held_back:
            raise SystemExit(
                f"Cannot train: {len(index)} windows of {length} tokens; more than {held_back} are needed"
            )
        self._rng = numpy.random.default_rng(seed)
        order = self._rng.permutation(numpy.array(index))
        self.validation, self._training = order[:held_back], order[held_back:]
        self._at = 0

    def next(self, count: int) -> numpy.ndarray:
        """The next windows; the order is shuffled anew after each pass."""
        if self._at + count > len(self._training):
            self._training, self._at = self._rng.permutation(self._training), 0
        self._at += count
        return self._training[self._at - count : self._at]

    def load(self, windows: numpy.ndarray, device: str) -> tuple[Tensor, Tensor]:
        """Inputs and the same shifted by one."""
        n = self._length
        ids = numpy.stack([self._files[f][w * n : w * n + n + 1] for f, w in windows]).astype(numpy.int64)
        tensor = torch.from_numpy(ids).to(device, non_blocking=True)
        return tensor[:, :-1], tensor[:, 1:]


def train_language(recipe: Recipe) -> None:
    plan, device = recipe.language, "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(plan.seed)
    torch.set_float32_matmul_precision("high")
    windows = Windows(recipe.corpus, plan.window, plan.validation_windows, plan.seed)
    network = Network(recipe.shape).to(device)
    optimizers = make_optimizers(network, plan.muon_rate, plan.adam_rate)
    loss_of = (
        torch.compile(network.language_loss, dynamic=False) if device == "cuda" else network.language_loss
    )
    steps = steps_for(plan.tokens, plan.window * plan.windows_per_step)
    started, losses = time.time(), []
    for step in range(steps):
        with torch.autocast(device, torch.bfloat16):
            loss = loss_of(*windows.load(windows.next(plan.windows_per_step), device))
        loss.backward()
        for optimizer in optimizers:
            if isinstance(optimizer, Muon):
                optimizer.param_groups[0]["momentum"] = muon_momentum(step)
        step_all(optimizers, warm_then_constant(step, plan.warm_up_steps))
        losses.append(loss.detach())
        if (step + 1) % LOG_EVERY == 0 or step + 1 == steps:
            mean = torch.stack(losses).mean().item()
            print(
                f"language: step {step + 1}/{steps} loss {mean:.4f} {time.time() - started:.0f} s", flush=True
            )
            losses = []
    validation = _validate(network, windows, plan, device)
    print(f"language: validation loss {validation:.4f}", flush=True)
    states = [optimizer.state_dict() for optimizer in optimizers]
    save_checkpoint(recipe.checkpoint("language"), network, optimizers=states, validation=validation)


@torch.no_grad()
def _validate(network: Network, windows: Windows, plan: Language, device: str) -> float:
    losses = []
    for start in range(0, len(windows.validation), plan.windows_per_step):
        with torch.autocast(device, torch.bfloat16):
            batch = windows.load(windows.validation[start : start + plan.windows_per_step], device)
            losses.append(network.language_loss(*batch).item())
    return float(numpy.mean(losses))
