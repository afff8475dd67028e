"""What a situation is made of: drawn names, numbers and dates, worlds that differ, and what can be asked of each."""
from dataclasses import dataclass, field
from datetime import date, timedelta
from random import Random
from typing import Any, Callable, Iterable, Sequence

from ...examples import Option

World = dict[str, Any]
Truth = bool | None  # None: the text does not tell

NAMES = (
    "Abena Adele Agnes Akira Alba Aldo Alma Amara Amir Anouk Anselm Arjun Astrid Aurora Aziz Bashir Beatriz Bela Berit"
    " Bianca Boris Bruno Camille Carmen Cedric Chidi Clara Cosmo Dagny Dalia Daria Dario Delphine Desmond Dilan Dora"
    " Edgar Edith Eduardo Elif Elodie Emeka Enzo Erik Esme Ester Fabian Fatima Felix Fiona Florian Freya Gareth Gemma"
    " Giulia Goran Greta Gustav Hana Harriet Hassan Helga Henrik Ida Ignacio Imani Inga Irina Isak Ivo Jamal Jana"
    " Jasper Joana Joaquin Jolanta Kaito Kamala Karim Katya Keira Kofi Lars Leila Lena Lorenzo Lucia Ludo Magda Malik"
    " Marek Marta Matilda Mei Milan Miriam Moses Nabil Nadine Naomi Nikos Noor Odile Olaf Oskar Pablo Petra Philippa"
    " Priya Rafael Ragnar Rania Renata Robin Rosalind Ruben Ruth Sadia Samir Sanjay Selma Simone Soren Stefan Sunita"
    " Tamar Tariq Thea Tobias Tomas Ulrike Valentin Vera Vikram Wanda Wilma Yannick Yara Zainab Zoltan"
).split()
SURNAMES = (
    "Abbott Achterberg Adeyemi Baptiste Barros Bergstrom Bianchi Calloway Castellan Cho Danso Dubois Eriksen Fairweather"
    " Ferreira Fontaine Gallagher Gupta Halvorsen Hashimi Hoffmann Iqbal Ishikawa Janssen Kaplan Keller Lindqvist Lopez"
    " Macleod Mbeki Mendes Murray Nakamura Nowak Oduya Olsen Pereira Petrov Quist Rahman Rask Reyes Sandoval Schmid"
    " Sharma Soto Stone Szabo Thorne Vance Varga Wojcik Yilmaz Zhang"
).split()
TOWNS = (
    "Alderton Brackwater Castlemoor Dunfield Eastmere Farrow Glenbrook Harwick Inverlade Kestrel Bay Lowmarsh Millbrook"
    " Northgate Oakhaven Pellworth Quarrydale Ravensby Stonebridge Thornley Umberfield Westhollow"
).replace("Kestrel Bay", "Kestrel-Bay").split()
PARTS_OF_TOWN = ("Upper", "Lower", "Old", "New", "East", "West")
COMPANIES = (
    "Arden Foods,Bluefin Logistics,Corvid Software,Delta Prints,Elmwood Dairy,Fernhill Textiles,Granite Tools,Halcyon"
    " Travel,Ironside Metals,Juniper Labs,Kingfisher Energy,Larkspur Media,Meridian Glass,Nimbus Air,Orchard"
    " Insurance,Pinecrest Homes,Quayside Shipping,Redwood Optics,Solstice Games,Tidewater Bank"
).split(",")
MONTHS = "January February March April May June July August September October November December".split()
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
DATE_STYLES = (
    lambda day: f"{day.day} {MONTHS[day.month - 1]}",
    lambda day: f"{MONTHS[day.month - 1]} {day.day}",
    lambda day: f"{WEEKDAYS[day.weekday()]}, {day.day} {MONTHS[day.month - 1]}",
    lambda day: day.isoformat(),
)


class Draw(Random):
    """A random generator that hands out each name once and writes numbers and dates in one style per group."""

    def __init__(self, seed: int):
        super().__init__(seed)
        self._taken: set[str] = set()
        self._others: list[str] = []
        self._elsewhere: list[str] = []
        self._words = self.random() < 0.5
        self._style = self.choice(DATE_STYLES)

    def unused(self, pool: Sequence[str]) -> str:
        for _ in range(8):
            found = self.choice(pool)
            if found not in self._taken:
                break
        else:
            found = self.choice([word for word in pool if word not in self._taken] or pool)
        self._taken.add(found)
        return found

    def crowd(self) -> None:
        """From here on people, places and companies have names that none of those drawn so far has."""
        self._others = [name for name in NAMES if name not in self._taken]
        self._elsewhere = [town for town in TOWNS if town not in self._taken]

    def name(self) -> str:
        if self._others:
            first = self.choice(self._others)
            return first if self.random() < 0.5 else f"{first} {self.choice(SURNAMES)}"
        first = self.unused(NAMES)
        return first if self.random() < 0.7 else f"{first} {self.unused(SURNAMES)}"

    def names(self, count: int) -> list[str]:
        return [self.name() if self._others else self.unused(NAMES) for _ in range(count)]

    def company(self) -> str:
        return f"{self.choice(SURNAMES)} & {self.choice(SURNAMES)}" if self._others else self.unused(COMPANIES)

    def town(self) -> str:
        if self._others:
            return f"{self.choice(PARTS_OF_TOWN)} {self.choice(self._elsewhere)}"
        return self.unused(TOWNS)

    def number(self, value: int) -> str:
        return WORDS[value] if self._words and 0 <= value <= 12 else f"{value:,}"

    def day(self) -> date:
        return date(2026, 2, 25) + timedelta(days=self.randrange(230))

    def write_day(self, day: date) -> str:
        return self._style(day)

    def code(self) -> str:
        while True:
            made = f"{self.choice('ABCDEFGHKLMPRSTVWX')}{self.randrange(1000, 9999)}"
            if made not in self._taken:
                self._taken.add(made)
                return made

    def distinct(self, low: int, high: int, count: int) -> list[int]:
        return self.sample(range(low, high + 1), count)


@dataclass
class Ask:
    """A question by yes or no: wordings that `holds` answers, and wordings that mean the opposite."""

    holds: Callable[[World], Truth]
    yes: tuple[str, ...]
    no: tuple[str, ...] = ()


@dataclass
class Choose:
    wordings: tuple[str, ...]
    options: list[str]
    right: Callable[[World], str | None]


@dataclass
class Rate:
    wordings: tuple[str, ...]
    levels: list[str | Option]
    level: Callable[[World], int | None]


@dataclass
class Situation:
    """`topic` names what it is about, unmistakably; the worlds differ in little and fill the slots of the wordings."""

    topic: str
    worlds: list[World]
    asks: list[Ask]
    chooses: list[Choose] = field(default_factory=list)
    rates: list[Rate] = field(default_factory=list)
    unsaid: tuple[str, ...] = ()


@dataclass(frozen=True)
class Template:
    family: str
    name: str
    number: int
    tell: str
    make: Callable[[Draw], Situation]
    setting: str

    @property
    def id(self) -> str:
        return f"{self.family}/{self.name}/{self.number}"


TEMPLATES: list[Template] = []


def situation(family: str, setting: str, *tells: str):
    """Registers a maker of situations with the sentences that can tell it: one template for each."""

    def register(make: Callable[[Draw], Situation]):
        for number, tell in enumerate(tells):
            TEMPLATES.append(Template(family, make.__name__.strip("_"), number, tell, make, setting))
        return make

    return register


def ask(holds: Callable[[World], Truth], *yes: str, no: Iterable[str] = ()) -> Ask:
    return Ask(holds, yes, tuple(no))


def worlds(base: World, changes: Iterable[World]) -> list[World]:
    return [{**base, **change} for change in changes]


def band(value: float, bounds: Sequence[float]) -> int:
    """How many of the rising bounds the value reaches."""
    return sum(value >= bound for bound in bounds)


def within(low: float, high: float, bound: float) -> Truth:
    """Whether a number known to lie from low to high is at least the bound."""
    return True if low >= bound else False if high < bound else None


def money(value: float) -> str:
    return f"{value:,.2f}" if value != int(value) else f"{int(value):,}"


def clock(minutes: int) -> str:
    return f"{minutes // 60 % 24}:{minutes % 60:02d}"


def cap(text: str) -> str:
    return text[:1].upper() + text[1:]
