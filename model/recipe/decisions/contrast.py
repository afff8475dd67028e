"""Groups of texts that differ in a word or a clause, so that answers flip: written for this project, computed, or from public sets.

`banks/contrast.jsonl` has a group a line: {set, domain, phenomenon, texts, questions: [[text, [true | false | null per text]]],
choices: [[text, [options], [index or null per text]]], scales: [[text, [levels, lowest first], [index or null per text]]]}; null: the
text does not tell. What `computed.groups` makes has the same form and the name of its template. A public set is gzipped lines of
{evidence, group, items: [{q, kind: "yesno" | "choice", options, answer}]}.
"""
import gzip
import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Iterator, Sequence

from ..examples import Example, Question, choice, dress, predicate, score
from .written_passages import PARTICULAR

# Whole groups, templates and scales that are never trained on. Of the written ones they are of the sets that no earlier training had.
KEPT_BACK_SETS = ("time", "quantity", "roles", "refusal", "scales")
KEPT_BACK_ONE_IN = 8
KEPT_BACK_TEMPLATES_ONE_IN = 12
KEPT_BACK_COMPUTED = 500
KEPT_BACK_SEED = 1_000_003
TEXTS_MAX = 8  # of a public group
QUESTIONS_MAX = 8  # of a text of a public set without groups


@dataclass(frozen=True)
class Group:
    """`questions`: one row per question with the text's own form of it, None where the text does not have it. `line`: of the bank."""

    texts: tuple[str, ...]
    questions: tuple[tuple[Question | None, ...], ...]
    source: str
    line: int = 0

    @property
    def examples(self) -> list[Example]:
        asked = ([row[place] for row in self.questions] for place in range(len(self.texts)))
        return [Example(text, tuple(q for q in mine if q), self.source) for text, mine in zip(self.texts, asked)]


def group_of(record: dict[str, Any], source: str, line: int = 0) -> Group:
    rows = [tuple(predicate(text, holds) for holds in answers) for text, answers in record["questions"]]
    for make, name in ((choice, "choices"), (score, "scales")):
        for text, options, right in record.get(name, ()):
            rows.append(tuple(None if place is None else make(text, options, place) for place in right))
    return Group(tuple(record["texts"]), tuple(rows), source, line)


def written(banks: Path, kept_back: bool, english: bool = True) -> Iterator[Group]:
    with (banks / "contrast.jsonl").open(encoding="utf8") as lines:
        for number, line in enumerate(lines):
            record = json.loads(line)
            if record["set"].startswith("lang-") != english and is_kept_back(record) == kept_back:
                yield group_of(record, f"contrast_{record['set']}", number)


def is_kept_back(record: dict[str, Any]) -> bool:
    return record["set"] in KEPT_BACK_SETS and _draw(record["texts"][0]) % KEPT_BACK_ONE_IN == 0


def computed(seed: int, count: int, kept_back: bool) -> Iterator[Group]:
    """`count`: how many are made, of which those of the other templates are left out."""
    from . import computed as made

    for record in made.groups(seed, count):
        if (_draw(record["template"]) % KEPT_BACK_TEMPLATES_ONE_IN == 0) == kept_back:
            yield group_of(record, "computed_" + record["template"].split("/")[0])


def public_groups(file: Path, texts_max: int, draw: int = 0) -> Iterator[Group]:
    """Of a set's groups as many as have so many texts together."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in _rows(file):
        if row.get("group"):
            found[row["group"]].append(row)
    groups, used = [rows for rows in found.values() if 2 <= len(rows) <= TEXTS_MAX], 0
    Random(f"{draw} {file.name}").shuffle(groups)
    for rows in groups:
        used += len(rows)
        if used > texts_max:
            return
        asked: dict[tuple[str, str], list[Question | None]] = {}
        for place, row in enumerate(rows):
            for item in row["items"]:
                asked.setdefault((item["q"], item["kind"]), [None] * len(rows))[place] = _question(item)
        yield Group(tuple(row["evidence"] for row in rows), tuple(map(tuple, asked.values())), _named(file))


def public_examples(file: Path, texts_max: int, draw: int = 0) -> Iterator[Example]:
    """The texts of a set that are in no group."""
    rows, rng = [row for row in _rows(file) if not row.get("group")], Random(f"{draw} {file.name}")
    rng.shuffle(rows)
    for row in rows[:texts_max]:
        made = [_question(item) for item in row["items"]]
        rng.shuffle(made)
        yield Example(dress(rng, row["evidence"]), tuple(made[:QUESTIONS_MAX]), _named(file))


def strange_questions(groups: Sequence[Group]) -> list[str]:
    """Questions of one group alone: a text of another does not tell."""
    return [row[0].text for group in groups for row in group.questions if row[0] and row[0].kind == "predicate" and PARTICULAR.search(row[0].text)]


def _question(item: dict[str, Any]) -> Question:
    if item["kind"] == "yesno":
        return predicate(item["q"], item["answer"])
    return choice(item["q"], item["options"], item["options"].index(item["answer"]))


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf8") as lines:
        yield from map(json.loads, lines)


def _named(file: Path) -> str:
    return "clean_" + file.name.split(".")[0]


def _draw(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
