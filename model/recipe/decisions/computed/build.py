"""Builds groups: a situation told in each of its worlds, in the same surroundings, with questions and their answers."""
from random import Random
from typing import Any, Iterator

# Imported for the templates that each registers.
from . import compare, dates, degrees, orders, records, roles, rules, truth  # noqa: F401
from .fillers import FLAGS, POOLS
from .world import TEMPLATES, WEEKDAYS, Ask, Draw, Situation, Template, Truth, clock

LONG_SHARE = 0.05
WORDS_MIN, WORDS_MAX = 15, 250  # of a text that is not long
TELL = "\x00"
REGARDING = ("About {t}: {q}", "Regarding {t}: {q}", "Look for {t}. {q}", "Concerning {t}: {q}", "On the subject of {t}: {q}")
GREETINGS = ("Hi all,", "Hello everyone,", "Dear colleagues,", "Good morning,", "Hi {A},", "Dear {A},", "Hello {A},")
FAREWELLS = ("Best, {B}", "Regards, {B}", "Thanks, {B}", "{B}", "Kind regards\n{B}", "See you, {B}")
SUBJECTS = ("A few things", "Update", "This week", "Short notes", "For your information", "News from the floor", "Before I forget")
HEADS = {
    "work": ("Handover note.", "Shift report, page {n}.", "Team notes:", "Minutes, item {n}:", "Notice board:", "Memo {code}.", ""),
    "home": ("Dear diary.", "Village newsletter, issue {n}.", "Note on the fridge:", "From the parish letter:", "Postcard from {town}.", ""),
    "tech": ("Status page:", "Operations log, entry {n}.", "Release notes {n}.{n}:", "Stand-up notes.", "Ticket {code}, comment {n}:", ""),
    "legal": ("Clause {n}.", "Schedule {n} to the agreement.", "Terms, section {n}:", "Extract from contract {code}:", ""),
}


def groups(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """`count` groups, every template about equally often, always the same ones for a seed."""
    rng = Random(seed)
    owed: dict[str, int] = {}  # per family, answers yes less answers no so far
    order: list[Template] = []
    made = 0
    while made < count:
        if not order:
            order = list(TEMPLATES)
            rng.shuffle(order)
        template = order.pop()
        for _ in range(30):
            group = build(template, Draw(rng.getrandbits(48)), owed)
            if group:
                yield group
                made += 1
                break


def build(template: Template, draw: Draw, owed: dict[str, int]) -> dict[str, Any] | None:
    """A group, or None when the draw gives no question whose answer flips."""
    what = template.make(draw)
    told: dict[str, dict[str, Any]] = {}
    for world in draw.sample(what.worlds, len(what.worlds)):
        told.setdefault(template.tell.format_map(world), world)
    is_long = draw.random() < LONG_SHARE
    kept = list(told.items())[: 2 if is_long else draw.choice((2, 3, 3, 4, 5))]
    asks = [(one, [one.holds(world) for _, world in kept]) for one in what.asks]
    flipping = [pair for pair in asks if {True, False} <= set(pair[1])]
    if len(kept) < 2 or not flipping:
        return None
    frame, facts, unused = surround(template, draw, is_long, min(len(sentence.split()) for sentence, _ in kept))
    group = _questions(template, draw, owed, what, [world for _, world in kept], facts, unused)
    if is_long:
        for part in ("questions", "choices", "scales"):
            for item in group[part]:
                if item[0] not in facts and item[0] not in unused:
                    item[0] = draw.choice(REGARDING).format(t=what.topic, q=item[0])
    texts = [frame.replace(TELL, sentence) for sentence, _ in kept]
    return {"phenomenon": template.family, "template": template.id, "texts": texts, **group}


def _questions(template, draw, owed, what: Situation, worlds, facts, unused) -> dict[str, Any]:
    family = template.family

    def put(one: Ask, answers: list[Truth], into: list) -> None:
        """Adds one wording, asked the way that brings yes and no of the family nearer to each other."""
        balance = answers.count(True) - answers.count(False)
        ahead = owed.get(family, 0)
        turned = bool(one.no) and (draw.random() < 0.5 if balance == 0 else (balance > 0) == (ahead > 0))
        text = draw.choice(one.no if turned else one.yes).format_map(worlds[0])
        into.append([text, [flip(answer) for answer in answers] if turned else answers])
        owed[family] = ahead + (-balance if turned else balance)

    flips: list = []
    steady: list = []
    asked = [(one, [one.holds(world) for world in worlds]) for one in what.asks]
    draw.shuffle(asked)
    for one, answers in asked:
        put_into = flips if {True, False} <= set(answers) else steady
        if len(put_into) < (3 if put_into is flips else 2):
            put(one, answers, put_into)
    if what.unsaid and draw.random() < 0.35:
        steady.append([draw.choice(what.unsaid).format_map(worlds[0]), [None] * len(worlds)])
    if facts and (draw.random() < 0.5 or not any(len(set(a)) == 1 for _, a in steady)):
        wanted = owed.get(family, 0) < 0 if owed.get(family) else draw.random() < 0.5
        texts = [text for text, holds in facts.items() if holds == wanted] or list(facts)
        text = draw.choice(texts)
        steady.append([text, [facts[text]] * len(worlds)])
        owed[family] = owed.get(family, 0) + (len(worlds) if facts[text] else -len(worlds))
    if draw.random() < 0.12 or not any(len(set(a)) == 1 for _, a in steady):
        steady.append([draw.choice(unused), [None] * len(worlds)])
    questions = flips + steady
    draw.shuffle(questions)
    choices = []
    for choose in draw.sample(what.chooses, min(len(what.chooses), 2)):
        options = list(dict.fromkeys(choose.options))
        draw.shuffle(options)
        right = [choose.right(world) for world in worlds]
        places = [None if option is None else options.index(option) for option in right]
        choices.append([draw.choice(choose.wordings).format_map(worlds[0]), options, places])
    scales = []
    for rate in draw.sample(what.rates, min(len(what.rates), 2)):
        text = draw.choice(rate.wordings).format_map(worlds[0])
        scales.append([text, list(rate.levels), [rate.level(world) for world in worlds]])
    return {"questions": questions, "choices": choices, "scales": scales}


def flip(answer: Truth) -> Truth:
    return None if answer is None else not answer


def surround(template: Template, draw: Draw, is_long: bool, told: int) -> tuple[str, dict[str, bool], list[str]]:
    """The text with a place for the telling sentence, what can be asked of the rest, and questions that it leaves open."""
    if template.setting == "record" and not is_long:
        return TELL, {}, [_filled(draw, line)[1] for line in draw.sample(POOLS["work"][:19], 2)]
    if is_long:
        draw.crowd()
        pool = [line for one in POOLS.values() for line in one]
        wanted, most = draw.randrange(1000, 2700), len(pool) - 4
    else:
        pool = list(POOLS[template.setting])
        wanted, most = WORDS_MAX - 40, draw.choice((0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 9, 11, 13))
    draw.shuffle(pool)
    facts: dict[str, bool] = {}
    sentences: list[str] = []
    if is_long:
        sentences += distractors(template, draw, wanted // 20)
    words = sum(len(sentence.split()) for sentence in sentences)
    while pool and (words + told < WORDS_MIN or most > 0 and words + told < wanted):
        sentence, true, false = _filled(draw, pool.pop())
        most -= 1
        words += len(sentence.split())
        sentences.append(sentence)
        for text, holds in ((true, True), (false, False)):
            bare, _, marked = text.partition("::")
            facts[bare] = holds if not marked else marked == "True"
    unused = [draw.choice(_filled(draw, line)[1:]).partition("::")[0] for line in pool[:3]]
    draw.shuffle(sentences)
    sentences.insert(draw.randrange(len(sentences) + 1), TELL)
    setting = "work" if template.setting == "record" else template.setting
    return dress(draw, setting, sentences, is_long), facts, unused


def distractors(template: Template, draw: Draw, count: int) -> list[str]:
    """Telling sentences about others: up to four of the same situation, the rest of any situation."""
    found = [template.make(draw) for _ in range(4)]
    lines = [template.tell.format_map(draw.choice(other.worlds)) for other in found]
    for other in draw.sample(TEMPLATES, count):
        if other.setting != "record" and other.name != template.name:
            lines.append(other.tell.format_map(draw.choice(other.make(draw).worlds)))
    return list(dict.fromkeys(lines))


def _slots(draw: Draw) -> dict[str, Any]:
    return {
        "A": draw.name(),
        "B": draw.name(),
        "C": draw.choice(("the supplier", "the landlord", "the operator", "the agency")),
        "day": draw.choice(WEEKDAYS),
        "n": draw.randrange(2, 10),
        "n3": draw.randrange(2, 6),
        "n4": draw.randrange(36, 47),
        "n5": draw.randrange(31, 90),
        "town": draw.town(),
        "word": draw.unused(FLAGS),
        "code": draw.code(),
    }


def _filled(draw: Draw, line: tuple[str, str, str]) -> tuple[str, ...]:
    slots = _slots(draw)
    filled = [text.format_map(slots) for text in line]
    return tuple(text[:1].upper() + text[1:] for text in filled)


def dress(draw: Draw, setting: str, sentences: list[str], is_long: bool) -> str:
    """The sentences as a mail, a chat, a list, numbered minutes, paragraphs or plain text."""
    slots = _slots(draw)
    form = draw.random()
    if is_long:
        chunks = []
        rest = list(sentences)
        while rest:
            size = draw.randrange(2, 7)
            chunks.append(rest[:size])
            rest = rest[size:]
        head = draw.choice(HEADS[setting]).format_map(slots)
        if form < 0.35:
            body = "\n\n".join(" ".join(chunk) for chunk in chunks)
        elif form < 0.6:
            body = "\n".join(f"{number}. {' '.join(chunk)}" for number, chunk in enumerate(chunks, 1))
        elif form < 0.8:
            speakers = draw.names(4)
            body = "\n".join(f"[{draw.choice(speakers)}] {' '.join(chunk)}" for chunk in chunks)
        else:
            body = " ".join(sentences)
        return f"{head}\n{body}".strip()
    text = " ".join(sentences)
    if setting == "legal":
        if form < 0.3:
            number = draw.randrange(2, 19)
            return "\n".join(f"{number}.{place} {one}" for place, one in enumerate(sentences, 1))
    elif form < 0.16:
        greeting, farewell = (draw.choice(lines).format_map(slots) for lines in (GREETINGS, FAREWELLS))
        subject = f"Subject: {draw.choice(SUBJECTS)}\n\n" if draw.random() < 0.5 else ""
        return f"{subject}{greeting}\n\n{text}\n\n{farewell}"
    elif form < 0.28 and len(sentences) > 1:
        speakers = draw.names(2)
        return "\n".join(f"{speakers[place % 2]}: {one}" for place, one in enumerate(sentences))
    elif form < 0.36 and len(sentences) > 1:
        return "\n".join(f"- {one}" for one in sentences)
    elif form < 0.42 and len(sentences) > 1:
        return "\n".join(f"{number}) {one}" for number, one in enumerate(sentences, 1))
    elif form < 0.47:
        start = draw.randrange(7, 11) * 60
        times = sorted(draw.sample(range(start, start + 200), len(sentences)))
        return "\n".join(f"[{clock(time)}] {one}" for time, one in zip(times, sentences))
    elif form < 0.52:
        return f"Ticket {slots['code']} | Reported by: {slots['A']} | Text: {text}"
    head = draw.choice(HEADS[setting]).format_map(slots)
    return f"{head} {text}".strip()
