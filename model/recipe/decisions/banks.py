"""Questions from label banks: short texts written for this recipe, each with a value for every attribute of its domain.

A bank is a line {name, group, domain, who, attributes, rows} of `banks/domains.jsonl`; `banks/FORMAT.md` describes the
form. One row gives many examples: other subsets of the options, names, wordings and kinds of question each time, so that
what is learnt is to read the question rather than to recognise the text.
"""
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Callable, Iterator, Mapping, Sequence

from ..examples import Example, Option, Question, choice, dress, predicate, score, shuffled_choice

KEPT_BACK = 10  # banks that are never trained on
# Those that were there when the choice was made: later banks do not change what is kept back.
KEPT_BACK_GROUPS = range(1, 8)
JOINED_SHARE = 0.06
JOINED_CHARACTERS_MAX = 260
ORIGIN_SHARE = 0.07
QUESTIONS_PER_EXAMPLE = (1, 2, 2, 3, 3, 4)

WHICH = (
    "Which label fits best?",
    "Which category does this belong to?",
    "Classify the text.",
    "Which of these describes it best?",
    "Pick the right category.",
    "How should this be classified?",
)
IS_LABEL = (
    'Is "{x}" the right label?',
    'Does the category "{x}" apply?',
    'Would you file this under "{x}"?',
    "Does {x} describe this best?",
    "Should this be labelled {x}?",
)
IS_ABOUT = ("Is this about {x}?", "Is the text about {x}?", "Is {x} the subject?", "Does this concern {x}?")
IS_DESCRIBED = ("Does this description fit? {x}", "Is this true of the text: {x}?", "Would you say: {x}?")
NONE_OF_THESE = (
    Option("none of these", "no other option fits"),
    Option("other", "anything that the other options do not cover"),
    Option("something else"),
)
AT_LEAST = (
    '{q} Is it at least "{x}"?',
    'Asked "{q}", would you say "{x}" or more?',
    '{q} "{x}" or higher?',
)
BELOW = ('{q} Is it less than "{x}"?', 'Asked "{q}", would you say less than "{x}"?')
EXACTLY = ('{q} Is the answer "{x}"?', 'Asked "{q}", would you say "{x}"?')
ORIGIN = ("What kind of text is this?", "Where does this text come from?", "Which collection does this text belong to?", "What is this?")
IS_FROM = ("Does this text come from: {x}?", "Is this an example of {x}?", "Could this be found among {x}?")
JOINTS = (("Message {n}: {t}", "message {n}"), ("[{n}] {t}", "text [{n}]"), ("{n}. {t}", "number {n}"))
ONLY = ("Look only at {m}. {q}", "Regarding {m}: {q}", "{q} (about {m})", "For {m}: {q}")


@dataclass(frozen=True)
class Choice:
    """An option's id, its names, its description and questions to which yes means this option."""

    id: str
    names: tuple[str, ...]
    description: str
    yes: tuple[str, ...]


@dataclass(frozen=True)
class Attribute:
    kind: str
    ask: tuple[str, ...] = ()
    options: tuple[Choice, ...] = ()
    levels: tuple[tuple[str, ...], ...] = ()
    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bank:
    name: str
    group: int  # banks of one group were written together and are near each other
    attributes: tuple[Attribute, ...]
    rows: tuple[tuple[Any, ...], ...]
    domain: str = ""


def load_banks(folder: Path) -> list[Bank]:
    with (folder / "domains.jsonl").open(encoding="utf8") as lines:
        return [parse_bank(json.loads(line)) for line in lines]


def parse_bank(content: Mapping[str, Any]) -> Bank:
    """Rows that do not fit their attributes are left out: one value each, an option, a level, a truth or null."""
    attributes = tuple(map(_attribute, content["attributes"]))
    rows = tuple(tuple(row) for row in content["rows"] if _fits(row, attributes))
    return Bank(content["name"], content["group"], attributes, rows, content["domain"])


def kept_back(banks: Sequence[Bank], count: int = KEPT_BACK) -> set[str]:
    """The names of the banks to keep out of training: those whose names hash lowest, so no one picks them."""
    first = (bank.name for bank in banks if bank.group in KEPT_BACK_GROUPS)
    names = sorted(first, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    return set(names[:count])


def from_banks(rng: Random, banks: Sequence[Bank], per_row: int) -> Iterator[Example]:
    """`per_row` examples of every row that has a value at all."""
    strangers = {group: _strangers(banks, group) for group in {bank.group for bank in banks}}
    domains = [bank.domain for bank in banks]
    for bank in banks:
        for row in bank.rows:
            for _ in range(per_row):
                if made := from_row(rng, bank, row, strangers[bank.group]):
                    yield _with_origin(rng, bank, made, domains) if rng.random() < ORIGIN_SHARE else made


def _with_origin(rng: Random, bank: Bank, made: Example, domains: Sequence[str]) -> Example:
    """One question more, of what kind the text is: every domain is a label that its texts share."""
    drawn = rng.sample(domains, min(len(domains), rng.choice((3, 5, 8, 12, 20))))
    wrong = sorted({domain for domain in drawn if not _words((domain,)) & _words((bank.domain,))})
    if not wrong:
        return made
    if rng.random() < 0.3:
        holds = rng.random() < 0.5
        question = predicate(rng.choice(IS_FROM).replace("{x}", bank.domain if holds else rng.choice(wrong)), holds)
    else:
        question = shuffled_choice(rng, rng.choice(ORIGIN), Option(bank.domain), [Option(domain) for domain in wrong])
    return Example(made.evidence, (*made.questions, question), made.source)


def from_row(rng: Random, bank: Bank, row: Sequence[Any], strangers: Sequence[Choice]) -> Example | None:
    """One example of a row, now and then with other rows of its bank around it."""
    if rng.random() < JOINED_SHARE and (made := _joined(rng, bank, row, strangers)):
        return made
    questions = _questions(rng, bank, row, strangers, rng.choice(QUESTIONS_PER_EXAMPLE))
    return Example(dress(rng, _written(rng, row[0])), questions, f"bank_{bank.name}") if questions else None


def plain_rows(rng: Random, bank: Bank, row: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """A row as lines of an evaluation set: every choice with all options, one level, one truth, first wordings."""
    for attribute, value in zip(bank.attributes, row[1:]):
        if value is None:
            continue
        line: dict[str, Any] = {"text": row[0], "kind": attribute.kind}
        if attribute.kind == "choice":
            names = [option.names[0] for option in attribute.options]
            gold = names[[option.id for option in attribute.options].index(value)]
            yield {**line, "question": attribute.ask[0], "options": names, "gold": gold}
        elif attribute.kind == "scale":
            names = [level[0] for level in attribute.levels]
            yield {**line, "question": attribute.ask[0], "options": names, "gold": names[value]}
        else:
            asked, truth = (
                (rng.choice(attribute.no), not value)
                if attribute.no and rng.random() < 0.3
                else (rng.choice(attribute.yes), value)
            )
            yield {**line, "question": asked, "options": ["yes", "no"], "gold": "yes" if truth else "no"}


def _attribute(content: Mapping[str, Any]) -> Attribute:
    options = tuple(
        Choice(o["id"], tuple(o["names"]), o.get("desc", ""), tuple(o.get("yes", ()))) for o in content.get("options", ())
    )
    return Attribute(
        kind=content["kind"],
        ask=tuple(content.get("ask", ())),
        options=options,
        levels=tuple(tuple([level] if isinstance(level, str) else level) for level in content.get("levels", ())),
        yes=tuple(content.get("yes", ())),
        no=tuple(content.get("no", ())),
    )


def _fits(row: Sequence[Any], attributes: Sequence[Attribute]) -> bool:
    if len(row) != len(attributes) + 1 or not isinstance(row[0], str) or not row[0].strip():
        return False
    return all(value is None or _allowed(attribute, value) for attribute, value in zip(attributes, row[1:]))


def _allowed(attribute: Attribute, value: Any) -> bool:
    match attribute.kind:
        case "choice":
            return any(option.id == value for option in attribute.options)
        case "scale":
            return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(attribute.levels)
        case _:
            return isinstance(value, bool)


def _strangers(banks: Sequence[Bank], group: int) -> list[Choice]:
    """Options of banks of other groups: far enough away to be wrong."""
    return [
        option
        for bank in banks
        if bank.group != group
        for attribute in bank.attributes
        for option in attribute.options
    ]


def _written(rng: Random, text: str) -> str:
    draw = rng.random()
    if draw < 0.04:
        return text.lower()
    return text.upper() if draw < 0.05 else text


def _questions(
    rng: Random, bank: Bank, row: Sequence[Any], strangers: Sequence[Choice], count: int
) -> tuple[Question, ...]:
    """About different attributes as far as there are enough of them, then again about the same ones in other words."""
    valued = [pair for pair in zip(bank.attributes, row[1:]) if pair[1] is not None]
    if not valued:
        return ()
    order = rng.sample(valued, len(valued))
    made: dict[str, Question] = {}
    for place in range(count):
        attribute, value = order[place % len(order)]
        question = MAKERS[attribute.kind](rng, attribute, value, strangers)
        made.setdefault(question.text + str(question.options), question)
    return tuple(made.values())


def _joined(rng: Random, bank: Bank, row: Sequence[Any], strangers: Sequence[Choice]) -> Example | None:
    """Two to four short texts under numbers; every question says which of them it is about."""
    short = [other for other in bank.rows if len(other[0]) <= JOINED_CHARACTERS_MAX and other != row]
    if len(row[0]) > JOINED_CHARACTERS_MAX or len(short) < 3:
        return None
    rows = [row, *rng.sample(short, rng.choice((1, 1, 2, 3)))]
    rng.shuffle(rows)
    form, named = rng.choice(JOINTS)
    evidence = rng.choice(("\n", "\n\n")).join(
        form.replace("{n}", str(n)).replace("{t}", one[0]) for n, one in enumerate(rows, 1)
    )
    questions = []
    for n, one in enumerate(rows, 1):
        for question in _questions(rng, bank, one, strangers, 1):
            text = rng.choice(ONLY).replace("{m}", named.replace("{n}", str(n))).replace("{q}", question.text)
            questions.append(Question(question.kind, text[0].upper() + text[1:], question.gold, question.options))
    return Example(evidence, tuple(questions), f"bank_{bank.name}") if questions else None


def _choice(rng: Random, attribute: Attribute, value: str, strangers: Sequence[Choice]) -> Question:
    right = next(option for option in attribute.options if option.id == value)
    others = [option for option in attribute.options if option.id != value]
    if rng.random() < 0.36 and right.yes:
        return _is_option(rng, right, others)
    wrong = rng.sample(others, rng.randrange(1, len(others) + 1) if rng.random() < 0.75 else len(others))
    if rng.random() < 0.25:
        wrong += [s for s in rng.sample(strangers, min(len(strangers), rng.choice((1, 2)))) if not _alike(s, right)]
    named = _namer(rng)
    options = [named(option) for option in wrong]
    draw = rng.random()
    if draw < 0.04 and len(options) > 1:
        return shuffled_choice(rng, _asked(rng, attribute), rng.choice(NONE_OF_THESE), options)
    if draw < 0.12:
        options.append(rng.choice(NONE_OF_THESE))
    answer = named(right)
    distinct = {option.value: option for option in options if option.value != answer.value}
    if not distinct:
        return _is_option(rng, right, others)
    return shuffled_choice(rng, _asked(rng, attribute), answer, list(distinct.values()))


def _asked(rng: Random, attribute: Attribute) -> str:
    return rng.choice(WHICH) if rng.random() < 0.15 else rng.choice(attribute.ask)


def _namer(rng: Random) -> Callable[[Choice], Option]:
    """How the options of one question are written: all alike, with or without descriptions."""
    described, style = rng.random() < 0.38, rng.random()

    def named(option: Choice) -> Option:
        name = rng.choice(option.names)
        if style < 0.10:
            name = option.id
        elif style < 0.20:
            name = name[:1].upper() + name[1:]
        elif style < 0.25:
            name = name.replace(" ", "_").lower()
        return Option(name, option.description if described and option.description else None)

    return named


def _alike(one: Choice, other: Choice) -> bool:
    return bool(_words((*one.names, one.description)) & _words((*other.names, other.description)))


def _words(texts: Sequence[str]) -> set[str]:
    return {word for text in texts for word in text.lower().split() if len(word) > 3}


def _is_option(rng: Random, right: Choice, others: Sequence[Choice]) -> Question:
    """Half of the time about the right option, otherwise about another."""
    holds = rng.random() < 0.5 or not others
    option = right if holds else rng.choice(others)
    draw = rng.random()
    if option.yes and draw < 0.6:
        return predicate(rng.choice(option.yes), holds)
    if option.description and draw < 0.72:
        return predicate(rng.choice(IS_DESCRIBED).replace("{x}", option.description.rstrip(".")), holds)
    about = any("about" in text for text in option.yes)
    text = rng.choice(IS_ABOUT if about and rng.random() < 0.7 else IS_LABEL)
    return predicate(text.replace("{x}", rng.choice(option.names)), holds)


def _scale(rng: Random, attribute: Attribute, value: int, _strangers: Sequence[Choice]) -> Question:
    asked, draw = rng.choice(attribute.ask), rng.random()
    names = [rng.choice(level) for level in attribute.levels]
    if draw < 0.55:
        return score(asked, names, value)
    if draw < 0.72:
        return shuffled_choice(rng, asked, names[value], [n for i, n in enumerate(names) if i != value])
    # Thresholds between levels are exact: the levels are ordered.
    if draw < 0.86 and len(names) > 2:
        edge = rng.randrange(1, len(names))
        frames, holds = (AT_LEAST, value >= edge) if rng.random() < 0.6 else (BELOW, value < edge)
        return predicate(rng.choice(frames).replace("{q}", asked).replace("{x}", names[edge]), holds)
    level = value if rng.random() < 0.5 else rng.choice([i for i in range(len(names)) if i != value])
    return predicate(rng.choice(EXACTLY).replace("{q}", asked).replace("{x}", names[level]), level == value)


def _bool(rng: Random, attribute: Attribute, value: bool, _strangers: Sequence[Choice]) -> Question:
    if attribute.no and rng.random() < 0.3:
        asked, holds = rng.choice(attribute.no), not value
    else:
        asked, holds = rng.choice(attribute.yes), value
    if rng.random() < 0.08:
        options = ["yes", "no"] if rng.random() < 0.5 else ["no", "yes"]
        return choice(asked, options, options.index("yes" if holds else "no"))
    return predicate(asked, holds)


MAKERS: dict[str, Callable[[Random, Attribute, Any, Sequence[Choice]], Question]] = {
    "choice": _choice,
    "scale": _scale,
    "bool": _bool,
}
