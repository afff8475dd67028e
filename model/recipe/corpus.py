"""The reading matter of stage 1: shards as documents, and documents as files of token ids."""
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random
from typing import Iterator

from .config import Recipe
from .prepare import Task, load_tasks
from .shards import list_shards, read_shard

SOURCE_NAMES = ("instructions", "wikipedia", "gutenberg", "arxiv", "documentation")


def encode_corpus(recipe: Recipe) -> None:
    """One file of 16-bit token ids per shard, documents in a shuffled order."""
    recipe.corpus.mkdir(parents=True, exist_ok=True)
    paths = [path for name in SOURCE_NAMES for path in list_shards(recipe.shards, name)]
    with ProcessPoolExecutor(recipe.processes) as pool:
        counts = list(pool.map(_encode_shard, [(recipe, path) for path in paths]))
    print(f"corpus: {len(paths)} shards, {sum(counts) / 1e6:.1f}M tokens", flush=True)


def read_documents(shards: Path, path: Path) -> Iterator[str]:
    """The documents of a shard as text."""
    if not path.name.startswith("instructions"):
        for record in read_shard(path):
            yield f"{record['title']}\n\n{record['text']}" if record["title"] else record["text"]
        return
    tasks, rng = load_tasks(shards), Random(path.name)
    for record in read_shard(path):
        if text := _instruction_document(
            rng, tasks[record["task"]], record["input"].strip(), record["output"].strip()
        ):
            yield text


def chat(user: str, assistant: str) -> str:
    return f"<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n{assistant}<|im_end|>"


def _instruction_document(rng: Random, task: Task, text: str, output: str) -> str | None:
    """Sometimes as a chat with its definition, sometimes without, otherwise as running text."""
    draw = rng.random()
    if task.dull and draw < 0.7:
        return None
    if draw < 0.40:
        return chat(f"{task.definition.strip()}\n\n{text}", output)
    if draw < 0.55:
        return chat(text, output)
    return f"{text}\n{output}" if rng.random() < 0.5 else text


def _encode_shard(job: tuple[Recipe, Path]) -> int:
    import numpy

    from .tokenizer import Encoder

    recipe, path = job
    encoder = Encoder(recipe.tokenizer)
    documents = list(read_documents(recipe.shards, path))
    Random(path.name).shuffle(documents)
    ids: list[int] = []
    for text in documents:
        ids += encoder.ids(text)
        ids.append(encoder.end_of_text)
    numpy.array(ids, dtype=numpy.uint16).tofile(recipe.corpus / f"{path.stem}.bin")
    return len(ids)
