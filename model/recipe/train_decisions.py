"""Stage 2: decision tuning on packed rows; each branch answers yes or no after evidence that is read once."""
import time
from dataclasses import dataclass
from pathlib import Path

import numpy
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask

from .config import Decisions, Recipe
from .network import Mask, Network, load_checkpoint, save_checkpoint, tree_mask
from .optimizers import make_optimizers, step_all
from .packing import NO_GROUP
from .schedule import steps_for, warm_then_fall
from .tokenizer import Encoder

LOG_EVERY = 25
GROUPED_WEIGHT = 1.5  # all branches of a choice together, against 1 for a predicate
COLUMNS = ("ids", "positions", "documents", "branches", "language")


@dataclass(frozen=True)
class Batch:
    """`answers_at` are places in the flattened batch; `groups` counts questions from zero, NO_GROUP for predicates."""

    ids: Tensor
    positions: Tensor
    documents: Tensor
    branches: Tensor
    language: Tensor
    answers_at: Tensor
    yes: Tensor
    groups: Tensor


class Rows:
    """The packed rows of every part, in a shuffled order."""

    def __init__(self, folder: Path, seed: int) -> None:
        parts = [numpy.load(path) for path in sorted(folder.glob("part*.npz"))]
        self._columns = {name: numpy.concatenate([part[name] for part in parts]) for name in COLUMNS}
        offsets = numpy.cumsum([0] + [len(part["ids"]) for part in parts])
        shifted = [part["answers"] + numpy.array([offset, 0, 0, 0]) for part, offset in zip(parts, offsets)]
        answers = numpy.concatenate(shifted)
        self._answers = answers[numpy.argsort(answers[:, 0], kind="stable")]
        self.count = len(self._columns["ids"])
        self._first = numpy.searchsorted(self._answers[:, 0], numpy.arange(self.count + 1))
        self._rng = numpy.random.default_rng(seed)
        self._order, self._at = self._rng.permutation(self.count), 0

    def next(self, count: int, device: str) -> Batch:
        if self._at + count > self.count:
            self._order, self._at = self._rng.permutation(self.count), 0
        rows = self._order[self._at : self._at + count]
        self._at += count
        return self._batch(rows, device)

    def _batch(self, rows: numpy.ndarray, device: str) -> Batch:
        length = self._columns["ids"].shape[1]
        at, yes, groups, offset = [], [], [], 0
        for place, row in enumerate(rows):
            answers = self._answers[self._first[row] : self._first[row + 1]]
            at.append(place * length + answers[:, 1])
            yes.append(answers[:, 2])
            numbers, offset = _count_from(answers[:, 3], offset)
            groups.append(numbers)
        moved = [
            torch.from_numpy(self._columns[name][rows].astype(numpy.int64)).to(device, non_blocking=True)
            for name in COLUMNS
        ]
        flat = [
            torch.from_numpy(numpy.concatenate(x).astype(numpy.int64)).to(device) for x in (at, yes, groups)
        ]
        return Batch(*moved[:4], moved[4].bool(), flat[0], flat[1].bool(), flat[2])


def _count_from(groups: numpy.ndarray, offset: int) -> tuple[numpy.ndarray, int]:
    """Group numbers of one row made consecutive from an offset, and the next free number."""
    numbers = numpy.full(len(groups), NO_GROUP)
    grouped = groups != NO_GROUP
    distinct, inverse = numpy.unique(groups[grouped], return_inverse=True)
    numbers[grouped] = inverse + offset
    return numbers, offset + len(distinct)


def decision_losses(
    margins: Tensor, answer_losses: Tensor, yes: Tensor, groups: Tensor
) -> tuple[Tensor, Tensor]:
    """(mean loss of the single answers, mean loss of the right option among the options of its question).

    `margins` are logit(yes) - logit(no), `answer_losses` the cross-entropy of the right word per branch. The branches
    of one question share a weight, so that a choice of fifty does not outweigh fifty predicates.
    """
    grouped = groups != NO_GROUP
    count = int(groups.max().item()) + 1 if bool(grouped.any()) else 0
    if count == 0:
        return answer_losses.mean(), margins.sum() * 0
    index = groups.clamp(min=0)
    sizes = torch.zeros(count, device=margins.device).index_add_(0, index, grouped.float())
    weights = torch.where(grouped, GROUPED_WEIGHT / sizes[index].clamp(min=1), torch.ones_like(margins))
    single = (answer_losses * weights).sum() / weights.sum()
    log_yes = F.logsigmoid(margins)
    mass = torch.where(grouped, log_yes.exp(), torch.zeros_like(log_yes))
    totals = torch.zeros(count, device=margins.device).index_add_(0, index, mass)
    right = grouped & yes
    return single, (totals.clamp(min=1e-30).log()[groups[right]] - log_yes[right]).mean()


class DecisionTrainer:
    def __init__(self, network: Network, encoder: Encoder, plan: Decisions, device: str) -> None:
        self._network, self._plan, self._device = network, plan, device
        self._yes, self._no = encoder.yes, encoder.no
        fast = device == "cuda"
        self._hidden = torch.compile(network.forward, dynamic=False) if fast else network.forward
        self._block_mask = torch.compile(create_block_mask) if fast else None

    def loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The loss, and (answers, groups, language, share of right answers) for the log."""
        with torch.autocast(self._device, torch.bfloat16):
            hidden = self._hidden(batch.ids, batch.positions, self._mask(batch)).flatten(0, 1)
            answers = self._network.logits(hidden[batch.answers_at]).float()
            language = self._network.logits(hidden[batch.language.flatten()]).float()
        word = torch.where(batch.yes, self._yes, self._no)
        margins = answers[:, self._yes] - answers[:, self._no]
        per_answer = F.cross_entropy(answers, word, reduction="none")
        single, group = decision_losses(margins, per_answer, batch.yes, batch.groups)
        following = torch.roll(batch.ids, -1, 1)[batch.language]
        spoken = F.cross_entropy(language, following) if len(following) else margins.sum() * 0
        right = ((margins > 0) == batch.yes).float().mean()
        total = single + self._plan.group_weight * group + self._plan.language_weight * spoken
        return total, torch.stack([single, group, spoken, right]).detach()

    def _mask(self, batch: Batch) -> Mask:
        if self._block_mask is None:
            return tree_mask(batch.documents, batch.branches)
        documents, branches = batch.documents, batch.branches

        def rule(b: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            inside = (branches[b, key] == 0) | (branches[b, key] == branches[b, query])
            return (query >= key) & (documents[b, query] == documents[b, key]) & inside

        rows, length = documents.shape
        return self._block_mask(rule, rows, None, length, length, device=self._device)


def train_decisions(recipe: Recipe, plan: Decisions, start: str, name: str) -> None:
    """Tunes checkpoint `start` on all rows and saves it as `name`."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    network, saved = load_checkpoint(recipe.checkpoint(start), device)
    optimizers = make_optimizers(network, recipe.language.muon_rate, recipe.language.adam_rate)
    if plan.keep_optimizer:
        for optimizer, state in zip(optimizers, saved["optimizers"]):
            optimizer.load_state_dict(state)
    rows = Rows(recipe.rows, plan.seed)
    trainer = DecisionTrainer(network, Encoder(recipe.tokenizer), plan, device)
    steps = steps_for(plan.epochs * rows.count, plan.rows_per_step)
    started, logged = time.time(), []
    for step in range(steps):
        loss, figures = trainer.loss(rows.next(plan.rows_per_step, device))
        loss.backward()
        step_all(optimizers, plan.peak * warm_then_fall(step, plan.warm_up_steps, steps))
        logged.append(figures)
        if (step + 1) % LOG_EVERY == 0 or step + 1 == steps:
            single, group, spoken, right = torch.stack(logged).mean(0).tolist()
            losses = f"answers {single:.4f} groups {group:.4f} language {spoken:.3f} right {right:.3f}"
            print(f"{name}: step {step + 1}/{steps} {losses} {time.time() - started:.0f} s", flush=True)
            logged = []
    save_checkpoint(recipe.checkpoint(name), network)
