"""Other forms of a question, whose answers follow from its own, and the laws that their probabilities obey together.

Answers are computed: the negation, both and either of two, an option as yes or no, at least a level, levels reversed, options
merged, other words around the same question. A law is a sum of probabilities: p(it is so) + p(it is not so) = 1. It is
rewarded whatever the answers are, so it also holds where the model does not know them.
"""
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple, Sequence

from ..examples import UNKNOWN, Example, Option, Question, choice, predicate, score

QUESTIONS_MAX = 40
OPTIONS_MAX = 12

NOT = (
    "Is the answer to this question no: {q}", "Would one have to answer no to the following? {q}", "Is it wrong to say yes here? {q}",
    "Does the text make the answer \"no\" for: {q}", "Should a careful reader answer no? {q}", "Answer the opposite of: {q}",
    "Is \"no\" the right reply to \"{q}\"?", "Is the following false? {q}", "It is not the case: {q}",
)
NOT_STATEMENT = ("It is untrue that {s}", "The text does not bear this out: {s}", "This is not so: {s}", "One cannot say that {s}")
BOTH = (
    "Are both answered yes? 1) {a} 2) {b}", "{a} And also: {b}", "Is it yes to each of these? {a} / {b}", "Do both hold? First: {a} Second: {b}",
    "Both of these are so: {a} {b}",
)
EITHER = (
    "Is at least one answered yes? 1) {a} 2) {b}", "{a} Or else: {b}", "Does one or the other hold? {a} / {b}",
    "Is either of these a yes? First: {a} Second: {b}", "At least one of these is so: {a} {b}",
)
FIRST_ALONE = (
    "Is the first answered yes and the second no? 1) {a} 2) {b}", "{a} And is this not so: {b}",
    "Does the first hold without the second? First: {a} Second: {b}", "Yes to \"{a}\" but no to \"{b}\"?",
)
IS_OPTION = ("For \"{q}\", is the right answer \"{o}\"?", "{q} Is it {o}?", "Question: {q} Would \"{o}\" be correct?", "Would you pick \"{o}\" for: {q}")
NOT_OPTION = ("For \"{q}\", is the right answer something other than \"{o}\"?", "{q} Is it anything but {o}?", "Would \"{o}\" be wrong for: {q}")
AT_LEAST = ("{q} Is it at least \"{o}\"?", "For \"{q}\", would the rating be \"{o}\" or above?", "On the question \"{q}\", does it reach \"{o}\"?")
AT_MOST = ("{q} Is it at most \"{o}\"?", "For \"{q}\", would the rating be \"{o}\" or below?", "On the question \"{q}\", does it stay at or under \"{o}\"?")
AROUND = (
    "According to the text: {q}", "{q} Answer from the text alone.", "Please decide: {q}", "Read carefully. {q}", "Question for the reader: {q}",
    "{q} (judge by what is written)", "Going by this text, {l}", "I would like to know: {q}", "Consider the whole text before you answer. {q}",
)
MERGED = ("{a} or {b}", "either {a} or {b}", "{a} / {b}", "one of: {a}, {b}")


class Term(NamedTuple):
    """A branch's probability in a law: the question's place in the example, the option's in the question, and its sign."""

    question: int
    option: int
    sign: int


class Law(NamedTuple):
    """The terms add up to `total`, or to no more than it."""

    terms: tuple[Term, ...]
    total: int = 0
    at_most: bool = False


@dataclass(frozen=True)
class Formed:
    made: Example
    laws: tuple[Law, ...] = ()


def negated(rng: Random, text: str) -> str:
    if text.rstrip().endswith("?") or rng.random() < 0.5:
        return rng.choice(NOT).format(q=text)
    return rng.choice(NOT_STATEMENT).format(s=_lower(text))


def reworded(rng: Random, text: str) -> str:
    """The same question, with other words around it or, now and then, a slip of the keyboard."""
    if rng.random() < 0.25:
        return with_slip(rng, text)
    return rng.choice(AROUND).format(q=text, l=_lower(text))


def with_slip(rng: Random, text: str) -> str:
    """Two letters inside a word change places."""
    places = [i for i in range(1, len(text) - 2) if text[i : i + 2].isalpha() and text[i - 1].isalpha() and text[i + 2].isalpha()]
    if not places:
        return text
    at = rng.choice(places)
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def opposite(gold: int) -> int:
    return gold if gold == UNKNOWN else 1 - gold


def with_forms(rng: Random, made: Example, share: float) -> Formed:
    """Each question gets, with this probability, other forms beside it."""
    found = _Forms(rng, made)
    for place, question in enumerate(made.questions):
        if rng.random() < share and len(found.questions) < QUESTIONS_MAX:
            found.add(place, question)
    return Formed(replace(made, questions=tuple(found.questions)), tuple(found.laws))


class _Forms:
    def __init__(self, rng: Random, made: Example) -> None:
        self.rng, self.given = rng, made.questions
        self.questions: list[Question] = list(made.questions)
        self.laws: list[Law] = []

    def add(self, place: int, question: Question) -> None:
        if question.kind == "predicate":
            self._of_predicate(place, question)
        elif len(question.options) <= OPTIONS_MAX:
            (self._of_choice if question.kind == "choice" else self._of_score)(place, question)

    def _put(self, question: Question) -> int:
        self.questions.append(question)
        return len(self.questions) - 1

    def _law(self, *terms: tuple[int, int, int], total: int = 0, at_most: bool = False) -> None:
        self.laws.append(Law(tuple(Term(*term) for term in terms), total, at_most))

    def _of_predicate(self, place: int, question: Question) -> None:
        draw, rng = self.rng.random(), self.rng
        others = [i for i, q in enumerate(self.given) if q.kind == "predicate" and i != place and q.gold != UNKNOWN]
        if draw < 0.36:
            new = self._put(Question("predicate", negated(rng, question.text), opposite(question.gold)))
            self._law((place, 0, 1), (new, 0, 1), total=1)
        elif draw < 0.50 or question.gold == UNKNOWN or not others:
            new = self._put(Question("predicate", reworded(rng, question.text), question.gold))
            self._law((place, 0, 1), (new, 0, -1))
        else:
            self._of_two(place, question, rng.choice(others))

    def _of_two(self, place: int, question: Question, other: int) -> None:
        rng, second = self.rng, self.given[other]
        asked = dict(a=question.text, b=second.text)
        a, b, one, two = bool(question.gold), bool(second.gold), place, other
        both = self._put(predicate(rng.choice(BOTH).format(**asked), a and b))
        if rng.random() < 0.5:
            either = self._put(predicate(rng.choice(EITHER).format(**asked), a or b))
            self._law((both, 0, 1), (either, 0, 1), (one, 0, -1), (two, 0, -1))
            for each in (one, two):
                self._law((both, 0, 1), (each, 0, -1), at_most=True)
                self._law((each, 0, 1), (either, 0, -1), at_most=True)
        else:
            alone = self._put(predicate(rng.choice(FIRST_ALONE).format(**asked), a and not b))
            self._law((both, 0, 1), (alone, 0, 1), (one, 0, -1))
            self._law((both, 0, 1), (two, 0, -1), at_most=True)

    def _of_choice(self, place: int, question: Question) -> None:
        rng, options = self.rng, question.options
        draw = rng.random()
        if draw < 0.2 and len(options) > 2:
            self._merge(place, question)
        elif draw < 0.3:
            order = rng.sample(range(len(options)), len(options))
            new = self._put(Question("choice", reworded(rng, question.text), order.index(question.gold), tuple(options[i] for i in order)))
            for at, i in enumerate(order):
                self._law((place, i, 1), (new, at, -1))
        else:
            index = question.gold if rng.random() < 0.5 else rng.randrange(len(options))
            is_not = rng.random() < 0.35
            text = rng.choice(NOT_OPTION if is_not else IS_OPTION).format(q=question.text, o=options[index].description or options[index].value)
            new = self._put(predicate(text, (index == question.gold) != is_not))
            self._law((place, index, 1), (new, 0, 1 if is_not else -1), total=int(is_not))

    def _merge(self, place: int, question: Question) -> None:
        """Two of the options become one, at the place of the first."""
        rng, options = self.rng, question.options
        first, second = sorted(rng.sample(range(len(options)), 2))
        kept = [i for i in range(len(options)) if i != second]
        named = rng.choice(MERGED).format(a=options[first].value, b=options[second].value)
        gold = first if question.gold == second else question.gold
        new = self._put(choice(question.text, [Option(named) if i == first else options[i] for i in kept], kept.index(gold)))
        for at, i in enumerate(kept):
            self._law((new, at, 1), (place, i, -1), *(((place, second, -1),) if i == first else ()))

    def _of_score(self, place: int, question: Question) -> None:
        rng, levels, draw = self.rng, question.options, self.rng.random()
        if draw < 0.2:
            new = self._put(score(reworded(rng, question.text), levels, question.gold))
            for i in range(len(levels)):
                self._law((place, i, 1), (new, i, -1))
            return
        edge = rng.randrange(len(levels) - 1) if draw < 0.6 else rng.randrange(1, len(levels))
        most = draw < 0.6
        text = rng.choice(AT_MOST if most else AT_LEAST).format(q=question.text, o=levels[edge].value)
        new = self._put(predicate(text, question.gold <= edge if most else question.gold >= edge))
        inside = range(edge + 1) if most else range(edge, len(levels))
        self._law((new, 0, 1), *((place, i, -1) for i in inside))


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def of_branches(laws: Sequence[Law], counts: Sequence[int]) -> list[tuple[tuple[tuple[int, int], ...], int, bool]]:
    """Laws over numbers of branches, ((branch, sign), ...); `counts`: how many branches each question has."""
    first = [sum(counts[:place]) for place in range(len(counts))]
    return [(tuple((first[q] + option, sign) for q, option, sign in law.terms), law.total, law.at_most) for law in laws]
