"""Turns the fetched sources into shards: instruction tasks that may be used, and plain documents."""
import json
import re
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any, Callable, Iterable, Iterator

from .config import Recipe
from .overlap import Overlap
from .selection import is_dull, refusal
from .shards import write_shards

INPUT_CHARACTERS_MAX = 9_000
FREE_INPUT_CHARACTERS_MAX = 3_000
LABELS_MAX = 36


@dataclass(frozen=True)
class Task:
    """What the later stages need to know about a task; `labels` is None when its answers are free text."""

    definition: str
    category: str
    licence: str
    labels: list[str] | None
    dull: bool
    count: int


def prepare(recipe: Recipe) -> None:
    """The whole stage. A source that is not there is reported and skipped, so that a part can be tried alone."""
    overlap = Overlap.of_folder(recipe.held_out)
    prepare_instructions(recipe, overlap)
    for name, limit, documents in TEXTS:
        records = (record for record in documents(recipe.sources) if not overlap.touches(record["text"]))
        print(f"{name}: {write_shards(recipe.shards, name, records, limit)} documents", flush=True)


def prepare_instructions(recipe: Recipe, overlap: Overlap) -> None:
    rng, tasks, kept, refused = Random(0), {}, [], Counter[str]()
    for path in sorted((recipe.sources / "natural-instructions" / "tasks").glob("task*.json")):
        content = json.loads(path.read_text(encoding="utf8"))
        reason = refusal(
            path.stem, content.get("Instance License") or [], recipe.selection.include_unknown_licences
        )
        if reason or not _english(content):
            refused[reason or "not English"] += 1
            continue
        task, instances = _sample(rng, path.stem, content, overlap)
        tasks[path.stem] = asdict(task)
        kept.extend({"task": path.stem, "input": text, "output": answer} for text, answer in instances)
    recipe.shards.mkdir(parents=True, exist_ok=True)
    (recipe.shards / "tasks.json").write_text(json.dumps(tasks, ensure_ascii=False), encoding="utf8")
    written = write_shards(recipe.shards, "instructions", kept, float("inf"))
    print(f"instructions: {len(tasks)} tasks, {written} instances; left out {dict(refused)}", flush=True)


def load_tasks(shards: Path) -> dict[str, Task]:
    return {
        name: Task(**task) for name, task in json.loads((shards / "tasks.json").read_text("utf8")).items()
    }


def find_labels(outputs: list[str]) -> list[str] | None:
    """The label set of a classification task: few outputs that cover nearly all instances."""
    counts = Counter(output.strip() for output in outputs)
    frequent = [(o, n) for o, n in counts.most_common(40) if n >= max(3, 0.004 * len(outputs))]
    covered = sum(n for _, n in frequent) / max(1, len(outputs))
    if len(counts) < 150 and covered > 0.9 and 2 <= len(frequent) <= LABELS_MAX:
        return [output for output, _ in frequent]
    return None


def _english(content: dict[str, Any]) -> bool:
    return content.get("Input_language") == ["English"] and content.get("Output_language") == ["English"]


def _sample(
    rng: Random, name: str, content: dict[str, Any], overlap: Overlap
) -> tuple[Task, list[tuple[str, str]]]:
    instances = [
        (instance["input"], instance["output"][0])
        for instance in content["Instances"]
        if instance["output"] and len(instance["input"]) <= INPUT_CHARACTERS_MAX
    ]
    labels, dull = find_labels([output for _, output in instances]), is_dull(name)
    cap = (600 if dull else 6_500) if labels else (250 if dull else 1_500)
    rng.shuffle(instances)
    chosen: dict[str, str] = {}
    for text, output in instances:
        too_long = labels is None and len(text) > FREE_INPUT_CHARACTERS_MAX
        if text in chosen or too_long or overlap.touches(text):
            continue
        chosen[text] = output
        if len(chosen) >= cap:
            break
    definition = content["Definition"]
    task = Task(
        definition=definition[0] if isinstance(definition, list) else definition,
        category=(content.get("Categories") or ["?"])[0],
        licence=" ".join(content.get("Instance License") or ["Unknown"]),
        labels=labels,
        dull=dull,
        count=len(chosen),
    )
    return task, list(chosen.items())


def tidy(text: str) -> str:
    """One kind of space and line end, at most one empty line."""
    text = text.replace("\r", "").replace("\u00a0", " ").replace("\x00", "")
    text = re.sub(r" ?\n ?", "\n", re.sub(r"[ \t]+", " ", text))
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def wikipedia(sources: Path) -> Iterator[dict[str, str]]:
    for path in sorted((sources / "wikipedia").glob("**/wiki_*")):
        with path.open(encoding="utf8") as lines:
            for record in map(json.loads, lines):
                text = tidy(record["text"])[:6_000]
                if len(text) > 400:
                    yield {"title": record["title"], "text": text}


def gutenberg(sources: Path) -> Iterator[dict[str, str]]:
    """One excerpt of a book, away from the licence texts at its two ends."""
    rng, excerpt = Random(1), 60_000
    for path in sorted((sources / "gutenberg").glob("*.txt")):
        book = path.read_text(encoding="utf8", errors="replace")
        body = book[int(len(book) * 0.06) : int(len(book) * 0.97)]
        if len(body) > excerpt:
            start = max(0, body.find("\n\n", rng.randrange(len(body) - excerpt)))
            body = body[start : start + excerpt]
        if len(body) > 1_000:
            yield {"title": "", "text": tidy(body).replace("_", "")}


def arxiv(sources: Path) -> Iterator[dict[str, str]]:
    """A sample of the abstracts that hold no formulas."""
    rng, path = Random(2), sources / "arxiv" / "arxiv-metadata-oai-snapshot.json"
    if not path.exists():
        return
    with path.open(encoding="utf8") as lines:
        for record in map(json.loads, lines):
            abstract = record["abstract"]
            if rng.random() < 0.12 and "$" not in abstract and "\\" not in abstract:
                yield {"title": tidy(record["title"]).replace("\n", " "), "text": tidy(abstract)}


def documentation(sources: Path) -> Iterator[dict[str, str]]:
    for folder in (sources / "mdn" / "files" / "en-us", sources / "dotnet" / "docs"):
        for path in sorted(folder.glob("**/*.md")):
            text = path.read_text(encoding="utf8", errors="replace")
            body = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.S)
            if len(body) > 400:
                yield {"title": "", "text": tidy(body)[:8_000]}


# name, most characters, reader; the limits give the token counts in the model card
TEXTS: tuple[tuple[str, float, Callable[[Path], Iterable[dict[str, str]]]], ...] = (
    ("wikipedia", 460e6, wikipedia),
    ("gutenberg", 180e6, gutenberg),
    ("arxiv", 50e6, arxiv),
    ("documentation", 45e6, documentation),
)
