"""Tunes the encoder on packed rows; the time decides when it ends, and it saves while it runs."""
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
from .config import Network, Training
from .losses import losses
from .network import SIMILARITY_CENTRE, Encoder, load_pretrained, tree_mask, vectors

COLUMNS = ("ids", "positions", "documents", "branches")
BATCHES_AHEAD = 6
REPORT_STEPS = 50
AVERAGE_STEPS = 10
STEPS_BEFORE_CLOCK = 3  # compiling does not count


class Batch(NamedTuple):
    ids: Tensor
    positions: Tensor
    documents: Tensor
    branches: Tensor
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


def parameter_groups(network: Encoder, training: Training) -> list[dict]:
    """The lower a layer, the smaller its rate; what is new has the full one. Vectors and biases do not decay."""
    layers = network.shape.layers
    made: dict[tuple[float, float], list] = {}
    for name, parameter in network.named_parameters():
        if name.startswith("blocks."):
            below = layers - 1 - int(name.split(".")[1])
        else:
            below = 0 if name.split(".")[0] in ("dense", "out", "gate") else layers
        decay = training.weight_decay if parameter.ndim > 1 else 0.0
        made.setdefault((training.layer_decay**below, decay), []).append(parameter)
    return [dict(params=p, weight_decay=decay, scale=scale) for (scale, decay), p in made.items()]


def step_losses(network: Encoder, forward, make_mask, batch: Batch, device: str, smoothing: float):
    ids, positions, documents, branches, answers, groups = batch
    if make_mask is None:
        mask = tree_mask(documents, branches)
    else:
        def sees(b, _h, q, k):
            same = documents[b, q] == documents[b, k]
            return same & ((branches[b, k] == 0) | (branches[b, k] == branches[b, q]))

        mask = make_mask(sees, ids.shape[0], None, ids.shape[1], ids.shape[1], device=device)
    with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
        hidden = forward(ids, positions, branches, mask)
        ends = hidden[answers[:, 0], answers[:, 1]]
        margins, weights = network.margins(ends), network.similarity_weights(ends)
    has_option = answers[:, 5] > 0
    evidence = vectors(hidden, documents, branches, answers[:, [0, 4]])
    options = vectors(hidden, documents, branches, answers[:, [0, 5]])
    cosines = (evidence * options).sum(-1)
    margins = torch.where(has_option, margins + weights * (cosines - SIMILARITY_CENTRE), margins)
    yes = answers[:, 2] > 0
    return losses(margins, yes, groups, cosines, has_option, smoothing), ((margins > 0) == yes).float().mean()


def train(recipe: Recipe, training: Training = Training(), shape: Network = Network(), steps_max: int | None = None) -> Path:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(training.seed)
    torch.set_float32_matmul_precision("high")
    network = load_pretrained(recipe.work / "encoder-init.npz", shape).to(device).train()
    average = {name: value.detach().clone().float() for name, value in network.state_dict().items()}
    optimizer = torch.optim.AdamW(parameter_groups(network, training), betas=(0.9, 0.98), fused=device == "cuda")
    rows = RowReader(recipe.work / "encoder-rows", training.seed)
    out = recipe.checkpoint("encoder")
    out.parent.mkdir(parents=True, exist_ok=True)
    print(json.dumps(asdict(training)), "rows", rows.count, "answers", len(rows.answers), flush=True)
    forward = torch.compile(network.forward, dynamic=False) if device == "cuda" else network.forward
    make_mask = torch.compile(create_block_mask) if device == "cuda" else None
    log, started, saved, reported = [], None, time.time(), time.time()
    for step, batch in enumerate(rows.ahead(training.rows_per_step), 1):
        found, right = step_losses(network, forward, make_mask, batch.to(device), device, training.smoothing)
        loss = found.single + training.group_weight * found.group + training.similarity_weight * found.similarity
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
            print(f"step {step} single {single:.4f} group {group:.4f} similarity {similarity:.4f} right {share:.3f} "
                  f"rate {rate:.2e} pass {passes:.2f} {took:.1f}s", flush=True)
        if ended or time.time() - saved > training.save_every_seconds:
            torch.save({name: value.half() for name, value in average.items()}, out)
            saved = time.time()
        if ended:
            return out
    raise AssertionError("rows never end")
