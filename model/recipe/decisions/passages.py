"""Decisions about plain documents: what they are about, what they say, what they mention, how they go on."""
import re
from random import Random
from typing import Sequence

from ..examples import Example, Question, clip, dress, example, predicate, shuffled_choice
from .inference import ENTAILED, fill

TITLE_QUESTIONS = (
    "What is this passage about?",
    "Which title fits this text?",
    "What is the subject of the passage?",
    "Which topic does this belong to?",
)
ABOUT_QUESTIONS = (
    "Is this passage about {x}?",
    'Would "{x}" be a suitable title for this text?',
    "Is {x} the subject of the text?",
)
MENTION_QUESTIONS = (
    "Does the text mention {x}?",
    'Is "{x}" mentioned in the passage?',
    "Does {x} appear in the text?",
)
NEXT_QUESTIONS = (
    "Which sentence comes next?",
    "How does the text continue?",
    "Which continuation fits best?",
)
TITLE_CHARACTERS_MAX = 150
NAME = re.compile(r"\b[A-Z][a-z]+(?: [A-Z][a-z]+)*\b")
NUMBER = re.compile(r"\b\d{1,4}\b")
NUMBER_SHIFTS = (-11, -3, -2, -1, 1, 2, 5, 10, 20)

Document = tuple[str, str]  # title and text


def from_document(rng: Random, document: Document, others: Sequence[Document]) -> Example | None:
    """One example; `others` are unrelated documents to take wrong answers from."""
    title, text = document
    paragraphs = [p for p in text.split("\n") if len(p) > 150]
    if not paragraphs or not 0 < len(title) < TITLE_CHARACTERS_MAX:
        return None
    places = sorted(rng.sample(range(len(paragraphs)), min(len(paragraphs), rng.choice((1, 1, 2, 3)))))
    passage = clip(" ".join(paragraphs[place] for place in places), rng.choice((500, 900, 1_500, 3_000)))
    draw = rng.random()
    if draw < 0.42:
        return _about(rng, title, passage, others, as_choice=draw < 0.30)
    if draw < 0.72:
        return _facts(rng, passage, others)
    return _mentions(rng, passage, others) if draw < 0.86 else _next_sentence(rng, passage, others)


def split_sentences(text: str) -> list[str]:
    parts = (part.strip() for part in re.split(r"(?<=[.!?])\s+(?=[A-Z\"])", text))
    return [part for part in parts if 25 < len(part) < 320]


def _about(rng: Random, title: str, passage: str, others: Sequence[Document], as_choice: bool) -> Example | None:
    wrong = [other for other, _ in rng.sample(others, rng.choice((1, 3, 5))) if other and other != title]
    if not wrong:
        return None
    if as_choice:
        return Example(passage, (shuffled_choice(rng, rng.choice(TITLE_QUESTIONS), title, wrong),), "passage_title")
    named = title if rng.random() < 0.5 else wrong[0]
    asked = predicate(rng.choice(ABOUT_QUESTIONS).replace("{x}", named), named == title)
    return Example(passage, (asked,), "passage_title")


def _facts(rng: Random, passage: str, others: Sequence[Document]) -> Example | None:
    """Sentences of the passage as they stand, or with a number or a name changed."""
    sentences = split_sentences(passage)
    if len(sentences) < 3:
        return None
    questions: list[Question] = []
    for sentence in rng.sample(sentences, 3):
        holds = rng.random() < 0.5
        statement = sentence if holds else alter(rng, sentence, passage, rng.choice(others)[1])
        if statement:
            questions.append(predicate(fill(rng.choice(ENTAILED), statement), holds))
    return example(dress(rng, passage), questions, "passage_fact")


def alter(rng: Random, sentence: str, passage: str, other: str) -> str | None:
    """A false version of a sentence: another number, another name, or a sentence from elsewhere."""
    numbers = list(NUMBER.finditer(sentence))
    if numbers and rng.random() < 0.5:
        match = rng.choice(numbers)
        return _replaced(sentence, match, str(int(match[0]) + rng.choice(NUMBER_SHIFTS)))
    names = [match for match in NAME.finditer(sentence) if match.start() > 0 and len(match[0]) > 3]
    pool = [name for name in _names(f"{passage} {other[:600]}") if name not in sentence]
    if names and pool:
        return _replaced(sentence, rng.choice(names), rng.choice(pool))
    elsewhere = [s for s in split_sentences(other[:1_500]) if s not in passage]
    return rng.choice(elsewhere) if elsewhere else None


def _replaced(text: str, match: re.Match[str], new: str) -> str:
    return text[: match.start()] + new + text[match.end() :]


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(name for name in NAME.findall(text) if len(name) > 3))


def _mentions(rng: Random, passage: str, others: Sequence[Document]) -> Example | None:
    inside = _names(passage)
    outside = [name for name in _names(rng.choice(others)[1][:1_500]) if name not in passage]
    questions: list[Question] = []
    for _ in range(2):
        holds = rng.random() < 0.5
        if pool := inside if holds else outside:
            questions.append(predicate(rng.choice(MENTION_QUESTIONS).replace("{x}", rng.choice(pool)), holds))
    return example(dress(rng, passage), questions, "passage_mention")


def _next_sentence(rng: Random, passage: str, others: Sequence[Document]) -> Example | None:
    sentences = split_sentences(passage)
    if len(sentences) < 3:
        return None
    place = rng.randrange(1, len(sentences) - 1)
    right = sentences[place + 1]
    wrong = [s for s in sentences[:place] + sentences[place + 2 :] if s != right][:2]
    for _, other in rng.sample(others, 2):
        if elsewhere := split_sentences(other[:1_200]):
            wrong.append(rng.choice(elsewhere))
    wrong = [s for s in dict.fromkeys(wrong) if s != right][: rng.choice((1, 2, 3))]
    if not wrong:
        return None
    asked = shuffled_choice(rng, rng.choice(NEXT_QUESTIONS), right, wrong)
    return Example(" ".join(sentences[: place + 1]), (asked,), "passage_next")
