"""Passages written for this recipe, each with statements and questions of its own.

A line of `banks/passages.jsonl` is {name, domain, pairs}; a pair is [text, [[statement, "e" | "n" | "c"], ...],
[[question, answer], ...]]: the statement is entailed by the text, neither, or contradicted. `banks/FORMAT.md` describes
the form.
"""
import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Iterator, Sequence

from ..examples import Example, Question, dress, predicate
from .inference import INITIAL, Relation, judge

KEPT_BACK_ONE_IN = 16  # passages that are never trained on
STATEMENTS_PER_EXAMPLE = (0, 1, 1, 2, 3)
QUESTIONS_PER_EXAMPLE = (1, 1, 2, 3)
UNANSWERABLE_SHARE = 0.15
# A name or a number: a question of its passage alone. "Was it paid?" of another text has an answer, no.
PARTICULAR = re.compile(r"\s[A-Z][a-z]|\d")


@dataclass(frozen=True)
class Passage:
    text: str
    statements: tuple[tuple[str, Relation], ...]
    questions: tuple[tuple[str, bool], ...]

    @property
    def is_kept_back(self) -> bool:
        return hashlib.sha256(self.text.encode()).digest()[0] % KEPT_BACK_ONE_IN == 0


def load(folder: Path) -> list[Passage]:
    with (folder / "passages.jsonl").open(encoding="utf8") as lines:
        return [_passage(*pair) for line in lines for pair in json.loads(line)["pairs"]]


def read_some(rng: Random, folder: Path, per_passage: int, which: slice) -> Iterator[Example]:
    found = [passage for passage in load(folder) if not passage.is_kept_back]
    for passage in found[which]:
        for _ in range(per_passage):
            yield from_passage(rng, passage, rng.choice(found))


def from_passage(rng: Random, passage: Passage, other: Passage) -> Example:
    """Some of a passage's questions, now and then with one of another passage, which this one does not answer."""
    questions: list[Question] = [
        judge(rng, text, relation) for text, relation in _some(rng, passage.statements, STATEMENTS_PER_EXAMPLE)
    ]
    questions += [predicate(text, answer) for text, answer in _some(rng, passage.questions, QUESTIONS_PER_EXAMPLE)]
    particular = [text for text, _ in other.questions if PARTICULAR.search(text)]
    if other is not passage and particular and rng.random() < UNANSWERABLE_SHARE:
        questions.append(predicate(rng.choice(particular), None))
    rng.shuffle(questions)
    return Example(dress(rng, passage.text), tuple(questions), "passage_written")


def plain_rows(passage: Passage) -> list[dict[str, Any]]:
    """The questions as lines of an evaluation set."""
    return [
        {"text": passage.text, "kind": "bool", "question": text, "options": ["yes", "no"], "gold": "yes" if answer else "no"}
        for text, answer in passage.questions
    ]


def _passage(text: str, statements: Sequence[Sequence[str]], questions: Sequence[tuple[str, bool]]) -> Passage:
    return Passage(
        text,
        tuple((statement, INITIAL[relation]) for statement, relation in statements),
        tuple((question, answer) for question, answer in questions),
    )


def _some(rng: Random, all_of_them: Sequence[Any], counts: Sequence[int]) -> list[Any]:
    return rng.sample(all_of_them, min(len(all_of_them), rng.choice(counts)))
