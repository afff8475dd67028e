"""Tunes the encoder on packed rows; the time decides when it ends, and it saves while it runs."""
import json
import queue
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Callable, Iterable, Iterator, NamedTuple

import numpy
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask

from ..config import Recipe
from ..examples import UNKNOWN, UNLABELLED
from .config import MODELS, Mixture, Model, Rows, Training
from .losses import Answers, Losses, losses
from .network import Encoder, load_pretrained, load_weights, tree_mask, vectors
from .rows import COLUMNS, HIDDEN, ROWS_BEGUN, ROWS_MADE, SEPARATOR, START, TWIN, rows_folder

BATCHES_AHEAD = 6
REPORT_STEPS = 50
AVERAGE_STEPS = 10


class Batch(NamedTuple):
    ids: Tensor
    positions: Tensor
    documents: Tensor
    branches: Tensor
    parents: Tensor
    answers: Tensor
    groups: Tensor
    pairs: Tensor
    terms: Tensor
    laws: Tensor
    families: Tensor
    twin: "Batch | None" = None  # in the tokens of a teacher that has others; its answers say where they are read

    def each(self, change: Callable[[Tensor], Tensor]) -> "Batch":
        return Batch(*map(change, self[:-1]), twin=self.twin and self.twin.each(change))

    def to(self, device: str) -> "Batch":
        return self.each(lambda tensor: tensor.to(device, non_blocking=True))


class RowReader:
    """Rows in a new order every pass."""

    def __init__(self, files: Iterable[Path], seed: int) -> None:
        parts = [numpy.load(path) for path in sorted(files)]
        self.columns = {name: numpy.concatenate([part[name] for part in parts]) for name in COLUMNS}
        self.count = len(self.columns["ids"])
        self.has_twins = TWIN + "ids" in parts[0]
        twins = [TWIN + name for name in COLUMNS] if self.has_twins else []
        self.columns |= {name: numpy.concatenate([part[name] for part in parts]) for name in twins}
        self.twin_answers = numpy.concatenate([part[TWIN + "answers"] for part in parts]) if self.has_twins else None
        self.answers, self.first_answer = self._of_rows("answers", parts)
        self.terms, self.first_term = self._of_rows("terms", parts)
        self.rng = numpy.random.default_rng(seed)
        self.order, self.at = self.rng.permutation(self.count), 0

    def _of_rows(self, name: str, parts) -> tuple[numpy.ndarray, numpy.ndarray]:
        """A table whose first column is the row, and where in it each row begins."""
        starts = numpy.cumsum([0] + [len(part["ids"]) for part in parts])
        table = numpy.concatenate([part[name] for part in parts])
        table[:, 0] += numpy.repeat(starts[:-1], [len(part[name]) for part in parts]).astype(table.dtype)
        return table, numpy.searchsorted(table[:, 0], numpy.arange(self.count + 1))

    def next(self, rows: int) -> Batch:
        if self.at + rows > self.count:
            self.order, self.at = self.rng.permutation(self.count), 0
        chosen = self.order[self.at : self.at + rows]
        self.at += rows
        answers, terms, answered, ruled = [], [], 0, 0
        for place, row in enumerate(chosen):
            mine = self.answers[self.first_answer[row] : self.first_answer[row + 1]].astype(numpy.int64)
            held = self.terms[self.first_term[row] : self.first_term[row + 1]].astype(numpy.int64)
            mine[:, 0] = place
            held[:, 1] += ruled
            held[:, 2] += answered
            answered += len(mine)
            ruled = held[-1, 1] + 1 if len(held) else ruled
            answers.append(mine)
            terms.append(held)
        joined, held = numpy.concatenate(answers), numpy.concatenate(terms)
        groups = numpy.full(len(joined), -1)
        grouped = joined[:, 3] >= 0
        groups[grouped] = numpy.unique(joined[grouped, 0] << 32 | joined[grouped, 3], return_inverse=True)[1]
        laws = held[numpy.unique(held[:, 1], return_index=True)[1]][:, 4:6] if len(held) else numpy.zeros((0, 2), numpy.int64)
        columns = [self._tensor(name, chosen) for name in COLUMNS]
        families = numpy.unique(numpy.append(0, joined[:, 6]), return_inverse=True)[1][1:] - 1
        made = (joined, groups, pairs_of(joined[:, 6], joined[:, 2]), held[:, 1:4].copy(), laws.copy(), families)
        batch = Batch(*columns, *map(torch.from_numpy, made))
        return batch._replace(twin=self._twin(batch, chosen)) if self.has_twins else batch

    def _tensor(self, name: str, chosen: numpy.ndarray) -> Tensor:
        return torch.from_numpy(self.columns[name][chosen].astype(numpy.int64))

    def _twin(self, batch: Batch, chosen: numpy.ndarray) -> Batch:
        places = numpy.concatenate([numpy.arange(self.first_answer[row], self.first_answer[row + 1]) for row in chosen])
        answers = batch.answers.clone()
        answers[:, [1, 4, 5]] = torch.from_numpy(self.twin_answers[places].astype(numpy.int64))
        named = {name: self._tensor(TWIN + name, chosen) for name in COLUMNS}
        return batch._replace(**named, answers=answers)

    def ahead(self, rows: int) -> Iterator[Batch]:
        waiting: queue.Queue[Batch] = queue.Queue(BATCHES_AHEAD)

        def fill() -> None:
            while True:
                batch = self.next(rows)
                waiting.put(batch.each(Tensor.pin_memory) if torch.cuda.is_available() else batch)

        threading.Thread(target=fill, daemon=True).start()
        while True:
            yield waiting.get()


def pairs_of(keys: numpy.ndarray, targets: numpy.ndarray) -> numpy.ndarray:
    """Branches with one key, the first of each pair right and the second wrong."""
    found, keyed = [numpy.zeros((0, 2), numpy.int64)], numpy.flatnonzero(keys)
    order = keyed[numpy.argsort(keys[keyed], kind="stable")]
    for same in numpy.split(order, numpy.flatnonzero(numpy.diff(keys[order])) + 1):
        yes, no = same[targets[same] == 1], same[targets[same] == 0]
        if len(yes) and len(no):
            found.append(numpy.stack([numpy.repeat(yes, len(no)), numpy.tile(no, len(yes))], 1))
    return numpy.concatenate(found)


def hide_words(batch: Batch, share: float) -> Batch:
    """In every other row a share of the evidence's words is hidden: banks are read many times, and not to be learned by heart."""
    ids, rows = batch.ids, len(batch.ids)
    is_evidence = torch.zeros(rows, int(batch.documents.max()) + 1, dtype=torch.bool, device=ids.device)
    is_evidence[batch.answers[:, 0], batch.answers[:, 4]] = True
    words = is_evidence.gather(1, batch.documents) & (batch.branches == 0) & (ids != START) & (ids != SEPARATOR)
    rates = share * (torch.rand(rows, 1, device=ids.device) < 0.5)
    return batch._replace(ids=torch.where(words & (torch.rand(ids.shape, device=ids.device) < rates), HIDDEN, ids))


def parameter_groups(network: Encoder, training: Training) -> list[dict]:
    """The lower a layer, the smaller its rate; what is new has the full one. Vectors and biases do not decay; what is not trained is in none."""
    layers = network.shape.layers
    made: dict[tuple[float, float], list] = {}
    for name, parameter in network.named_parameters():
        if not parameter.requires_grad:
            continue
        if name.startswith("blocks."):
            below = layers - 1 - int(name.split(".")[1])
        else:
            below = 0 if name.split(".")[0] in ("dense", "out", "gate", "recall") else layers
        decay = training.weight_decay if parameter.ndim > 1 else 0.0
        made.setdefault((training.layer_decay**below, decay), []).append(parameter)
    return [dict(params=p, weight_decay=decay, scale=scale) for (scale, decay), p in made.items()]


class Step(NamedTuple):
    losses: Losses
    right: Tensor


class Readable(NamedTuple):
    """A network and what runs it: compiled or not."""

    network: Encoder
    forward: Callable

    def margins(self, batch: Batch, mask: Tensor | BlockMask) -> tuple[Tensor, Tensor]:
        """Margins of the answers, and their cosines."""
        network, answers = self.network, batch.answers
        with torch.autocast(batch.ids.device.type, torch.bfloat16, enabled=batch.ids.is_cuda):
            hidden = self.forward(batch.ids, batch.positions, batch.branches, mask)
            ends = hidden[answers[:, 0], answers[:, 1]]
            margins, weights = network.margins(ends), network.similarity_weights(ends)
        found = vectors(hidden, batch.documents, batch.branches)
        cosines = (found(answers[:, [0, 4]]) * found(answers[:, [0, 5]])).sum(-1)
        return torch.where(answers[:, 5] > 0, margins + weights * (cosines - network.shape.similarity_centre), margins), cosines


def mask_of(batch: Batch, make_mask) -> Tensor | BlockMask:
    ids, documents, branches, parents = batch.ids, batch.documents, batch.branches, batch.parents
    if make_mask is None:
        return tree_mask(documents, branches, parents)

    def sees(b, _h, q, k):
        same = documents[b, q] == documents[b, k]
        seen = branches[b, k]
        return same & ((seen == 0) | (seen == branches[b, q]) | (seen == parents[b, q]))

    return make_mask(sees, ids.shape[0], None, ids.shape[1], ids.shape[1], device=ids.device)


def step_losses(student: Readable, teacher: Readable | None, make_mask, batch: Batch, training: Training, hidden_share: float) -> Step:
    """The student reads with words hidden, its teacher without; one of other tokens reads the batch's twin, where it has one."""
    mask, taught = mask_of(batch, make_mask), None
    has_own_tokens = teacher is not None and teacher.network.shape.vocabulary != student.network.shape.vocabulary
    if teacher is not None and not (has_own_tokens and batch.twin is None):
        read = batch.twin if has_own_tokens else batch
        with torch.no_grad():
            taught = teacher.margins(read, mask_of(read, make_mask) if has_own_tokens else mask)[0]
    margins, cosines = student.margins(hide_words(batch, hidden_share), mask)
    targets = batch.answers[:, 2]
    right = ((margins > 0) == (targets == 1))[(targets != UNKNOWN) & (targets != UNLABELLED)].float().mean()
    answers = Answers(targets, batch.groups, batch.answers[:, 5] > 0, batch.pairs, batch.terms, batch.laws, batch.families)
    return Step(losses(margins, cosines, answers, training.smoothing, taught), right)


def kinds_of_rows(mixture: Mixture) -> Iterator[str]:
    """Which rows each step reads: as evenly as the shares allow."""
    shares = asdict(mixture)
    owed = dict.fromkeys(shares, 0.0)
    while True:
        for kind, share in shares.items():
            owed[kind] += share
        kind = max(owed, key=owed.__getitem__)
        owed[kind] -= 1
        yield kind


def load_start(recipe: Recipe, network: Encoder) -> None:
    """Where a tuned network is given it is tuned further; otherwise the pretrained one."""
    load_weights(recipe.start, network) if recipe.start.exists() else load_pretrained(recipe.work / "encoder-init.npz", network)


def wait_for_rows(recipe: Recipe, mark: str) -> None:
    """The compilation may begin before the rows are made, and the training before all of them are; the stage `rows` leaves marks."""
    while not (recipe.work / mark).exists():
        time.sleep(1)


class Readers:
    """Batches of every kind of row that is there; those of all kinds once the stage `rows` has ended."""

    def __init__(self, recipe: Recipe, training: Training, seed: int) -> None:
        self.recipe, self.training, self.seed = recipe, training, seed
        wait_for_rows(recipe, ROWS_BEGUN)
        made = (recipe.work / ROWS_MADE).exists()
        self.batches = self._open(seed, "*" if made else f"{ROWS_BEGUN}*")
        if not made:
            threading.Thread(target=self._open_rest, daemon=True).start()

    def next(self, kind: str) -> tuple[str, Batch]:
        """A batch of this kind, or of the close rows while there are none of it."""
        batches = self.batches
        read = kind if kind in batches else "close"
        return read, next(batches[read])

    def _open(self, seed: int, names: str) -> dict[str, Iterator[Batch]]:
        files = {kind: list(rows_folder(self.recipe, kind).glob(f"{names}.npz")) for kind in asdict(self.training.mixture)}
        readers = {kind: RowReader(found, seed) for kind, found in files.items() if found}
        print("rows", {kind: reader.count for kind, reader in readers.items()}, flush=True)
        return {kind: reader.ahead(self.training.rows_per_step) for kind, reader in readers.items()}

    def _open_rest(self) -> None:
        wait_for_rows(self.recipe, ROWS_MADE)
        self.batches = self._open(self.seed + 1, "*")


def train(recipe: Recipe, seed: int, given: Model | None = None, steps_max: int | None = None) -> Path:
    model = given or MODELS[recipe.model]
    shape, training = model.shape, model.training
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(seed)
    torch.set_float32_matmul_precision("high")
    network = Encoder(shape).to(device).train()
    network.recall.requires_grad_(False)
    network.token.requires_grad_(shape.token_bits == 8)
    teaching = Encoder(model.teacher).to(device).eval() if training.is_taught else None
    optimizer = torch.optim.AdamW(parameter_groups(network, training), betas=(0.9, 0.98), fused=device == "cuda")
    out = recipe.checkpoint(f"encoder-{seed}")
    out.parent.mkdir(parents=True, exist_ok=True)
    compiles = training.compiled and device == "cuda"
    run = lambda one: Readable(one, torch.compile(one.forward, dynamic=False) if compiles else one.forward)
    student, teacher = run(network), teaching and run(teaching)
    make_mask = torch.compile(create_block_mask) if compiles else None
    if compiles:
        warm_up(student, teacher, make_mask, training, device)
    readers = Readers(recipe, training, seed)
    load_start(recipe, network)
    if teaching is not None:
        load_weights(recipe.teacher, teaching)
    average = {name: value.detach().clone().float() for name, value in network.state_dict().items()}
    print(json.dumps(asdict(training)), "seed", seed, flush=True)
    started = saved = reported = time.time()
    log: dict[str, list[Tensor]] = {kind: [] for kind in asdict(training.mixture)}
    for step, owed in enumerate(kinds_of_rows(training.mixture), 1):
        done = (time.time() - started) / training.seconds
        is_early = owed == "contrast" and done < training.contrast_from
        kind, batch = readers.next("close" if is_early else owed)
        hidden_share = 0.0 if kind == "contrast" else training.hidden_share
        found, right = step_losses(student, teacher, make_mask, batch.to(device), training, hidden_share)
        loss = found.single + sum(getattr(training, f"{name}_weight") * getattr(found, name) for name in found._fields[1:])
        loss.backward()
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
        log[kind].append(torch.stack([*(part.detach() for part in found), right]))
        ended = done >= 1 or step == steps_max
        if step % REPORT_STEPS == 0 or ended:
            for name, parts in log.items():
                if parts:
                    shown = zip((*Losses._fields, "right"), torch.stack(parts).mean(0).tolist())
                    print(f"step {step} {name:8} " + " ".join(f"{part} {value:.4f}" for part, value in shown), flush=True)
            took, reported = time.time() - reported, time.time()
            print(f"step {step} rate {rate:.2e} done {done:.3f} {took:.1f}s", flush=True)
            log = {name: [] for name in log}
        if ended or time.time() - saved > training.save_every_seconds:
            torch.save({name: value.half() for name, value in average.items()}, out)
            saved = time.time()
        if ended:
            return out
    raise AssertionError("rows never end")


def warm_up(student: Readable, teacher: Readable | None, make_mask, training: Training, device: str) -> None:
    """Compiles forwards and backwards on an empty row, before the rows are there."""
    empty = torch.zeros(training.rows_per_step, Rows().length, dtype=torch.int64, device=device)
    answers = torch.zeros(2, 7, dtype=torch.int64, device=device)
    none = [torch.zeros(0, width, dtype=torch.int64, device=device) for width in (2, 3, 2)]
    alone = torch.full((2,), -1, device=device)
    batch = Batch(empty, empty, empty, empty, empty, answers, alone, *none, alone)
    batch = batch._replace(twin=batch)
    step_losses(student, teacher, make_mask, batch, training, 0.0).losses.single.backward()
    student.network.zero_grad(set_to_none=True)
    print("compiled", flush=True)
