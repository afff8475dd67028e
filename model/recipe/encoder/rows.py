"""Examples -> packed rows of tokens.

A row holds documents side by side. Evidence is a document, its branches continue it. What the branches of a choice or score have
in common, their stem, is read once: a branch of which they are the children. Every option of a choice is one more
document of its own, read alone for the similarity. Answers are [row, column, target, group, evidence, option, key]: evidence and
option are numbers of documents in the row, option 0 where there is none; branches of one row with the same key above 0 are
the same question about texts that differ in little. Terms are [row, law, answer, sign, total, at most]: what `forms` says of the
probabilities of a row's answers.

Where a teacher has other tokens than its student, a row has a twin: the same items in the teacher's tokens, with as many answers.
"""
import pickle
from collections import Counter, defaultdict, deque
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Callable, Iterable, Iterator, Mapping, Sequence

from .. import languages, languages_computed
from ..config import Recipe
from ..decisions import contrast
from ..examples import Example, Question, dress, predicate
from ..jobs import example_jobs, examples_of
from ..overlap import Overlap
from ..packing import pack
from . import texts
from .config import MODELS, Rows
from .forms import Formed, of_branches, with_forms

START, SEPARATOR, HIDDEN, PADDING = 101, 102, 103, 0
NO_GROUP, NO_OPTION = -1, 0
QUESTIONS_MAX = 64  # of an example; makes the numbers of groups unique within a row
DOCUMENTS_MAX = 60_000  # of a row
COLUMNS = ("ids", "positions", "documents", "branches", "parents")
TWIN = "twin_"  # before the names of a twin's columns
KINDS = ("general", "close", "contrast", "languages")
CLOSE_SOURCES = ("bank_", "passage_written", "clinc150", "goemotions", "snli", "mnli", "scitail", "sick", "clean_")
# How many questions get other forms of themselves beside them.
FORMS_SHARE = {"general": 0.05, "close": 0.25, "contrast": 0.22, "languages": 0.0}
# Every group, each time asked in other forms; those that an earlier training had, the first so many lines of the bank, less often.
WRITTEN_TIMES, WRITTEN_TIMES_AGAIN, WRITTEN_BEFORE = 5, 3, 2_869
WRITTEN_PARTS = 4
LANGUAGES_TIMES, LANGUAGES_PARTS = 6, 8
LANGUAGES_COMPUTED_PER_PART = 3_500
COMPUTED_PARTS = 12
COMPUTED_PER_PART = 1_700
PUBLIC_TEXTS_MAX = 5_000  # of a public set, at most 5 % of all of their texts
STRANGE_SHARE = 0.15  # of groups, with a question that none of their texts answers
# Where there is a teacher: how many texts are also asked, without an answer, what others of their source were asked.
BORROWED_SHARE, BORROWED, BORROWED_FROM, BORROWED_OPTIONS_MAX = 0.3, 2, 64, 8
KEYS_PER_JOB = 1 << 20
LANGUAGE_JOBS = ("languages", "languages_computed")
FIRST_JOBS = ("contrast", "banks", "labelled", "written")
# Marks in the working folder: what is made first is there, and everything is.
ROWS_BEGUN, ROWS_MADE = "rows-begun", "rows-made"
Encode = Callable[[Sequence[str]], list[list[int]]]


@dataclass(frozen=True)
class Encoders:
    """Of a student, and of its teacher where that has other tokens."""

    own: Encode
    teacher: Encode | None = None


@dataclass(frozen=True)
class Branch:
    ids: Sequence[int]
    target: int
    group: int
    """The option's own text as a document; None where the question is no choice."""
    option: Sequence[int] | None
    key: int = 0


BranchLaw = tuple[tuple[tuple[int, int], ...], int, bool]


@dataclass(frozen=True)
class Item:
    ids: Sequence[int]
    branches: Sequence[Branch]
    stems: Mapping[int, Sequence[int]]  # by group
    laws: Sequence[BranchLaw] = ()
    twin: "Item | None" = None

    @property
    def size(self) -> int:
        """The row's and its twin's are equally long."""
        return max(self.own_size, self.twin.size if self.twin else 0)

    @property
    def own_size(self) -> int:
        stems = sum(len(self.stems[group]) for group in {b.group for b in self.branches} - {NO_GROUP})
        return len(self.ids) + stems + sum(len(b.ids) + len(b.option or ()) for b in self.branches)


@dataclass
class Row:
    ids: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    documents: list[int] = field(default_factory=list)
    branches: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)  # the branch that is seen too; 0 where there is none
    answers: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    terms: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    twin: "Row | None" = None


@dataclass(frozen=True)
class Bundle:
    """Items that stand in one row."""

    items: tuple[Item, ...]
    size: int


def bundle(items: Iterable[Item]) -> Bundle:
    made = tuple(items)
    return Bundle(made, sum(item.size for item in made))


def encode_formed(encoders: Encoders, formed: Formed, limits: Rows = Rows()) -> Item:
    item = encode(encoders.own, formed.made, limits)
    twin = encode(encoders.teacher, formed.made, limits) if encoders.teacher else None
    counts = [len(question.options) or 1 for question in formed.made.questions]
    return replace(item, laws=of_branches(formed.laws, counts), twin=twin)


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
    fitted = item
    while fitted.branches and fitted.size > length:
        groups = [branch.group for branch in fitted.branches]
        fitted = _first_branches(fitted, len(groups) - 1 if groups[-1] == NO_GROUP else groups.index(groups[-1]))
    laws = [law for law in item.laws if all(branch < len(fitted.branches) for branch, _ in law[0])]
    return replace(fitted, laws=laws) if fitted.branches else None


def _first_branches(item: Item, count: int) -> Item:
    return replace(item, branches=item.branches[:count], twin=item.twin and _first_branches(item.twin, count))


def lay_out(items: Sequence[Item], length: int) -> Row:
    row, document = Row(), 0
    for number, item in enumerate(items, 1):
        document += 1
        evidence = document
        _append(row, item.ids, evidence, 0)
        ends, parents, place, answered = [], {NO_GROUP: 0}, 0, len(row.answers)
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
            row.answers.append((end, branch.target, group, evidence, option, branch.key))
        for terms, total, at_most in item.laws:
            law = 1 + (row.terms[-1][0] if row.terms else -1)
            row.terms += [(law, answered + place, sign, total, int(at_most)) for place, sign in terms]
    spare = length - len(row.ids)
    assert spare >= 0 and document < DOCUMENTS_MAX
    # The padding is one more document, whose number stays small: vectors are summed by number.
    _append(row, [PADDING] * spare, document + 1, 0)
    twins = [item.twin for item in items if item.twin]
    row.twin = lay_out(twins, length) if twins else None
    return row


def _append(row: Row, ids: Sequence[int], document: int, branch: int, parent: int = 0, offset: int = 0) -> None:
    row.ids += ids
    row.positions += range(offset, offset + len(ids))
    row.documents += [document] * len(ids)
    row.branches += [branch] * len(ids)
    row.parents += [parent] * len(ids)


def encoders_of(recipe: Recipe) -> Encoders:
    model = MODELS[recipe.model]
    if not model.is_multilingual:
        return Encoders(tokens_by(recipe.wordpiece))
    return Encoders(tokens_by(recipe.unigram), tokens_by(recipe.wordpiece) if model.has_twins else None)


def tokens_by(file: Path) -> Encode:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda all_texts: [e.ids for e in tokenizer.encode_batch(list(all_texts), add_special_tokens=False)]


def rows_folder(recipe: Recipe, kind: str = "general") -> Path:
    return recipe.work / f"encoder-rows-{kind}"


def build_rows(recipe: Recipe, limits: Rows = Rows()) -> None:
    """Every job makes examples or groups and deals them out, then every part packs what it was dealt.

    Contrast groups and what is close to callers' questions come first: a training may begin with them while the rest is made.
    """
    for kind in KINDS:
        (rows_folder(recipe, kind) / "dealt").mkdir(parents=True, exist_ok=True)
    numbered = [(recipe, number, job, limits) for number, job in enumerate(jobs(recipe))]
    first = [job for job in numbered if job[2][0] in FIRST_JOBS]
    with ProcessPoolExecutor(recipe.processes) as pool:
        for mark, some in ((ROWS_BEGUN, first), (ROWS_MADE, [job for job in numbered if job not in first])):
            found = list(pool.map(_deal, some))
            parts = [(rows_folder(recipe, kind), f"{mark}{part:03d}", limits) for kind in KINDS for part in range(limits.parts)]
            counts = list(pool.map(_write_part, parts))
            (recipe.work / mark).touch()
            taken, left_out = (sum(column, Counter[str]()) for column in zip(*found))
            print(f"{mark}: {taken.total()} items; left out for sharing text with an evaluation set: {left_out.total()} {dict(left_out.most_common(12))}", flush=True)
            for place, kind in enumerate(KINDS):
                rows, answers, terms = (sum(column) for column in zip(*counts[place * limits.parts : (place + 1) * limits.parts]))
                print(f"{kind}: {rows} rows, {answers} branches, {terms} terms of laws", flush=True)


def jobs(recipe: Recipe) -> list:
    public = sorted((recipe.sources / "clean").glob("*.jsonl.gz"))
    made: list = [("written", part) for part in range(WRITTEN_PARTS)] if (recipe.banks / "contrast.jsonl").exists() else []
    made += [("public_groups", path) for path in public] + [("public", path) for path in public]
    made += [("computed", part) for part in range(COMPUTED_PARTS)]
    if MODELS[recipe.model].training.mixture.languages > 0:
        made += [(name, part) for name in LANGUAGE_JOBS for part in range(LANGUAGES_PARTS)]
    return example_jobs(recipe) + [("contrast", job) for job in made]


def bundles_of(recipe: Recipe, number: int, job, limits: Rows) -> Iterator[tuple[str, str, str, Bundle | None]]:
    """Kind of row, source, evidence and what is to stand in one row."""
    draw = recipe.selection.draw
    encoders, rng = encoders_of(recipe), Random(f"{draw} {number}")
    if job[0] != "contrast" or job[1][0] == "public":
        examples = examples_of(recipe, job) if job[0] != "contrast" else contrast.public_examples(job[1][1], PUBLIC_TEXTS_MAX, draw)
        lender = Lender(rng) if MODELS[recipe.model].training.is_taught else None
        for made in examples:
            kind = "close" if made.source.startswith(CLOSE_SOURCES) else "general"
            formed = with_forms(rng, made, FORMS_SHARE[kind])
            item = fit(encode_formed(encoders, lender.lend(formed) if lender else formed, limits), limits.length)
            yield kind, made.source, made.evidence, item and bundle([item])
        return
    keys = iter(range(number * KEYS_PER_JOB + 1, (number + 1) * KEYS_PER_JOB))
    groups = list(_groups(recipe, *job[1]))
    strange = contrast.strange_questions(groups) if job[1][0] != "public_groups" else []
    kind = "languages" if job[1][0] in LANGUAGE_JOBS else "contrast"
    if kind == "languages":
        # A teacher reads English alone.
        encoders = Encoders(encoders.own)
    for group in groups:
        evidence = "\n".join(group.texts)
        yield kind, group.source, evidence, bundle_of(rng, encoders, group, strange, keys, limits, FORMS_SHARE[kind])


class Lender:
    """Questions of one text asked of another of its source: what the answer is only a teacher says."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.asked: dict[str, deque[Question]] = defaultdict(lambda: deque(maxlen=BORROWED_FROM))

    def lend(self, formed: Formed) -> Formed:
        rng, made = self.rng, formed.made
        before, texts_here = self.asked[made.source], {question.text for question in made.questions}
        strange = [question for question in before if question.text not in texts_here] if rng.random() < BORROWED_SHARE else []
        lent = [replace(question, is_labelled=False) for question in rng.sample(strange, min(BORROWED, len(strange)))]
        before += [question for question in rng.sample(made.questions, 1) if len(question.options) <= BORROWED_OPTIONS_MAX]
        return replace(formed, made=replace(made, questions=(*made.questions, *lent)))


def _groups(recipe: Recipe, name: str, what: Path | int) -> Iterator[contrast.Group]:
    match name, what:
        case "written", int() as part:
            for group in list(contrast.written(recipe.banks, kept_back=False))[part::WRITTEN_PARTS]:
                yield from [group] * (WRITTEN_TIMES_AGAIN if group.line < WRITTEN_BEFORE else WRITTEN_TIMES)
        case "public_groups", Path() as file:
            yield from contrast.public_groups(file, PUBLIC_TEXTS_MAX, recipe.selection.draw)
        case "computed", int() as part:
            yield from contrast.computed(recipe.selection.draw * COMPUTED_PARTS + part, COMPUTED_PER_PART, kept_back=False)
        case "languages", int() as part:
            texts_of = [group for made in languages.written(recipe.banks) for group in (made.own, made.english)]
            for group in [*texts_of, *contrast.written(recipe.banks, kept_back=False, english=False)][part::LANGUAGES_PARTS]:
                yield from [group] * LANGUAGES_TIMES
        case "languages_computed", int() as part:
            yield from languages_computed.groups(recipe.selection.draw * LANGUAGES_PARTS + part, LANGUAGES_COMPUTED_PER_PART)
        case _:
            raise AssertionError(f"no such job: {name}")


def bundle_of(
    rng: Random, encoders: Encoders, group: contrast.Group, strange: Sequence[str], keys: Iterator[int], limits: Rows, forms_share: float
) -> Bundle | None:
    """All texts of a group, dressed and asked alike, in one row; without other forms where they do not fit, and None where that is not enough."""
    return _bundle_of(rng, encoders, group, strange, keys, limits, forms_share) or _bundle_of(rng, encoders, group, (), keys, limits, 0.0)


def _bundle_of(
    rng: Random, encoders: Encoders, group: contrast.Group, strange: Sequence[str], keys: Iterator[int], limits: Rows, forms_share: float
) -> Bundle | None:
    seed, key_of, items = rng.random(), {}, []
    added = (predicate(rng.choice(strange), None),) if strange and rng.random() < STRANGE_SHARE else ()
    for made in group.examples:
        alike = Random(seed)
        asked = [*made.questions, *added]
        alike.shuffle(asked)
        formed = with_forms(alike, replace(made, evidence=dress(Random(seed), made.evidence), questions=tuple(asked)), forms_share)
        item = encode_formed(encoders, formed, limits)
        named = [(q.kind, q.text, o and o.value) for q in formed.made.questions for o in (q.options or (None,))]
        branches = []
        for branch, name in zip(item.branches, named, strict=True):
            key_of[name] = key_of.get(name) or next(keys)
            branches.append(replace(branch, key=key_of[name]))
        if branches:
            items.append(replace(item, branches=branches))
    made = bundle(items)
    return made if items and made.size <= limits.length else None


@lru_cache(maxsize=1)
def _held_out(folder: Path) -> Overlap:
    """Made once in each process."""
    return Overlap.of_folder(folder)


def _deal(job: tuple[Recipe, int, object, Rows]) -> tuple[Counter[str], Counter[str]]:
    """How many of each source were dealt out, and how many were left out since an evaluation text stands in them."""
    recipe, number, what, limits = job
    taken, left_out, rng = Counter[str](), Counter[str](), Random(number)
    held_out = _held_out(recipe.held_out)
    hands: dict[str, list[list[Bundle]]] = {kind: [[] for _ in range(limits.parts)] for kind in KINDS}
    for kind, source, evidence, made in bundles_of(recipe, number, what, limits):
        if made is None:
            continue
        if held_out.touches(evidence):
            left_out[source] += 1
            continue
        hands[kind][rng.randrange(limits.parts)].append(made)
        taken[source] += 1
    for kind, dealt in hands.items():
        for part, hand in enumerate(dealt):
            path = rows_folder(recipe, kind) / "dealt" / f"{part:03d}-{number:04d}.pickle"
            path.write_bytes(pickle.dumps(hand))
    return taken, left_out


def _write_part(job: tuple[Path, str, Rows]) -> tuple[int, int, int]:
    import numpy

    folder, name, limits = job
    dealt = sorted((folder / "dealt").glob(f"{name[-3:]}-*.pickle"))
    bundles = [made for path in dealt for made in pickle.loads(path.read_bytes())]
    Random(name).shuffle(bundles)
    if not bundles:
        return 0, 0, 0
    rows = [lay_out([item for made in row for item in made.items], limits.length) for row in pack(bundles, limits.length)]
    answers = [(number, *answer) for number, row in enumerate(rows) for answer in row.answers]
    terms = [(number, *term) for number, row in enumerate(rows) for term in row.terms]

    numpy.savez(
        folder / f"{name}.npz",
        **columns_of(rows),
        **twin_columns(rows),
        answers=numpy.array(answers, numpy.int32).reshape(-1, 7),
        terms=numpy.array(terms, numpy.int32).reshape(-1, 6),
    )
    for path in dealt:
        path.unlink()
    return len(rows), len(answers), len(terms)


def columns_of(rows: Sequence[Row]) -> dict:
    """Tokens need more than 16 bits where there are many."""
    import numpy

    return {name: numpy.array([getattr(row, name) for row in rows], numpy.int32 if name == "ids" else numpy.uint16) for name in COLUMNS}


def twin_columns(rows: Sequence[Row]) -> dict:
    """With, of each answer: where it is read, the document of its evidence and that of its option."""
    import numpy

    twins = [row.twin for row in rows if row.twin]
    if not twins:
        return {}
    assert len(twins) == len(rows)
    answers = [(end, evidence, option) for row in twins for end, _, _, evidence, option, _ in row.answers]
    columns = {TWIN + name: column for name, column in columns_of(twins).items()}
    return {**columns, TWIN + "answers": numpy.array(answers, numpy.int32).reshape(-1, 3)}
