"""Accuracy, calibration error and majority of an encoder's checkpoint on JSON Lines sets; see `recipe/evaluate.py` for their form."""
import json
from dataclasses import asdict
from typing import Any, Sequence

import torch

from ..config import Recipe
from ..evaluate import SCORES, line, read_rows
from ..examples import Example, Option, Question
from ..scoring import is_predicate, judge, summarise
from .config import RECALLED_WEIGHT, SIMILARITY_CENTRE, TUNED_SHARE, Network, Rows
from .network import Encoder, tree_mask, vectors
from .rows import COLUMNS, Encode, Item, encode, lay_out, wordpiece

BATCH_TOKENS_MAX = 32_768


def question_of(row: dict[str, Any]) -> Question:
    options, gold = row["options"], row["gold"]
    if is_predicate(options):
        return Question("predicate", row["question"], int(gold == "yes"))
    kind = "score" if row.get("kind") in SCORES else "choice"
    return Question(kind, row["question"], options.index(gold), tuple(Option(option) for option in options))


@torch.no_grad()
def margins_of(network: Encoder, tokens_of: Encode, rows: Sequence[dict[str, Any]], device: str) -> list[list[float]]:
    limits = Rows(evidence_tokens_max=16_000, branch_tokens_max=4_000)
    items = [encode(tokens_of, Example(row["text"], (question_of(row),), "evaluation"), limits) for row in rows]
    found: list[list[float]] = [[] for _ in rows]
    for batch in _batches(items):
        length = max(items[i].size for i in batch)
        laid = [lay_out([items[i]], length) for i in batch]
        columns = (torch.tensor([getattr(row, name) for row in laid], device=device) for name in COLUMNS)
        ids, positions, documents, branches, parents = columns
        answers = torch.tensor([(place, *answer) for place, row in enumerate(laid) for answer in row.answers], device=device)
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            hidden = network(ids, positions, branches, tree_mask(documents, branches, parents))
            ends = hidden[answers[:, 0], answers[:, 1]]
            margins, weights = network.margins(ends), network.similarity_weights(ends)
        found_by = (vectors(hidden, documents, branches, project) for project in (None, network.recall))
        tuned, recalled = ((of(answers[:, [0, 4]]) * of(answers[:, [0, 5]])).sum(-1) for of in found_by)
        similar = TUNED_SHARE * weights * (tuned - SIMILARITY_CENTRE) + RECALLED_WEIGHT * (recalled - SIMILARITY_CENTRE)
        margins = torch.where(answers[:, 5] > 0, margins + similar, margins)
        for place, margin in zip(answers[:, 0].tolist(), margins.tolist()):
            found[batch[place]].append(margin)
    return found


def evaluate(recipe: Recipe) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network = load(recipe, device)
    tokens_of, report, margins_by_set = wordpiece(recipe.wordpiece), {}, {}
    for path in [*sorted(recipe.kept_back.glob("*.jsonl")), *sorted(recipe.held_out.glob("*.jsonl"))]:
        rows = read_rows(path)
        found = margins_by_set[path.stem] = margins_of(network, tokens_of, rows, device)
        outcomes = [judge(row["options"], row["gold"], margins) for row, margins in zip(rows, found)]
        figures = summarise(outcomes, len(rows[0]["options"]))
        report[path.stem] = asdict(figures)
        print(f"{path.stem:24} {figures.rows:5} rows {figures.options:3} options  {line(figures)}", flush=True)
    recipe.checkpoint("encoder").with_suffix(".evaluation.json").write_text(json.dumps(report, indent=1))
    # For the calibration, which needs no network.
    recipe.checkpoint("encoder").with_suffix(".margins.json").write_text(json.dumps(margins_by_set))


def load(recipe: Recipe, device: str) -> Encoder:
    network = Encoder(Network(dropout=0.0))
    stored = torch.load(recipe.checkpoint("encoder"), map_location="cpu", weights_only=True)
    network.load_state_dict({name: value.float() for name, value in stored.items()})
    return network.to(device).eval()


def _batches(items: Sequence[Item]) -> list[list[int]]:
    batches: list[list[int]] = []
    for index in sorted(range(len(items)), key=lambda i: items[i].size):
        if batches and (len(batches[-1]) + 1) * items[index].size <= BATCH_TOKENS_MAX:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches
