"""Sentiment, star ratings, flags such as toxicity, and likeness of two texts."""
import json
import re
from random import Random
from typing import Sequence

from ..examples import Example, Option, Question, choice, dress, predicate, score

POSITIVE = (
    "Is the sentiment of this text positive?",
    "Is this review positive?",
    "Does the author express a positive opinion?",
    "Is the writer satisfied?",
    "Does the customer seem happy?",
    "Would the author recommend it?",
    "Is the tone of the message favourable?",
)
NEGATIVE = (
    "Is the sentiment of this text negative?",
    "Is this review negative?",
    "Does the author express a negative opinion?",
    "Is the writer dissatisfied?",
    "Is the customer complaining?",
    "Is the author unhappy?",
    "Is the tone of the message critical?",
)
SENTIMENT = (
    "What is the sentiment of this text?",
    "What is the overall tone of the review?",
    "Classify the sentiment.",
    "How does the author feel about it?",
    "Which sentiment does the message express?",
)
SENTIMENT_DESCRIPTIONS = {
    "positive": "the author is pleased or praises it",
    "negative": "the author is displeased or criticises it",
    "neutral": "no clear opinion either way",
    "mixed": "both praise and criticism",
}


def sentiment(rng: Random, text: str, label: str, labels: Sequence[str], source: str) -> Example:
    questions: list[Question] = []
    decided = label in ("positive", "negative") and (len(labels) == 2 or rng.random() < 0.35)
    if decided and rng.random() < 0.6:
        questions.append(predicate(rng.choice(POSITIVE), label == "positive"))
        if rng.random() < 0.6:
            questions.append(predicate(rng.choice(NEGATIVE), label == "negative"))
    else:
        questions.append(_sentiment_choice(rng, label, labels))
    return Example(dress(rng, text), tuple(questions), source)


def _sentiment_choice(rng: Random, label: str, labels: Sequence[str]) -> Question:
    options, style = list(labels), rng.random()
    rng.shuffle(options)
    gold = options.index(label)
    if style < 0.3:
        return choice(
            rng.choice(SENTIMENT), [Option(name, SENTIMENT_DESCRIPTIONS.get(name)) for name in options], gold
        )
    names = [name.capitalize() for name in options] if style < 0.4 else options
    return choice(rng.choice(SENTIMENT), names, gold)


STAR_NAMES = (
    ("very bad", "bad", "average", "good", "excellent"),
    ("1 star", "2 stars", "3 stars", "4 stars", "5 stars"),
    ("1", "2", "3", "4", "5"),
    ("terrible", "poor", "okay", "good", "great"),
    ("very dissatisfied", "dissatisfied", "neutral", "satisfied", "very satisfied"),
)
STAR_DESCRIPTIONS = (
    "extremely negative review",
    "mostly negative",
    "mixed or neutral",
    "mostly positive",
    "extremely positive review",
)
STAR_QUESTIONS = (
    "How many stars does the reviewer give?",
    "Rate the reviewer's satisfaction.",
    "How satisfied is the customer?",
    "What rating fits this review?",
)


def stars(rng: Random, text: str, count: int, source: str) -> Example | None:
    """A review with one to five stars."""
    draw = rng.random()
    if draw < 0.55:
        described = rng.random() < 0.35
        names = zip(rng.choice(STAR_NAMES), STAR_DESCRIPTIONS)
        levels = [Option(name, description if described else None) for name, description in names]
        asked = [score(rng.choice(STAR_QUESTIONS), levels, count - 1)]
    elif draw < 0.75:
        text_asked = rng.choice(("Rate the sentiment of the review.", "How positive is the review?"))
        asked = [score(text_asked, ["negative", "neutral", "positive"], (count > 2) + (count > 3))]
    elif count == 3:
        return None
    else:
        asked = [predicate(rng.choice(POSITIVE), count > 3), predicate(rng.choice(NEGATIVE), count < 3)]
    return Example(dress(rng, text), tuple(asked), source)


# Task -> what its positive label says about the text, and that label.
FLAGS = {
    "task327": ("toxic", "Toxic"),
    "task322": ("a threat", "Threat"),
    "task323": ("sexually explicit", "Sexual-explicit"),
    "task325": ("an attack on an identity group", "Identity-attack"),
    "task326": ("obscene", "Obscene"),
    "task328": ("insulting", "Insult"),
    "task1720": ("toxic", "Yes"),
    "task1721": ("obscene", "Yes"),
    "task1722": ("threatening", "Yes"),
    "task1723": ("sexually explicit", "Yes"),
    "task1724": ("insulting", "Yes"),
    "task1725": ("severely toxic", "Yes"),
    "task108": ("abusive", "yes"),
    "task607": ("intentionally offensive", "Yes"),
    "task608": ("sexually offensive", "Yes"),
    "task609": ("offensive to someone", "Yes"),
    "task1604": ("hate speech", "hate"),
    "task1605": ("inciting violence", "violence"),
    "task1488": ("sarcastic", "sarcastic"),
    "task1489": ("sarcastic", "sarcastic"),
    "task679": ("hope speech", "Hope Speech"),
    "task274": ("an overruling legal sentence", "overruling"),
    "task1495": ("a report of an adverse drug event", "adverse drug event"),
    "task115": ("asking for help or advice", "yes"),
    "task616": ("grammatically acceptable", "acceptable"),
}
FLAG_QUESTIONS = (
    "Is this text {x}?",
    "Is this comment {x}?",
    "Should this message be classified as {x}?",
    "Would a moderator say that this text is {x}?",
    "Is the content {x}?",
    "Is the message {x}?",
)
UNFLAGGED_QUESTIONS = ("Is this text free of anything that is {x}?", "Is it wrong to call this text {x}?")
LABEL_QUESTIONS = ("Which label fits this text?", "How should this message be labelled?", "Classify the text.")
LEADING_LABEL = re.compile(r"^(?:Comment|Post|Tweet|Text|Passage|Headline)\s*:\s*")


def flag(rng: Random, task: str, text: str, output: str) -> Example | None:
    """A text that does or does not have a property; None when the task is of another kind."""
    found = FLAGS.get(task.split("_")[0])
    if not found:
        return None
    (trait, positive), draw = found, rng.random()
    holds = output.strip() == positive
    if draw < 0.75:
        asked = predicate(rng.choice(FLAG_QUESTIONS).replace("{x}", trait), holds)
    elif draw < 0.82:
        asked = predicate(rng.choice(UNFLAGGED_QUESTIONS).replace("{x}", trait), not holds)
    else:
        options = [trait, f"not {trait}"]
        rng.shuffle(options)
        asked = choice(rng.choice(LABEL_QUESTIONS), options, options.index(trait if holds else f"not {trait}"))
    return Example(dress(rng, LEADING_LABEL.sub("", text.strip())), (asked,), f"{task.split('_')[0]}_flag")


# Task -> the label that says that the two texts mean the same.
SAME = {
    "task400": "Paraphrase",
    "task1288": "Yes",
    "task145": "Similar",
    "task146": "Similar",
    "task147": "Similar",
    "task1645": "Similar",
    "task404": "Yes",
    "task566": "Yes",
    "task1408": "SIMILAR",
}
TWO_TEXTS = re.compile(
    r"^\s*\(?\[?['\"]?(?:sent(?:ence)?[-_ ]?1|question ?1)\s*:?\s*(.*?)(?:<sep>|\s*\n|\s)"
    r"\s*(?:sent(?:ence)?[-_ ]?2|question ?2)\s*:?\s*(.*)$",
    re.S | re.I,
)
SAME_QUESTIONS = (
    "Do the two texts mean the same thing?",
    "Are these two texts paraphrases of each other?",
    "Are the two sentences similar in meaning?",
    "Do both sentences make the same point?",
)
PARAPHRASE_QUESTIONS = ('Does this text mean the same as "{h}"?', 'Is "{h}" a paraphrase of the text?')


def likeness(rng: Random, task: str, text: str, output: str) -> Example | None:
    """Two texts that do or do not mean the same; None when the task is of another kind."""
    positive, match = SAME.get(task.split("_")[0]), TWO_TEXTS.match(text)
    if not positive or not match or len(match[1]) < 3:
        return None
    first, second = match[1].strip(" ,'\""), match[2].strip(" ,'\"]")
    holds = output.strip() == positive
    if rng.random() < 1 / 3:
        asked = predicate(rng.choice(PARAPHRASE_QUESTIONS).replace("{h}", second), holds)
        return Example(dress(rng, first), (asked,), "likeness")
    evidence = rng.choice(
        (
            f"A: {first}\nB: {second}",
            f"Sentence 1: {first}\nSentence 2: {second}",
            json.dumps({"first": first, "second": second}, ensure_ascii=False),
        )
    )
    return Example(evidence, (predicate(rng.choice(SAME_QUESTIONS), holds),), "likeness")
