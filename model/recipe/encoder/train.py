"""Tunes the encoder on packed rows; the time decides when it ends, and it saves while it runs."""
import itertools
import json
import queue
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Iterator, NamedTuple

import numpy
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask

from ..config import Recipe
from ..examples import UNKNOWN
from .config import SIMILARITY_CENTRE, Network, Training
from .losses import Losses, Recall, losses, recall_losses
from .network import Encoder, load_pretrained, load_weights, tree_mask, vectors
from .rows import COLUMNS, HIDDEN, SEPARATOR, START, rows_folder

BATCHES_AHEAD = 6
REPORT_STEPS = 50
AVERAGE_STEPS = 10
STEPS_BEFORE_CLOCK = 3  # compiling does not count


class Batch(NamedTuple):
    ids: Tensor
    positions: Tensor
    documents: Tensor
    branches: Tensor
    parents: Tensor
    answers: Tensor
    groups: Tensor

    def to(self, device: str) -> "Batch":
        return Batch(*(tensor.to(device, non_blocking=True) for tensor in self))


class RowReader:
    """Rows in a new order every pass."""

    def __init__(self, folder: Path, seed: int) -> None:
        parts = [numpy.load(path) for path in sorted(folder.glob("part*.npz"))]
        self.columns = {name: numpy.concatenate([part[name] for part in parts]) for name in COLUMNS}
        starts = numpy.cumsum([0] + [len(part["ids"]) for part in parts])
        shifted = [part["answers"] + numpy.array([start, 0, 0, 0, 0, 0]) for part, start in zip(parts, starts)]
        answers = numpy.concatenate(shifted)
        self.answers = answers[numpy.argsort(answers[:, 0], kind="stable")]
        self.count = len(self.columns["ids"])
        self.first = numpy.searchsorted(self.answers[:, 0], numpy.arange(self.count + 1))
        self.rng = numpy.random.default_rng(seed)
        self.order, self.at = self.rng.permutation(self.count), 0

    def next(self, rows: int) -> Batch:
        if self.at + rows > self.count:
            self.order, self.at = self.rng.permutation(self.count), 0
        chosen = self.order[self.at : self.at + rows]
        self.at += rows
        answers, groups, known = [], [], 0
        for place, row in enumerate(chosen):
            mine = self.answers[self.first[row] : self.first[row + 1]].copy()
            mine[:, 0] = place
            numbers, grouped = numpy.full(len(mine), -1), mine[:, 3] >= 0
            distinct, inverse = numpy.unique(mine[grouped, 3], return_inverse=True)
            numbers[grouped] = inverse + known
            known += len(distinct)
            answers.append(mine)
            groups.append(numbers)
        columns = [torch.from_numpy(self.columns[name][chosen].astype(numpy.int64)) for name in COLUMNS]
        joined = (numpy.concatenate(part).astype(numpy.int64) for part in (answers, groups))
        return Batch(*columns, *map(torch.from_numpy, joined))

    def ahead(self, rows: int) -> Iterator[Batch]:
        waiting: queue.Queue[Batch] = queue.Queue(BATCHES_AHEAD)

        def fill() -> None:
            while True:
                batch = self.next(rows)
                waiting.put(Batch(*(t.pin_memory() for t in batch)) if torch.cuda.is_available() else batch)

        threading.Thread(target=fill, daemon=True).start()
        while True:
            yield waiting.get()


def hide_words(batch: Batch, share: float) -> Batch:
    """In every other row a share of the evidence's words is hidden: banks are read many times, and not to be learned by heart."""
    ids, rows = batch.ids, len(batch.ids)
    is_evidence = torch.zeros(rows, int(batch.documents.max()) + 1, dtype=torch.bool, device=ids.device)
    is_evidence[batch.answers[:, 0], batch.answers[:, 4]] = True
    words = is_evidence.gather(1, batch.documents) & (batch.branches == 0) & (ids != START) & (ids != SEPARATOR)
    rates = share * (torch.rand(rows, 1, device=ids.device) < 0.5)
    return batch._replace(ids=torch.where(words & (torch.rand(ids.shape, device=ids.device) < rates), HIDDEN, ids))


def parameter_groups(network: Encoder, training: Training) -> list[dict]:
    """The lower a layer, the smaller its rate; what is new has the full one. Vectors and biases do not decay."""
    layers = network.shape.layers
    made: dict[tuple[float, float], list] = {}
    for name, parameter in network.named_parameters():
        if name.startswith("blocks."):
            below = layers - 1 - int(name.split(".")[1])
        else:
            below = 0 if name.split(".")[0] in ("dense", "out", "gate", "recall") else layers
        decay = training.weight_decay if parameter.ndim > 1 else 0.0
        made.setdefault((training.layer_decay**below, decay), []).append(parameter)
    return [dict(params=p, weight_decay=decay, scale=scale) for (scale, decay), p in made.items()]


class Step(NamedTuple):
    losses: Losses
    recall: Recall | None
    right: Tensor


def step_losses(network: Encoder, forward, teacher, make_mask, batch: Batch, device: str, smoothing: float) -> Step:
    """`teacher` gives the vectors that are to be recalled: a network's forward and its projection; None: not in this step."""
    ids, positions, documents, branches, parents, answers, groups = batch
    if make_mask is None:
        mask = tree_mask(documents, branches, parents)
    else:
        def sees(b, _h, q, k):
            same = documents[b, q] == documents[b, k]
            seen = branches[b, k]
            return same & ((seen == 0) | (seen == branches[b, q]) | (seen == parents[b, q]))

        mask = make_mask(sees, ids.shape[0], None, ids.shape[1], ids.shape[1], device=device)
    with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
        hidden = forward(ids, positions, branches, mask)
        ends = hidden[answers[:, 0], answers[:, 1]]
        margins, weights = network.margins(ends), network.similarity_weights(ends)
    has_option, of_evidence, of_option = answers[:, 5] > 0, answers[:, [0, 4]], answers[:, [0, 5]]
    found = vectors(hidden, documents, branches)
    cosines = (found(of_evidence) * found(of_option)).sum(-1)
    margins = torch.where(has_option, margins + weights * (cosines - SIMILARITY_CENTRE), margins)
    recall = None
    if teacher is not None:
        before_forward, project = teacher
        with torch.no_grad(), torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            before = before_forward(ids, positions, branches, mask)
            theirs = vectors(before, documents, branches, project)
        mine = vectors(hidden, documents, branches, network.recall)
        pairs = [(of(of_evidence), of(of_option)) for of in (mine, theirs)]
        recall = recall_losses(pairs[0], pairs[1], groups, has_option)
    targets = answers[:, 2]
    right = ((margins > 0) == (targets == 1))[targets != UNKNOWN].float().mean()
    return Step(losses(margins, targets, groups, cosines, has_option, smoothing), recall, right)


def train(recipe: Recipe, seed: int, training: Training = Training(), shape: Network = Network(), steps_max: int | None = None) -> Path:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(seed)
    torch.set_float32_matmul_precision("high")
    # Where a tuned network is given it is tuned further, and what it recalls is the vectors to recall.
    start = recipe.work / "encoder-start.npz"
    made = [load_weights(start, shape) if start.exists() else load_pretrained(recipe.work / "encoder-init.npz", shape) for _ in range(2)]
    network, before = made[0].to(device).train(), made[1].to(device).eval().requires_grad_(False)
    project = before.recall if start.exists() else None
    average = {name: value.detach().clone().float() for name, value in network.state_dict().items()}
    optimizer = torch.optim.AdamW(parameter_groups(network, training), betas=(0.9, 0.98), fused=device == "cuda")
    rows, close = (RowReader(rows_folder(recipe, close), seed) for close in (False, True))
    out = recipe.checkpoint(f"encoder-{seed}")
    out.parent.mkdir(parents=True, exist_ok=True)
    print(json.dumps(asdict(training)), "seed", seed, "rows", rows.count, "answers", len(rows.answers), "close rows", close.count, flush=True)
    compiles = training.compiled and device == "cuda"
    forward, before_forward = (torch.compile(m.forward, dynamic=False) if compiles else m.forward for m in (network, before))
    make_mask = torch.compile(create_block_mask) if compiles else None
    log, apart, started, saved, reported, done = [], [], None, time.time(), time.time(), 0.0
    batches, close_batches = (reader.ahead(training.rows_per_step) for reader in (rows, close))
    for step in itertools.count(1):
        batch = next(close_batches if done >= training.close_from and step % training.close_every == 0 else batches)
        teacher = (before_forward, project) if (step + 1) % training.recall_every == 0 else None
        read = hide_words(batch.to(device), training.hidden_share)
        found, recall, right = step_losses(network, forward, teacher, make_mask, read, device, training.smoothing)
        loss = found.single + training.group_weight * found.group + training.similarity_weight * found.similarity
        if recall is not None:
            loss = loss + training.recall_vector_weight * recall.vectors + training.recall_cosine_weight * recall.cosines
            apart = torch.stack([part.detach() for part in recall]).tolist() if step % REPORT_STEPS == 0 else apart
        loss.backward()
        if started is None and step > STEPS_BEFORE_CLOCK:
            started = time.time()
        done = 0.0 if started is None else (time.time() - started) / training.seconds
        rate = training.rate * min(1.0, step / training.warm_up_steps) * max(0.0, 1 - done)
        for group in optimizer.param_groups:
            group["lr"] = rate * group["scale"]
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % AVERAGE_STEPS == 0:
            keep = min(training.average**AVERAGE_STEPS, step / (step + 10 * AVERAGE_STEPS))
            with torch.no_grad():
                for name, value in network.state_dict().items():
                    average[name].lerp_(value.float(), 1 - keep)
        log.append(torch.stack([*(part.detach() for part in found), right]))
        ended = done >= 1 or step == steps_max
        if step % REPORT_STEPS == 0 or ended:
            single, group, similarity, share = torch.stack(log).mean(0).tolist()
            log = []
            passes = step * training.rows_per_step / rows.count
            took, reported = time.time() - reported, time.time()
            print(f"step {step} single {single:.4f} group {group:.4f} similarity {similarity:.4f} right {share:.3f} apart {apart} "
                  f"rate {rate:.2e} pass {passes:.2f} {took:.1f}s", flush=True)
        if ended or time.time() - saved > training.save_every_seconds:
            torch.save({name: value.half() for name, value in average.items()}, out)
            saved = time.time()
        if ended:
            return out
    raise AssertionError("rows never end")
