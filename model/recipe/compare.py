"""Compares a checkpoint in full precision with its exported file in llama.cpp, prompt by prompt.

`write_reference` makes the prompts and the checkpoint's answers; `bench/score-prompts.ts` of the product scores the same
prompts with the exported file through the product's own engine; `report` sets the two side by side.
"""
import json
from pathlib import Path
from random import Random
from typing import Any, Sequence

from . import prompts
from .config import Recipe
from .scoring import predicate_probability

PROMPTS = 200
EVIDENCE_CHARACTERS_MAX = 6_000


def write_reference(recipe: Recipe, stage: str, path: Path) -> None:
    """{evidence, branch, tokens, margin} for a sample over the held-out sets, computed in 32-bit floats."""
    from .evaluate import branch_texts, margins, read_rows
    from .network import load_checkpoint
    from .tokenizer import Encoder

    network, _ = load_checkpoint(recipe.checkpoint(stage), "cpu")
    encoder, rng, sample = Encoder(recipe.tokenizer), Random(0), []
    rows = [row for file in sorted(recipe.held_out.glob("*.jsonl")) for row in read_rows(file)]
    for row in rng.sample(rows, min(PROMPTS, len(rows))):
        evidence, branch = row["text"].strip()[:EVIDENCE_CHARACTERS_MAX], rng.choice(branch_texts(row))
        sample.append((evidence, branch, encoder.ids(prompts.prefix(evidence)) + encoder.ids(branch + prompts.TAIL)))
    found = margins(network.eval(), encoder, [ids for _, _, ids in sample])
    content = [
        {"evidence": evidence, "branch": branch, "tokens": len(ids), "margin": margin}
        for (evidence, branch, ids), margin in zip(sample, found)
    ]
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf8")
    print(f"reference: {len(content)} prompts", flush=True)


def differences(reference: Sequence[dict[str, Any]], measured: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Token counts that differ, and how far the yes-probabilities are apart."""
    assert len(reference) == len(measured)
    pairs = [
        (predicate_probability(r["margin"]), predicate_probability(m["margin"])) for r, m in zip(reference, measured)
    ]
    apart = [abs(a - b) for a, b in pairs]
    return {
        "prompts": len(pairs),
        "token_counts_differ": sum(r["tokens"] != m["tokens"] for r, m in zip(reference, measured)),
        "probability_difference_max": max(apart),
        "probability_difference_mean": sum(apart) / len(apart),
        "decisions_changed": sum((a > 0.5) != (b > 0.5) for a, b in pairs),
    }


def report(reference: Path, measured: Path) -> None:
    found = differences(json.loads(reference.read_text("utf8")), json.loads(measured.read_text("utf8")))
    for name, value in found.items():
        print(f"{name}: {value:.6g}")
