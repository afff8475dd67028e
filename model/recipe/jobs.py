"""Makes the examples, a job for each source or part of one, so that jobs can run side by side."""
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Iterator

from .config import Recipe, Selection
from .decisions import banks, instructions, labelled, messages, passages, records, tickets, topics, written_passages
from .examples import Example
from .prepare import Task, load_tasks
from .selection import is_kept_back
from .shards import list_shards, read_shard

BANK_PARTS = 24
PASSAGE_PARTS = 8
OTHER_DOCUMENTS = 8
# Sets close to what callers ask; they may go in whole.
KEY_TASKS = "snli mnli scitail perspectrum jigsaw paws amazonfood polarity dbpedia civil_comments squad".split()
# Entailment tasks are asked twice, in other words.
TWICE_TASKS = "snli mnli scitail".split()
# Rewriting tasks whose inputs are far apart from their labels: a little is enough.
THIN_TASKS = ("task197_", "task198_", "task203_", "task204_")
THIN_CAP = 1_000

Job = tuple[str, Path | int]


def example_jobs(recipe: Recipe) -> list[Job]:
    """The longest first."""
    made: list[Job] = [("instructions", path) for path in list_shards(recipe.shards, "instructions")]
    made += [("labelled", 0)] + [("written", part) for part in range(PASSAGE_PARTS)] + [("banks", part) for part in range(BANK_PARTS)]
    encyclopedia = [path for name in ("pages", "wikipedia") for path in list_shards(recipe.shards, name)]
    chosen = Random(8).sample(encyclopedia, min(recipe.selection.passage_shards, len(encyclopedia)))
    made += [("passages", path) for path in chosen + list_shards(recipe.shards, "arxiv")]
    return made + [("generated", part) for part in range(recipe.selection.generated_parts)]


def examples_of(recipe: Recipe, job: Job) -> Iterator[Example]:
    match job:
        case ("labelled", _):
            return labelled.read_all(recipe.sources, recipe.selection)
        case ("banks", int() as part):
            return bank_examples(recipe.banks, part, recipe.selection)
        case ("written", int() as part):
            rng = Random(f"{recipe.selection.draw} passages {part}")
            return written_passages.read_some(rng, recipe.banks, recipe.selection.examples_per_passage, slice(part, None, PASSAGE_PARTS))
        case ("instructions", Path() as path):
            return instruction_examples(recipe.shards, path, recipe.selection)
        case ("passages", Path() as path):
            return passage_examples(path, recipe.selection)
        case ("generated", int() as part):
            return generated_examples(part, recipe.selection)
        case _:
            raise AssertionError(f"no such job: {job[0]}")


def bank_examples(folder: Path, part: int, selection: Selection) -> Iterator[Example]:
    """Every `BANK_PARTS`th row of the banks that may be trained on."""
    found = banks.load_banks(folder)
    back = banks.kept_back(found)
    mine = [replace(bank, rows=bank.rows[part::BANK_PARTS]) for bank in found if bank.name not in back]
    yield from banks.from_banks(Random(f"{selection.draw} {part}"), mine, selection.examples_per_bank_row)


def instruction_examples(shards: Path, path: Path, selection: Selection) -> Iterator[Example]:
    tasks, rng = load_tasks(shards), Random(f"{selection.draw} {path.name}")
    instances: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for record in read_shard(path):
        instances[record["task"]].append((record["input"], record["output"]))
    for name, rows in instances.items():
        if is_kept_back(name):
            continue
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


def passage_examples(path: Path, selection: Selection) -> Iterator[Example]:
    rng = Random(f"{selection.draw} {path.name}")
    documents = [(record["title"], record["text"]) for record in read_shard(path)]
    if path.name.startswith(("wikipedia", "pages")):
        for _, text in documents:
            # Villages are a third of the encyclopedia and all alike.
            keep = 0.75 if " village" not in text[:200] else 0.22
            if rng.random() < keep and (made := topics.from_article(rng, text)):
                yield made
    for _ in range(selection.passages_per_shard if len(documents) > OTHER_DOCUMENTS else 0):
        if made := passages.from_document(rng, rng.choice(documents), rng.sample(documents, OTHER_DOCUMENTS)):
            yield made


def generated_examples(part: int, selection: Selection) -> Iterator[Example]:
    rng = Random(f"{selection.draw} {part}")
    for _ in range(selection.records_per_part):
        if made := tickets.from_nothing(rng) if rng.random() < 0.4 else records.from_nothing(rng):
            yield made
    for _ in range(selection.messages_per_part):
        yield messages.from_nothing(rng)
