"""Generated decisions over structured records: field look-ups, comparisons, rules, rating scales, lists."""
import json
from random import Random
from typing import Any, Callable

from ..examples import Example, Option, Question, example, predicate, score, shuffled_choice

FIRST_NAMES = (
    "Anna Ben Carla David Elena Farid Grace Hugo Ines Jonas Kim Liam Maria Nadia Omar Paula Quinn Rosa Sven Tara Uma"
    " Victor Wei Xenia Yusuf Zoe Peter Julia Mark Olga"
).split()
LAST_NAMES = (
    "Miller Garcia Chen Novak Rossi Kumar Smith Okafor Weber Larsen Silva Tanaka Moreau Kowalski Haddad Jensen Brown"
    " Ivanov Costa Ahmed"
).split()
CITIES = (
    "Berlin Paris Madrid Oslo Tokyo Austin Denver Lagos Cairo Lima Toronto Dublin Prague Seoul Mumbai Boston Zurich"
    " Lisbon"
).split()
COUNTRIES = "Germany France Spain Norway Japan Canada Nigeria Egypt Peru Ireland India Brazil Italy Poland Kenya".split()
PRODUCTS = (
    "laptop,headphones,office chair,coffee machine,phone case,winter jacket,running shoes,desk lamp,backpack,monitor,"
    "keyboard,water bottle,camera,tablet,blender,bicycle,tent,printer"
).split(",")
STATUSES = "open,closed,pending,shipped,cancelled,approved,rejected,in review,draft,paid,overdue".split(",")
PRIORITIES = ["low", "medium", "high", "critical"]
DEPARTMENTS = ["billing", "technical support", "shipping", "account", "sales", "human resources"]
TAGS = "vip new trial gift bulk return express fragile internal".split()
MAIL_DOMAINS = ["example.com", "mail.test", "corp.example"]

NUMBERS = {
    "amount": "the amount",
    "quantity": "the quantity",
    "age": "the age",
    "score": "the score",
    "temperature": "the temperature",
    "attempts": "the number of attempts",
    "id": "the id",
}
VALUES = {
    "status": STATUSES,
    "priority": PRIORITIES,
    "city": CITIES,
    "country": COUNTRIES,
    "product": PRODUCTS,
    "department": DEPARTMENTS,
}
TRAITS = {"verified": "verified", "newsletter": "subscribed to the newsletter"}

# Field, question, levels as (name, from, below).
SCALES: tuple[tuple[str, str, tuple[tuple[str, int, int | None], ...]], ...] = (
    ("amount", "How large is the amount?", (("small", 0, 100), ("medium", 100, 1_000), ("large", 1_000, None))),
    (
        "score",
        "How high is the score?",
        (("very low", 0, 20), ("low", 20, 40), ("average", 40, 60), ("high", 60, 80), ("very high", 80, 101)),
    ),
    (
        "age",
        "Which age group does the person belong to?",
        (("minor", 0, 18), ("young adult", 18, 30), ("adult", 30, 65), ("senior", 65, 200)),
    ),
    (
        "temperature",
        "How warm is it?",
        (("freezing", -100, 0), ("cold", 0, 12), ("mild", 12, 23), ("hot", 23, 100)),
    ),
    (
        "attempts",
        "How suspicious is the number of attempts?",
        (("none", 0, 1), ("low", 1, 3), ("medium", 3, 6), ("high", 6, 99)),
    ),
)

Record = dict[str, Any]  # field values are text, numbers, booleans or a list of tags


def from_nothing(rng: Random) -> Example | None:
    """A made-up record, or a short list of them, and questions about it."""
    if rng.random() < 0.15:
        return _list_of_records(rng)
    record = make_record(rng)
    questions: list[Question | None] = [ask_field(rng, record) for _ in range(rng.randrange(1, 5))]
    if rng.random() < 0.3:
        questions.append(ask_rule(rng, record))
    if rng.random() < 0.4:
        questions.append(ask_scale(rng, record))
    return example(write(rng, record), questions, "record")


def make_name(rng: Random) -> str:
    return f"{rng.choice(FIRST_NAMES)} {rng.choice(LAST_NAMES)}"


def make_date(rng: Random) -> str:
    return f"20{rng.randrange(19, 27)}-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}"


def make_record(rng: Random) -> Record:
    name = make_name(rng)
    full: Record = {
        "id": rng.randrange(100, 99_999),
        "name": name,
        "city": rng.choice(CITIES),
        "country": rng.choice(COUNTRIES),
        "age": rng.randrange(16, 85),
        "status": rng.choice(STATUSES),
        "priority": rng.choice(PRIORITIES),
        "amount": round(rng.choice((rng.uniform(1, 100), rng.uniform(100, 5_000))), 2),
        "quantity": rng.randrange(1, 60),
        "product": rng.choice(PRODUCTS),
        "created": make_date(rng),
        "verified": rng.random() < 0.5,
        "newsletter": rng.random() < 0.5,
        "department": rng.choice(DEPARTMENTS),
        "score": rng.randrange(0, 101),
        "temperature": rng.randrange(-15, 42),
        "attempts": rng.randrange(0, 12),
        "email": f"{name.split()[0].lower()}@{rng.choice(MAIL_DOMAINS)}",
        "tags": rng.sample(TAGS, rng.randrange(0, 4)),
        "assigned_to": make_name(rng),
    }
    return {field: full[field] for field in rng.sample(list(full), rng.randrange(4, 11))}


def write(rng: Random, record: Record) -> str:
    """A record as JSON, as labelled lines or as one line of pairs."""
    draw = rng.random()
    if draw < 0.65:
        return json.dumps(record, indent=None if draw < 0.45 else 2)
    if draw < 0.85:
        return "\n".join(f"{field.replace('_', ' ').capitalize()}: {value}" for field, value in record.items())
    return "; ".join(f"{field}={value}" for field, value in record.items())


def ask_field(rng: Random, record: Record) -> Question | None:
    """A question about one field, by what kind of value it holds."""
    field = rng.choice(list(record))
    value = record[field]
    if isinstance(value, bool):
        negated = rng.random() < 0.3
        who = rng.choice(("user", "customer", "account"))
        return predicate(f"Is the {who} {'not ' if negated else ''}{TRAITS[field]}?", value != negated)
    if field in NUMBERS:
        return ask_number(rng, NUMBERS[field], value)
    if field in VALUES:
        return _ask_value(rng, field, value)
    makers: dict[str, Callable[[Random, Any], Question]] = {
        "tags": _ask_tag,
        "name": lambda r, v: _ask_name(r, v, "Is the person called {x}?", "What is the name?"),
        "assigned_to": lambda r, v: _ask_name(r, v, "Is the assignee called {x}?", "Who is it assigned to?"),
        "created": _ask_year,
        "email": _ask_mail_domain,
    }
    return makers[field](rng, value)


def near(rng: Random, value: float) -> float:
    """Another number, close enough that the comparison has to be made."""
    sign = rng.choice((-1, 1))
    if isinstance(value, float):
        return round(max(0.5, value + sign * rng.choice((0.5, 5, 25, 100, 500, value * 0.5))), 2)
    return value + sign * rng.choice((1, 2, 3, 5, 10, 20, 40))


def ask_number(rng: Random, noun: str, value: float) -> Question:
    bound = near(rng, value)
    match rng.randrange(6):
        case 0:
            return predicate(f"Is {noun} greater than {bound}?", value > bound)
        case 1:
            return predicate(f"Is {noun} {rng.choice(('less than', 'below', 'under'))} {bound}?", value < bound)
        case 2:
            return predicate(f"Is {noun} at least {bound}?", value >= bound)
        case 3:
            named = value if rng.random() < 0.5 else bound
            return predicate(f"Is {noun} exactly {named}?", value == named)
        case 4:
            low, high = sorted((near(rng, value), near(rng, value)))
            return predicate(f"Is {noun} between {low} and {high}?", low <= value <= high)
        case _:
            wrong = dict.fromkeys(str(near(rng, value)) for _ in range(3))
            wrong.pop(str(value), None)
            return shuffled_choice(rng, f"What is {noun}?", str(value), [*wrong, str(value + 1_000)][:3])


def _ask_value(rng: Random, field: str, value: str) -> Question:
    others = [other for other in VALUES[field] if other != value]
    if rng.random() < 0.5:
        named = value if rng.random() < 0.5 else rng.choice(others)
        negated = rng.random() < 0.15
        return predicate(f"Is the {field} {'anything other than ' if negated else ''}{named}?", (named == value) != negated)
    asked = rng.choice(("What is the {x}?", "Which {x} is recorded?", "Which {x} does the record show?"))
    wrong = rng.sample(others, min(len(others), rng.choice((1, 2, 3, 5))))
    return shuffled_choice(rng, asked.replace("{x}", field), value, wrong)


def _ask_tag(rng: Random, tags: list[str]) -> Question:
    named = rng.choice(tags) if tags and rng.random() < 0.5 else rng.choice(TAGS)
    return predicate(rng.choice(('Is the record tagged "{x}"?', "Does it have the tag {x}?")).replace("{x}", named), named in tags)


def _ask_name(rng: Random, name: str, is_called: str, what: str) -> Question:
    if rng.random() < 0.5:
        named = name if rng.random() < 0.5 else make_name(rng)
        return predicate(is_called.replace("{x}", named), named == name)
    namesake = f"{name.split()[0]} {rng.choice(LAST_NAMES)}"
    wrong = dict.fromkeys((make_name(rng), make_name(rng), namesake))
    wrong.pop(name, None)
    return shuffled_choice(rng, what, name, list(wrong))


def _ask_year(rng: Random, date: str) -> Question:
    year, named = int(date[:4]), rng.randrange(2018, 2028)
    match rng.randrange(3):
        case 0:
            return predicate(f"Was it created {rng.choice(('after', 'later than'))} {named}?", year > named)
        case 1:
            return predicate(f"Was it created before {named}?", year < named)
        case _:
            named = year if rng.random() < 0.5 else named
            return predicate(f"Was it created in {named}?", year == named)


def _ask_mail_domain(rng: Random, address: str) -> Question:
    named = rng.choice(MAIL_DOMAINS)
    return predicate(f"Does the email address end in {named}?", address.endswith(f"@{named}"))


def ask_rule(rng: Random, record: Record) -> Question | None:
    """A policy of two conditions."""
    numbers = [field for field in record if field in NUMBERS and field != "id"]
    values = [field for field in record if field in VALUES]
    if not numbers or not values:
        return None
    number, field = rng.choice(numbers), rng.choice(values)
    bound = near(rng, record[number])
    named = record[field] if rng.random() < 0.6 else rng.choice(VALUES[field])
    above, same = record[number] > bound, record[field] == named
    noun = NUMBERS[number]
    if rng.random() < 0.6:
        rule = f"The rule applies only if {noun} is above {bound} and the {field} is {named}. Does the rule apply?"
        return predicate(rule, above and same)
    rule = f"Escalate if {noun} is above {bound} or the {field} is {named}. Should this be escalated?"
    return predicate(rule, above or same)


def ask_scale(rng: Random, record: Record) -> Question | None:
    fitting = [scale for scale in SCALES if scale[0] in record]
    if not fitting:
        return None
    field, asked, levels = rng.choice(fitting)
    described = rng.random() >= 0.25
    options = [
        Option(name, (f"{low} or more" if high is None else f"from {low} to below {high}") if described else None)
        for name, low, high in levels
    ]
    value = record[field]
    gold = next(i for i, (_, low, high) in enumerate(levels) if low <= value and (high is None or value < high))
    return score(asked, options, gold)


def _list_of_records(rng: Random) -> Example | None:
    rows = [
        {
            "name": make_name(rng),
            "city": rng.choice(CITIES),
            "status": rng.choice(STATUSES),
            "quantity": rng.randrange(1, 60),
        }
        for _ in range(rng.randrange(2, 8))
    ]
    if len({row["name"] for row in rows}) < len(rows):
        return None
    row = rng.choice(rows)
    name, city = row["name"], str(row["city"])
    wrong = dict.fromkeys([*(str(other["city"]) for other in rows), rng.choice(CITIES)])
    wrong.pop(city, None)
    status = row["status"] if rng.random() < 0.5 else rng.choice(STATUSES)
    bound = near(rng, int(row["quantity"]))
    questions = [
        predicate(f"Is the status of {name} {status}?", status == row["status"]),
        predicate(f"Does {name} have a quantity above {bound}?", int(row["quantity"]) > bound),
        shuffled_choice(rng, f"Which city is recorded for {name}?", city, list(wrong)[:4]) if wrong else None,
    ]
    if rng.random() < 0.6:
        evidence = json.dumps(rows, indent=rng.choice((None, 2)))
    else:
        evidence = "\n".join(", ".join(f"{field}: {value}" for field, value in r.items()) for r in rows)
    return example(evidence, questions, "record_list")
