"""Makes every decision example, tokenises it and writes the packed rows of stage 2."""
import json
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random
from typing import Iterator, Sequence

from . import prompts
from .config import Recipe, Selection
from .corpus import chat
from .decisions import instructions, labelled, messages, passages, records, tickets, topics
from .examples import Example
from .packing import Branch, Item, fit, lay_out, pack
from .prepare import Task, load_tasks
from .shards import list_shards, read_shard
from .tokenizer import SPECIAL_TOKENS, Encoder

PARTS = 48
OTHER_DOCUMENTS = 8
# Sets close to what callers ask; they may go in whole.
KEY_TASKS = "snli mnli scitail sick perspectrum anli jigsaw paws mrpc creak amazonfood polarity dbpedia squad pubmedqa".split()
# Entailment tasks are asked twice, in other words.
TWICE_TASKS = "snli mnli scitail sick".split()
# Rewriting tasks whose inputs are far apart from their labels: a little is enough.
THIN_TASKS = ("task197_", "task198_", "task203_", "task204_")
THIN_CAP = 1_000
GREETINGS = (
    ("Hello", "Hello! How can I help you today?"),
    ("Hi", "Hi! What can I do for you?"),
    (
        "Who are you?",
        "I am a small language model that runs on this server. I am best at short questions about a given text.",
    ),
    (
        "What can you do?",
        "I can judge a text you give me: answer yes or no questions, choose among options, and rate on a scale.",
    ),
    ("Thank you!", "You're welcome!"),
    ("Good morning", "Good morning! How can I help?"),
    ("How are you?", "I am doing well, thank you. How can I help you?"),
    ("Bye", "Goodbye!"),
    ("Are you a human?", "No, I am a small language model."),
    ("Help", "Sure. Tell me what you need help with."),
)
GREETING_REPEATS = 120
PLAIN_SHARES = (("wikipedia", 250), ("gutenberg", 60))  # documents per shard


def build_rows(recipe: Recipe) -> None:
    recipe.rows.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(recipe.processes) as pool:
        examples = [made for part in pool.map(_make, _jobs(recipe)) for made in part]
        Random(1).shuffle(examples)
        documents = list(plain_documents(recipe.shards))
        sources = Counter(made.source for made in examples)
        (recipe.rows / "sources.json").write_text(json.dumps(dict(sources.most_common())), encoding="utf8")
        jobs = [(recipe, part, examples[part::PARTS], documents[part::PARTS]) for part in range(PARTS)]
        counts = list(pool.map(_write_part, jobs))
    rows, answers = (sum(column) for column in zip(*counts))
    print(
        f"rows: {len(examples)} examples, {len(documents)} documents, {rows} rows, {answers} branches",
        flush=True,
    )


Job = tuple[str, Recipe, Path | int]


def _jobs(recipe: Recipe) -> list[Job]:
    made: list[Job] = [("labelled", recipe, 0)]
    made += [("instructions", recipe, path) for path in list_shards(recipe.shards, "instructions")]
    made += [
        ("passages", recipe, path) for n in ("wikipedia", "arxiv") for path in list_shards(recipe.shards, n)
    ]
    return made + [("generated", recipe, part) for part in range(recipe.selection.generated_parts)]


def _make(job: Job) -> list[Example]:
    match job:
        case ("labelled", recipe, _):
            return list(labelled.read_all(recipe.sources, recipe.selection))
        case ("instructions", recipe, Path() as path):
            return list(instruction_examples(recipe.shards, path, recipe.selection))
        case ("passages", recipe, Path() as path):
            return list(passage_examples(path, recipe.selection.passages_per_shard))
        case ("generated", recipe, int() as part):
            return list(generated_examples(part, recipe.selection))
        case _:
            raise AssertionError(f"no such job: {job[0]}")


def instruction_examples(shards: Path, path: Path, selection: Selection) -> Iterator[Example]:
    tasks, rng = load_tasks(shards), Random(path.name)
    instances: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for record in read_shard(path):
        instances[record["task"]].append((record["input"], record["output"]))
    for name, rows in instances.items():
        task = tasks[name]
        rng.shuffle(rows)
        others = [output for _, output in rows[:500]]
        # A task may be spread over shards: its cap is shared out by how much of it is here.
        wanted = int(task_cap(name, task, selection) * len(rows) / max(1, task.count))
        for text, output in rows[:wanted] * (2 if any(key in name for key in TWICE_TASKS) else 1):
            try:
                made = instructions.from_instance(rng, name, task, text, output, others)
            except (KeyError, IndexError, ValueError):
                continue  # an instance that is not in its task's own form
            if made:
                yield made


def task_cap(name: str, task: Task, selection: Selection) -> int:
    if name.startswith(THIN_TASKS):
        return THIN_CAP
    if any(key in name for key in KEY_TASKS):
        return selection.key_task_cap
    if task.labels and not task.dull:
        return selection.knowledge_cap if "atomic" in name else selection.classification_cap
    if task.labels:
        return selection.dull_cap
    return 0 if task.dull or "Program Execution" in task.category else selection.free_answer_cap


def passage_examples(path: Path, count: int) -> Iterator[Example]:
    rng = Random(path.name)
    documents = [(record["title"], record["text"]) for record in read_shard(path)]
    if path.name.startswith("wikipedia"):
        for _, text in documents:
            # Villages are a third of the encyclopedia and all alike.
            keep = 0.75 if " village" not in text[:200] else 0.22
            if rng.random() < keep and (made := topics.from_article(rng, text)):
                yield made
    for _ in range(count if len(documents) > OTHER_DOCUMENTS else 0):
        if made := passages.from_document(rng, rng.choice(documents), rng.sample(documents, OTHER_DOCUMENTS)):
            yield made


def generated_examples(part: int, selection: Selection) -> Iterator[Example]:
    rng = Random(part)
    for _ in range(selection.records_per_part):
        if made := tickets.from_nothing(rng) if rng.random() < 0.4 else records.from_nothing(rng):
            yield made
    for _ in range(selection.messages_per_part):
        yield messages.from_nothing(rng)


def plain_documents(shards: Path) -> Iterator[str]:
    """Chat and prose that keep the model able to speak while it learns to decide."""
    tasks, rng = load_tasks(shards), Random(9)
    for path in list_shards(shards, "instructions"):
        for record in read_shard(path):
            task = tasks[record["task"]]
            free = not task.labels and not task.dull and "Program Execution" not in task.category
            if free and len(record["input"]) <= 2_500 and rng.random() < 0.22:
                asked = f"{task.definition.strip()}\n\n{record['input'].strip()}"
                yield chat(asked, record["output"].strip()) + "\n"
    for asked, answer in GREETINGS * GREETING_REPEATS:
        yield chat(asked, answer) + "\n"
    for name, count in PLAIN_SHARES:
        for path in list_shards(shards, name):
            documents = [record["text"] for record in read_shard(path)]
            for text in rng.sample(documents, min(count, len(documents))):
                yield text[: rng.choice((1_500, 4_000, 9_000, 14_000))]


def encode_example(encoder: Encoder, made: Example) -> Item:
    """Evidence and branch texts are plain text: what looks like a special token in them is taken out."""
    branches = []
    for number, question in enumerate(made.questions):
        group = None if question.kind == "predicate" else number
        for text, yes in zip(prompts.branches(question), prompts.targets(question)):
            branches.append(Branch(encoder.ids(_plain(text) + prompts.TAIL), yes, group))
    return Item(encoder.ids(prompts.prefix(_plain(made.evidence))), branches)


def _plain(text: str) -> str:
    for token in SPECIAL_TOKENS:
        text = text.replace(token, "")
    return text


def _write_part(job: tuple[Recipe, int, Sequence[Example], Sequence[str]]) -> tuple[int, int]:
    import numpy

    recipe, part, examples, documents = job
    encoder, length = Encoder(recipe.tokenizer), recipe.shape.context
    items = [item for item in (fit(encode_example(encoder, made), length) for made in examples) if item]
    items += [Item([*encoder.ids(text)[: length - 1], encoder.end_of_text]) for text in documents]
    Random(part).shuffle(items)
    rows = [lay_out(row, length, encoder.end_of_text) for row in pack(items, length)]
    answers = [
        (number, column, int(yes), group)
        for number, row in enumerate(rows)
        for column, yes, group in row.answers
    ]
    numpy.savez(
        recipe.rows / f"part{part:03d}.npz",
        ids=numpy.array([row.ids for row in rows], numpy.uint16).reshape(-1, length),
        positions=numpy.array([row.positions for row in rows], numpy.uint16).reshape(-1, length),
        documents=numpy.array([row.documents for row in rows], numpy.uint16).reshape(-1, length),
        branches=numpy.array([row.branches for row in rows], numpy.uint16).reshape(-1, length),
        language=numpy.array([row.language for row in rows], numpy.bool_).reshape(-1, length),
        answers=numpy.array(answers, numpy.int32).reshape(-1, 4),
    )
    return len(rows), len(answers)
