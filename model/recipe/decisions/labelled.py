"""Decision examples from small labelled sets: inference pairs, intents, emotions, review phrases."""
import csv
import json
from pathlib import Path
from random import Random
from typing import Callable, Iterator

from ..config import Selection
from ..examples import Example, Question, dress, predicate, shuffled_choice
from . import inference, opinions

WHICH_INTENT = (
    "What is the user asking for?",
    "Which intent does the message express?",
    "What does the user want?",
    "Classify the intent of the request.",
)
IS_INTENT = (
    'Is the intent of this message "{x}"?',
    "Is the user's request about {x}?",
    "Does this message belong to the category {x}?",
)
WHICH_EMOTION = (
    "Which emotion does this comment express?",
    "What is the writer feeling?",
    "Which emotion fits the text best?",
)
IS_EMOTION = (
    "Does the author express {x}?",
    "Is the emotion of this text {x}?",
    "Does the message convey {x}?",
)
SST2_WORDS_MIN = 7  # shorter phrases of the training split are fragments


def read_all(sources: Path, selection: Selection) -> Iterator[Example]:
    """Examples of every labelled set that is there and whose terms allow it."""
    readers: list[Callable[[Path, Random], Iterator[Example]]] = [snli, clinc150, goemotions]
    if selection.include_unchecked_sets:
        readers += [dnc, sst2]
    for number, reader in enumerate(readers):
        yield from reader(sources, Random(5 + number))


def snli(sources: Path, rng: Random) -> Iterator[Example]:
    path = sources / "snli" / "snli_1.0_dev.jsonl"
    for line in _lines(path):
        row = json.loads(line)
        # "-" is a pair on which the annotators did not agree.
        if row["gold_label"] != "-":
            relation = inference.INITIAL[row["gold_label"][0]]
            yield inference.pairs(rng, row["sentence1"], [(row["sentence2"], relation)], "snli_dev")


def dnc(sources: Path, rng: Random) -> Iterator[Example]:
    for path in sorted((sources / "dnc").glob("*/recast_*_data.json")):
        if path.parent.name == "train":
            continue
        for row in json.loads(path.read_text(encoding="utf8")):
            if "megaveridicality" in path.name and rng.random() < 0.6:
                continue
            relation: inference.Relation = "entailed" if row["label"] == "entailed" else "not_entailed"
            yield inference.pairs(rng, row["context"], [(row["hypothesis"], relation)], "dnc")


def clinc150(sources: Path, rng: Random) -> Iterator[Example]:
    path = sources / "clinc150" / "data_full.json"
    if not path.exists():
        return
    rows = [(text, intent.replace("_", " ")) for text, intent in json.loads(path.read_text("utf8"))["train"]]
    intents = sorted({intent for _, intent in rows})
    for text, intent in rows:
        yield Example(dress(rng, text), (_ask_intent(rng, intent, intents),), "clinc150")


def _ask_intent(rng: Random, intent: str, intents: list[str]) -> Question:
    others = [other for other in intents if other != intent]
    wrong = rng.sample(others, rng.choice((1, 3, 5, 7, 9)))
    close = [other for other in others if set(other.split()) & set(intent.split()) and other not in wrong]
    if close and rng.random() < 0.5:
        wrong[0] = rng.choice(close)
    if rng.random() < 0.75:
        return shuffled_choice(rng, rng.choice(WHICH_INTENT), intent, wrong)
    named = intent if rng.random() < 0.5 else wrong[0]
    return predicate(rng.choice(IS_INTENT).replace("{x}", named), named == intent)


def goemotions(sources: Path, rng: Random) -> Iterator[Example]:
    """Comments with exactly one emotion; `neutral`, by far the most frequent, is thinned out."""
    folder = sources / "goemotions"
    names = [line.strip() for line in _lines(folder / "emotions.txt")]
    for line in _lines(folder / "train.tsv"):
        text, labels, _ = line.rstrip("\n").split("\t")
        if "," in labels:
            continue
        emotion = names[int(labels)]
        if emotion != "neutral" or rng.random() >= 0.6:
            yield Example(dress(rng, text), (_ask_emotion(rng, emotion, names),), "goemotions")


def _ask_emotion(rng: Random, emotion: str, names: list[str]) -> Question:
    others = [name for name in names if name != emotion]
    if rng.random() < 0.6:
        return shuffled_choice(
            rng, rng.choice(WHICH_EMOTION), emotion, rng.sample(others, rng.choice((1, 2, 3, 6)))
        )
    named = emotion if rng.random() < 0.5 else rng.choice(others)
    if named == "neutral":
        return predicate("Is the text free of any clear emotion?", named == emotion)
    return predicate(rng.choice(IS_EMOTION).replace("{x}", named), named == emotion)


def sst2(sources: Path, rng: Random) -> Iterator[Example]:
    rows = csv.DictReader(_lines(sources / "sst2" / "train.tsv"), delimiter="\t", quoting=csv.QUOTE_NONE)
    for row in rows:
        if len(row["sentence"].split()) >= SST2_WORDS_MIN and rng.random() < 0.6:
            label = "positive" if row["label"] == "1" else "negative"
            yield opinions.sentiment(rng, row["sentence"].strip(), label, ("positive", "negative"), "sst2")


def _lines(path: Path) -> Iterator[str]:
    if path.exists():
        with path.open(encoding="utf8") as lines:
            yield from lines
