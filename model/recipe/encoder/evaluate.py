"""Accuracy, calibration error and majority of an encoder's checkpoint on JSON Lines sets; see `recipe/sets.py` for their form."""
import json
from dataclasses import asdict, replace
from typing import Any, Sequence

import torch

from ..config import Recipe
from ..examples import Example, Option, Question
from ..scoring import is_predicate, judge, summarise
from ..sets import SCORES, read_all, read_sample
from .config import MODELS, TUNED_SHARE, Rows
from .network import Encoder, tree_mask, vectors
from .rows import COLUMNS, Encode, Item, encode, encoders_of, lay_out

BATCH_TOKENS_MAX = 16_384


def question_of(row: dict[str, Any]) -> Question:
    options, gold = row["options"], row["gold"]
    if is_predicate(options):
        return Question("predicate", row["question"], int(gold == "yes"))
    kind = "score" if row.get("kind") in SCORES else "choice"
    return Question(kind, row["question"], options.index(gold), tuple(Option(option) for option in options))


def items_of(tokens_of: Encode, rows: Sequence[dict[str, Any]]) -> list[Item]:
    limits = Rows(evidence_tokens_max=16_000, branch_tokens_max=4_000)
    return [encode(tokens_of, Example(row["text"], (question_of(row),), "evaluation"), limits) for row in rows]


@torch.no_grad()
def margins_of(network: Encoder, items: Sequence[Item], device: str) -> list[list[float]]:
    found: list[list[float]] = [[] for _ in items]
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
        of = vectors(hidden, documents, branches)
        tuned = (of(answers[:, [0, 4]]) * of(answers[:, [0, 5]])).sum(-1)
        margins = torch.where(answers[:, 5] > 0, margins + TUNED_SHARE * weights * (tuned - network.shape.similarity_centre), margins)
        for place, margin in zip(answers[:, 0].tolist(), margins.tolist()):
            found[batch[place]].append(margin)
    return found


def evaluate(recipe: Recipe) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    report, margins_by_set = evaluate_network(recipe, load(recipe, device), device)
    recipe.checkpoint("encoder").with_suffix(".evaluation.json").write_text(json.dumps(report, indent=1))
    # For the calibration, which needs no network.
    recipe.checkpoint("encoder").with_suffix(".margins.json").write_text(json.dumps(margins_by_set))


def evaluate_network(recipe: Recipe, network: Encoder, device: str) -> tuple[dict[str, Any], dict[str, list[list[float]]]]:
    """Figures and margins by set: all rows of kept-back sets, a sample of the others."""
    tokens_of, report, margins_by_set = encoders_of(recipe).own, {}, {}
    kept_back = [(path, read_all(path)) for path in sorted(recipe.kept_back.glob("*.jsonl"))]
    for path, rows in kept_back + [(path, read_sample(path)) for path in sorted(recipe.held_out.glob("*.jsonl"))]:
        found = margins_by_set[path.stem] = margins_of(network, items_of(tokens_of, rows), device)
        report[path.stem] = figures_of(rows, found)
        print(f"{path.stem:24} " + " ".join(f"{name} {value:.3f}" if isinstance(value, float) else f"{name} {value}" for name, value in report[path.stem].items()), flush=True)
    return report, margins_by_set


def figures_of(rows: Sequence[dict[str, Any]], margins: Sequence[Sequence[float]]) -> dict[str, Any]:
    outcomes = [judge(row["options"], row["gold"], found) for row, found in zip(rows, margins)]
    figures = asdict(summarise(outcomes, len(rows[0]["options"])))
    figures["unsure"] = sum(abs(o.confidence - 0.5) for o in outcomes) / len(outcomes)
    if "group" in rows[0]:
        wrong = {row["group"] for row, outcome in zip(rows, outcomes) if not outcome.right}
        groups = {row["group"] for row in rows}
        figures |= {"groups": len(groups), "whole": 1 - len(wrong) / len(groups)}
    return figures


def load(recipe: Recipe, device: str) -> Encoder:
    network = Encoder(replace(MODELS[recipe.model].shape, dropout=0.0))
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
