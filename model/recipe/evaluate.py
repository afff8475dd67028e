"""Measures a checkpoint on held-out sets with the server's prompts and the server's rule.

Sets are JSON Lines {text, question, options, gold}; the options yes and no are a predicate, any others a choice.
"""
import json
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any, Sequence

import torch

from . import prompts
from .config import Recipe
from .examples import Option
from .network import Network, load_checkpoint
from .scoring import Figures, is_predicate, judge, summarise
from .tokenizer import Encoder

ROWS_MAX = 500
MANY_OPTIONS = 20
MANY_OPTIONS_ROWS_MAX = 300
EVIDENCE_TOKENS_MAX = 3_600
BATCH_TOKENS_MAX = 48_000


def evaluate(recipe: Recipe, stage: str) -> None:
    """Prints a line per set and writes all figures beside the checkpoint."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network, _ = load_checkpoint(recipe.checkpoint(stage), device)
    encoder, report = Encoder(recipe.tokenizer), {}
    for path in sorted(recipe.held_out.glob("*.jsonl")):
        figures = evaluate_set(network.eval(), encoder, read_rows(path))
        report[path.stem] = asdict(figures)
        print(
            f"{path.stem:24} {figures.rows:5} rows {figures.options:3} options  {line(figures)}", flush=True
        )
    recipe.checkpoint(stage).with_suffix(".evaluation.json").write_text(json.dumps(report, indent=1))


def line(figures: Figures) -> str:
    return (
        f"accuracy {figures.accuracy:.3f} majority {figures.majority:.3f} ECE {figures.calibration_error:.3f}"
    )


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The same sample of a set every time."""
    # Not splitlines: texts hold other characters that it takes for the end of a line.
    rows = [json.loads(text) for text in path.read_text(encoding="utf8").rstrip("\n").split("\n")]
    Random(0).shuffle(rows)
    many = len(rows[0]["options"]) > MANY_OPTIONS
    return rows[: MANY_OPTIONS_ROWS_MAX if many else ROWS_MAX]


def branch_texts(row: dict[str, Any]) -> list[str]:
    if is_predicate(row["options"]):
        return [prompts.predicate(row["question"])]
    return [prompts.choice(row["question"], Option(option)) for option in row["options"]]


def evaluate_set(network: Network, encoder: Encoder, rows: Sequence[dict[str, Any]]) -> Figures:
    sequences, owners = [], []
    for number, row in enumerate(rows):
        evidence = encoder.ids(prompts.prefix(row["text"].strip()))[:EVIDENCE_TOKENS_MAX]
        for text in branch_texts(row):
            sequences.append((evidence + encoder.ids(text + prompts.TAIL))[: network.shape.context])
            owners.append(number)
    of_row: list[list[float]] = [[] for _ in rows]
    for owner, margin in zip(owners, margins(network, encoder, sequences)):
        of_row[owner].append(margin)
    outcomes = [judge(row["options"], row["gold"], found) for row, found in zip(rows, of_row)]
    return summarise(outcomes, len(rows[0]["options"]))


@torch.no_grad()
def margins(network: Network, encoder: Encoder, sequences: Sequence[Sequence[int]]) -> list[float]:
    """logit(yes) - logit(no) after each sequence, in batches of like length."""
    device = network.norm.device
    answers = network.embedding.weight[[encoder.yes, encoder.no]].float()
    found = [0.0] * len(sequences)
    for batch in _batches(sequences):
        longest = max(len(sequences[i]) for i in batch)
        ids = torch.zeros(len(batch), longest, dtype=torch.long)
        for place, i in enumerate(batch):
            ids[place, : len(sequences[i])] = torch.tensor(sequences[i])
        ends = torch.tensor([len(sequences[i]) - 1 for i in batch], device=device)
        # Padding stands after the end of a sequence, where causal attention never looks.
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            hidden = network(ids.to(device))[torch.arange(len(batch), device=device), ends]
        logits = hidden.float() @ answers.T
        for i, margin in zip(batch, (logits[:, 0] - logits[:, 1]).tolist()):
            found[i] = margin
    return found


def _batches(sequences: Sequence[Sequence[int]]) -> list[list[int]]:
    batches: list[list[int]] = []
    for i in sorted(range(len(sequences)), key=lambda i: len(sequences[i])):
        if batches and (len(batches[-1]) + 1) * len(sequences[i]) <= BATCH_TOKENS_MAX:
            batches[-1].append(i)
        else:
            batches.append([i])
    return batches
