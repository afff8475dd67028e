"""Examples -> packed rows of WordPiece tokens.

A row holds documents side by side. Evidence is a document, its branches continue it. What the branches of a choice or score have
in common, their stem, is read once: a branch of which they are the children. Every option of a choice is one more
document of its own, read alone for the similarity. Answers are [row, column, target, group, evidence, option]: the last two
are numbers of documents in the row, option 0 where there is none.
"""
import pickle
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Callable, Mapping, Sequence

from ..config import Recipe
from ..examples import Example
from ..packing import NO_GROUP, PADDING_DOCUMENT, QUESTIONS_MAX, pack
from ..rows import _examples, _jobs
from . import texts
from .config import Rows

START, SEPARATOR, HIDDEN, PADDING = 101, 102, 103, 0
NO_OPTION = 0
COLUMNS = ("ids", "positions", "documents", "branches", "parents")
CLOSE_SOURCES = ("bank_", "passage_written", "clinc150", "goemotions", "snli", "mnli", "scitail", "sick")
Encode = Callable[[Sequence[str]], list[list[int]]]


@dataclass(frozen=True)
class Branch:
    ids: Sequence[int]
    target: int
    group: int
    """The option's own text as a document; None where the question is no choice."""
    option: Sequence[int] | None


@dataclass(frozen=True)
class Item:
    ids: Sequence[int]
    branches: Sequence[Branch]
    stems: Mapping[int, Sequence[int]]  # by group

    @property
    def size(self) -> int:
        stems = sum(len(self.stems[group]) for group in {b.group for b in self.branches} - {NO_GROUP})
        return len(self.ids) + stems + sum(len(b.ids) + len(b.option or ()) for b in self.branches)


@dataclass
class Row:
    ids: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    documents: list[int] = field(default_factory=list)
    branches: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)  # the branch that is seen too; 0 where there is none
    answers: list[tuple[int, int, int, int, int]] = field(default_factory=list)


def encode(tokens_of: Encode, made: Example, limits: Rows = Rows()) -> Item:
    all_texts, about, stems = [made.evidence[: limits.evidence_characters_max]], [], {}
    for number, question in enumerate(made.questions):
        group = NO_GROUP if question.kind == "predicate" else number
        is_choice = question.kind == "choice"
        if (stem := texts.stem(question)) is not None:
            stems[group] = tokens_of([stem])[0][: limits.branch_tokens_max]
        for index, (text, target) in enumerate(zip(texts.branches(question), texts.targets(question))):
            all_texts.append(text)
            about.append((target, group, texts.described(question.options[index]) if is_choice else None))
    options = tokens_of([text for _, _, text in about if text is not None])
    found, taken = tokens_of(all_texts), iter(options)
    branches = [
        Branch(
            [*ids[: limits.branch_tokens_max], SEPARATOR],
            target,
            group,
            None if text is None else [START, *next(taken)[: limits.option_tokens_max], SEPARATOR],
        )
        for ids, (target, group, text) in zip(found[1:], about)
    ]
    return Item([START, *found[0][: limits.evidence_tokens_max], SEPARATOR], branches, stems)


def fit(item: Item, length: int) -> Item | None:
    """The item with whole questions dropped from the end until it fits; None when none is left."""
    branches = list(item.branches)
    while branches and replace(item, branches=branches).size > length:
        last = branches[-1].group
        branches = branches[:-1] if last == NO_GROUP else [b for b in branches if b.group != last]
    return replace(item, branches=branches) if branches else None


def lay_out(items: Sequence[Item], length: int) -> Row:
    row, document = Row(), 0
    for number, item in enumerate(items, 1):
        document += 1
        evidence = document
        _append(row, item.ids, evidence, 0)
        ends, parents, place = [], {NO_GROUP: 0}, 0
        for branch in item.branches:
            stem = item.stems.get(branch.group, ())
            if branch.group not in parents:
                place += 1
                parents[branch.group] = place
                _append(row, stem, evidence, place)
            place += 1
            _append(row, branch.ids, evidence, place, parents[branch.group], len(stem))
            ends.append(len(row.ids) - 1)
        for end, branch in zip(ends, item.branches):
            option = NO_OPTION
            if branch.option is not None:
                document += 1
                option = document
                _append(row, branch.option, option, 0)
            group = NO_GROUP if branch.group == NO_GROUP else number * QUESTIONS_MAX + branch.group
            row.answers.append((end, branch.target, group, evidence, option))
    spare = length - len(row.ids)
    assert spare >= 0 and document < PADDING_DOCUMENT
    # The padding is one more document, whose number stays small: vectors are summed by number.
    _append(row, [PADDING] * spare, document + 1, 0)
    return row


def _append(row: Row, ids: Sequence[int], document: int, branch: int, parent: int = 0, offset: int = 0) -> None:
    row.ids += ids
    row.positions += range(offset, offset + len(ids))
    row.documents += [document] * len(ids)
    row.branches += [branch] * len(ids)
    row.parents += [parent] * len(ids)


def wordpiece(file: Path) -> Encode:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda all_texts: [e.ids for e in tokenizer.encode_batch(list(all_texts), add_special_tokens=False)]


def rows_folder(recipe: Recipe, close: bool = False) -> Path:
    """Close: only what is near to callers' questions, for the end of the training."""
    return recipe.work / ("encoder-rows-close" if close else "encoder-rows")


def build_rows(recipe: Recipe, limits: Rows = Rows()) -> None:
    folders = [rows_folder(recipe, close) for close in (False, True)]
    for folder in folders:
        (folder / "dealt").mkdir(parents=True, exist_ok=True)
    jobs = [(recipe, n, job, limits) for n, job in enumerate(_jobs(recipe)) if job[0] != "documents"]
    with ProcessPoolExecutor(recipe.processes) as pool:
        sources = sum(pool.map(_deal, jobs), Counter[str]())
        parts = [(folder, part, limits) for folder in folders for part in range(limits.parts)]
        counts = list(pool.map(_write_part, parts))
    print(f"rows: {sources.total()} items", flush=True)
    for folder, found in zip(folders, (counts[: limits.parts], counts[limits.parts :])):
        rows, answers = (sum(column) for column in zip(*found))
        print(f"{folder.name}: {rows} rows, {answers} branches", flush=True)


def _deal(job: tuple[Recipe, int, object, Rows]) -> Counter[str]:
    recipe, number, what, limits = job
    tokens_of, sources, rng = wordpiece(recipe.wordpiece), Counter[str](), Random(number)
    hands: dict[bool, list[list[Item]]] = {close: [[] for _ in range(limits.parts)] for close in (False, True)}
    for made in _examples(recipe, what):
        if item := fit(encode(tokens_of, made, limits), limits.length):
            part = rng.randrange(limits.parts)
            hands[False][part].append(item)
            if made.source.startswith(CLOSE_SOURCES):
                hands[True][part].append(item)
            sources[made.source] += 1
    for close, dealt in hands.items():
        for part, hand in enumerate(dealt):
            path = rows_folder(recipe, close) / "dealt" / f"{part:03d}-{number:04d}.pickle"
            path.write_bytes(pickle.dumps(hand))
    return sources


def _write_part(job: tuple[Path, int, Rows]) -> tuple[int, int]:
    import numpy

    folder, part, limits = job
    dealt = sorted((folder / "dealt").glob(f"{part:03d}-*.pickle"))
    items = [item for path in dealt for item in pickle.loads(path.read_bytes())]
    Random(part).shuffle(items)
    rows = [lay_out(row, limits.length) for row in pack(items, limits.length)]
    answers = [(number, *answer) for number, row in enumerate(rows) for answer in row.answers]

    def column(name: str):
        return numpy.array([getattr(row, name) for row in rows], numpy.uint16).reshape(-1, limits.length)

    numpy.savez(
        folder / f"part{part:03d}.npz",
        **{name: column(name) for name in COLUMNS},
        answers=numpy.array(answers, numpy.int32).reshape(-1, 6),
    )
    for path in dealt:
        path.unlink()
    return len(rows), len(answers)
