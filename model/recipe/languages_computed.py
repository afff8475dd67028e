"""Small texts in other languages whose answers are computed: dates, amounts, comparisons, orders, roles.

`wordings/` has a file a language with what is said and asked; here are the worlds that it is said of. A group is one situation in two to
four worlds, asked in its language and, with the wordings of the same questions in it, in another: mostly in English.
"""
import json
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any, Callable, Iterator, NamedTuple

from .decisions.contrast import Group, group_of

FOLDER = Path(__file__).parent / "wordings"
ENGLISH = "en"
World = dict[str, Any]
YEAR = 2026
# Of the texts, with a sentence before or behind that has nothing to do with what is asked.
AROUND_SHARE = 0.6
# Of the groups, with the text in two languages: what stands around is in another one.
MIXED_SHARE = 0.1
# Of the groups, asked in a third language instead of English; of the choices, with options in the other language than their question.
THIRD_SHARE, OPTIONS_APART_SHARE = 0.3, 0.15


@lru_cache(maxsize=None)
def wordings(language: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{language}.json").read_text(encoding="utf8"))


def languages() -> list[str]:
    return sorted(file.stem for file in FOLDER.glob("*.json") if file.stem != ENGLISH)


def groups(seed: int, count: int) -> Iterator[Group]:
    """`count` situations, each asked in two languages; the same ones for a seed."""
    for number, record in enumerate(records(seed, count)):
        yield group_of(record.own, f"computed_{record.language}", number)
        yield group_of(record.other, f"computed_{record.language}-asked-in-{record.asked_in}", number)


class Record(NamedTuple):
    """The same texts twice: `own` is asked in their language, `other` in another."""

    language: str
    asked_in: str
    own: dict[str, Any]
    other: dict[str, Any]


def records(seed: int, count: int) -> Iterator[Record]:
    rng, known = Random(seed), languages()
    for number in range(count):
        language = known[number % len(known)]
        third = rng.choice([name for name in known if name != language])
        yield _told(rng, language, third if rng.random() < THIRD_SHARE else ENGLISH)


def _told(rng: Random, language: str, asked_in: str) -> Record:
    here, name = wordings(language), rng.choice(sorted(SITUATIONS))
    variant = rng.randrange(len(SITUATIONS[name]))
    own, other = here["situations"][name][variant], wordings(asked_in)["situations"][name][variant]
    worlds = SITUATIONS[name][variant](rng)
    rng.shuffle(worlds)
    worlds = worlds[: rng.choice((2, 3, 4))]
    a, b = rng.sample(here["names"], 2)
    spelled = _Spelling(rng, here)
    text, around = rng.choice(own["texts"]), _around(rng, language)
    turns = {turn: rng.choice(said) for turn, said in own.get("turns", {}).items()}
    filled = [{key: spelled.of(key, value) for key, value in world.items()} | {"a": a, "b": b} for world in worlds]
    texts = [around(text.format_map(f | {"turn": turns.get(w.get("turn"), "").format_map(f)})) for f, w in zip(filled, worlds)]
    # Only what all worlds have in common is written into a question.
    steady = {key: value for key, value in filled[0].items() if all(one[key] == value for one in filled)}
    made = ({"texts": texts, **_asked(rng, pair, steady, worlds)} for pair in ((own, other), (other, own)))
    return Record(language, asked_in, *made)


def _asked(rng: Random, pair: tuple[dict[str, Any], dict[str, Any]], steady: dict[str, str], worlds: list[World]) -> dict[str, Any]:
    """Questions in the words of the first of the pair; now and then with the options of the second."""
    said, apart = pair
    questions = []
    for ask, forms in said["asks"].items():
        answers = [bool(world["asks"][ask]) for world in worlds]
        is_turned = bool(forms["no"]) and rng.random() < 0.5
        text = _filled(rng.choice(forms["no" if is_turned else "yes"]), steady)
        if text is not None:
            questions.append([text, [answer != is_turned for answer in answers]])
    rng.shuffle(questions)
    choices = []
    if "choice" in said:
        options_of = apart if rng.random() < OPTIONS_APART_SHARE else said
        options = [_filled(option, steady) for option in options_of["choice"]["options"]]
        text = _filled(rng.choice(said["choice"]["ask"]), steady)
        if text is not None and None not in options and len(set(options)) == len(options):
            order = rng.sample(range(len(options)), len(options))
            choices.append([text, [options[place] for place in order], [order.index(world["choice"]) for world in worlds]])
    return {"questions": questions, "choices": choices, "scales": []}


def _filled(text: str, steady: dict[str, str]) -> str | None:
    try:
        return text.format_map(steady)
    except KeyError:
        return None


def _around(rng: Random, language: str) -> Callable[[str], str]:
    if rng.random() >= AROUND_SHARE:
        return lambda text: text
    other = rng.choice([ENGLISH, *languages()]) if rng.random() < MIXED_SHARE else language
    sentences = rng.sample(wordings(other)["around"], rng.choice((1, 1, 2, 3)))
    place, blank = rng.randrange(len(sentences) + 1), rng.choice((" ", " ", "\n"))
    return lambda text: blank.join([*sentences[:place], text, *sentences[place:]])


class _Spelling:
    """Dates, times and amounts as written there, alike in all of a group."""

    def __init__(self, rng: Random, here: dict[str, Any]) -> None:
        self.months, self.thousands = here["months"], here["thousands"]
        self.date, self.clock, self.money = (rng.choice(here[name]) for name in ("dates", "clocks", "money"))

    def of(self, key: str, value: Any) -> str:
        if isinstance(value, date):
            numbers = {"d": value.day, "dd": f"{value.day:02}", "m": value.month, "mm": f"{value.month:02}"}
            return self.date.format(**numbers, month=self.months[value.month - 1])
        if key in ("t", "t1", "t2", "open", "close"):
            return self.clock.format(h=value // 60, hh=f"{value // 60:02}", mm=f"{value % 60:02}")
        if key.endswith("_money"):
            return self.money.format(n=f"{value:,}".replace(",", self.thousands))
        return str(value)


def _day(rng: Random) -> date:
    return date(YEAR, 2, 1) + timedelta(days=rng.randrange(280))


def _deadline(rng: Random) -> list[World]:
    due = _day(rng)
    late = [rng.randrange(-20, 0), 0, rng.randrange(1, 7), rng.randrange(8, 25)]
    return [
        {"due": due, "when": due + timedelta(days=n), "asks": {"in_time": n <= 0, "week_late": n > 7}, "choice": (n >= 0) + (n > 0)} for n in late
    ]


def _limit(rng: Random) -> list[World]:
    limit = rng.randrange(20, 33)
    amounts = [limit - rng.randrange(2, 12), limit, limit + rng.randrange(1, 3), limit + rng.randrange(4, 15)]
    times = rng.choice((10, 50, 100))
    return [
        {
            "limit": limit, "amount": amount, "limit_money": limit * times, "amount_money": amount * times,
            "asks": {"within": amount <= limit, "exact": amount == limit}, "choice": (amount >= limit) + (amount > limit),
        }
        for amount in amounts
    ]


def _compare(rng: Random) -> list[World]:
    n, apart = rng.randrange(15, 400), rng.randrange(1, 12)
    return [
        {"n": x, "m": y, "asks": {"a_more": x > y, "b_more": y > x, "equal": x == y}, "choice": 0 if x > y else 1 if y > x else 2}
        for x, y in ((n + apart, n), (n, n + apart), (n, n))
    ]


def _first(rng: Random) -> list[World]:
    t1, gaps = rng.randrange(9 * 12, 18 * 12) * 5, (rng.randrange(1, 11) * 5, rng.randrange(14, 36) * 5)
    return [
        {"t1": t1, "t2": t1 + gap, "asks": {"before": gap > 0, "hour": abs(gap) > 60}, "choice": int(gap < 0)}
        for gap in (gaps[0], gaps[1], -gaps[0], -gaps[1])
    ]


def _changed(rng: Random) -> list[World]:
    n, m = rng.sample(range(2, 25), 2)
    return [
        {"n": n, "m": m, "turn": turn, "asks": {"first_number": not place, "second_number": bool(place)}, "choice": place}
        for place, turn in enumerate(("kept", "changed"))
    ]


def _opening(rng: Random) -> list[World]:
    opens, closes = rng.randrange(14, 21) * 30, rng.randrange(31, 40) * 30
    times = [opens - rng.randrange(1, 24) * 5, rng.randrange(opens // 5 + 3, closes // 5 - 3) * 5, closes + rng.randrange(1, 20) * 5]
    return [
        {"open": opens, "close": closes, "t": t, "asks": {"is_open": place == 1, "early": place == 0, "late": place == 2}, "choice": place}
        for place, t in enumerate(times)
    ]


def _swimmers(rng: Random) -> list[World]:
    """The young swim only with somebody."""
    return _rule(rng, lambda age, least: age > least)


def _returns(rng: Random) -> list[World]:
    """What is sent back early costs nothing."""
    return _rule(rng, lambda age, least: age < least)


def _rule(rng: Random, is_allowed: Callable[[int, int], bool]) -> list[World]:
    """Not allowed by the rule, but by its exception; `age` is never the bound itself."""
    least = rng.randrange(10, 18)
    return [
        {"min": least, "age": age, "turn": turn, "asks": {"allowed": turn == "with" or is_allowed(age, least), "young": age < least, "alone": turn == "alone"}}
        for age in (least - rng.randrange(1, 5), least + rng.randrange(1, 9))
        for turn in ("alone", "with")
    ]


def _owes(rng: Random) -> list[World]:
    amount = rng.randrange(2, 90) * 10
    return [
        {
            "amount_money": amount, "turn": turn, "choice": place,
            "asks": {"b_owes": turn != "paid", "a_owes": False, "nothing_back": turn == "open"},
        }
        for place, turn in enumerate(("paid", "open", "part"))
    ]


def _enough(rng: Random) -> list[World]:
    boxes, each = rng.sample(range(3, 13), 2)
    total = boxes * each
    needs = (total - rng.randrange(1, 8), total, total + rng.randrange(1, 8))
    others = rng.sample([total - each, total + each, boxes + each, total + 10], 2)
    return [
        {
            "boxes": boxes, "each": each, "total": total, "other": others[0], "third": others[1], "need": need, "choice": 0,
            "asks": {"enough": need <= total, "exact": need == total},
        }
        for need in needs
    ]


def _appointment(rng: Random) -> list[World]:
    due = _day(rng)
    when = due + timedelta(days=rng.randrange(2, 30))
    return [
        {
            "due": due, "when": when, "turn": turn, "choice": place,
            "asks": {"on_day": turn == "confirmed", "takes_place": turn != "cancelled", "moved": turn == "moved"},
        }
        for place, turn in enumerate(("confirmed", "cancelled", "moved"))
    ]


# Of each situation the worlds of its variants, in the order of the wordings.
SITUATIONS: dict[str, tuple[Callable[[Random], list[World]], ...]] = {
    "deadline": (_deadline, _deadline), "limit": (_limit, _limit), "compare": (_compare, _compare), "first": (_first, _first),
    "changed": (_changed, _changed), "opening": (_opening, _opening), "rule": (_swimmers, _returns), "owes": (_owes, _owes),
    "enough": (_enough, _enough), "appointment": (_appointment, _appointment),
}
