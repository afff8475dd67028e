"""The topic of an encyclopedia article, read off its first sentence ("X is a French composer ...")."""
import re
from dataclasses import dataclass
from random import Random

from ..examples import Example, Option, choice, clip, dress, predicate


@dataclass(frozen=True)
class Topic:
    """`nouns` tell the topic in a first sentence, `names` are what a caller may call it."""

    nouns: str
    names: tuple[str, ...]
    description: str


TOPICS = {
    "sport": Topic(
        "footballer|basketball player|baseball player|football club|tennis player|cricketer|"
        "ice hockey|football team|swimmer|cyclist|racing driver|boxer|athlete|rugby|golfer|wrestler|"
        "sports|stadium|football player|olympic|linebacker|quarterback|pitcher|goalkeeper|marathon|"
        "championship|tournament",
        ("Sports", "sport", "Sport and athletics", "sports news"),
        "games, athletes, teams and competitions",
    ),
    "politics": Topic(
        "politician|political party|member of parliament|senator|governor|prime minister|"
        "president of|diplomat|election|minister|mayor|congressman|legislature|republican|democrat|"
        "treaty|activist|ambassador",
        ("Politics", "politics and government", "Government", "political news", "World politics"),
        "government, elections, politicians and policy",
    ),
    "business": Topic(
        "company|businessman|businesswoman|corporation|bank|entrepreneur|manufacturer|airline|"
        "retailer|brand|economist|holding|insurance|conglomerate|supermarket|stock exchange|investor",
        ("Business", "business and economy", "Economy", "companies and finance", "Finance"),
        "companies, markets, money and trade",
    ),
    "technology": Topic(
        "software|programming language|computer|operating system|web browser|protocol|microprocessor|"
        "website|video game|algorithm|file format|database|internet|smartphone|console|engineer|"
        "programmer|telecommunications",
        ("Technology", "computers and technology", "Tech", "computing", "Sci/Tech"),
        "computers, software, devices and engineering",
    ),
    "science": Topic(
        "physicist|chemist|chemical|mathematician|theorem|biologist|protein|enzyme|gene|asteroid|"
        "star|galaxy|particle|mineral|scientist|astronomer|compound|planet|equation|theory",
        ("Science", "natural science", "science and research", "Sci/Tech"),
        "research, physics, chemistry, space and mathematics",
    ),
    "medicine": Topic(
        "disease|drug|medication|syndrome|infection|surgeon|hospital|vaccine|medical|cancer|disorder|"
        "physician|antibiotic|symptom",
        ("Health", "medicine", "health and medicine", "Medical"),
        "diseases, drugs, doctors and hospitals",
    ),
    "music": Topic(
        "singer|band|album|song|single|composer|rapper|musician|guitarist|record label|opera|"
        "orchestra|pianist|drummer|music",
        ("Music", "music", "songs and musicians", "Entertainment"),
        "songs, albums, bands and singers",
    ),
    "film and television": Topic(
        "film|actor|actress|television series|tv series|sitcom|film director|episode|anime|"
        "television|screenwriter|movie",
        ("Film", "film and television", "Movies and TV", "Entertainment"),
        "films, series and actors",
    ),
    "literature": Topic(
        "novel|novelist|poet|writer|author|book|magazine|newspaper|journalist|short story|comic|poem|"
        "playwright",
        ("Literature", "books and writing", "Books", "literature"),
        "books, poems, authors and newspapers",
    ),
    "religion": Topic(
        "bishop|church|saint|pope|monastery|theologian|religious|temple|mosque|rabbi|catholic|"
        "cathedral|buddhist",
        ("Religion", "religion and belief", "faith"),
        "faith, churches and clergy",
    ),
    "military": Topic(
        "battle|military|general|soldier|army|warship|navy|missile|air force|regiment|aircraft|war|"
        "submarine|destroyer|rifle|tank",
        ("Military", "war and armed forces", "Armed forces", "Defence"),
        "armies, weapons and battles",
    ),
    "geography": Topic(
        "village|town|city|municipality|river|mountain|lake|island|county|district|province|commune|"
        "region|suburb|township|bay|valley|peninsula",
        ("Geography", "places", "Places and geography", "Travel"),
        "cities, rivers, mountains and regions",
    ),
    "nature": Topic(
        "species|genus|bird|fish|moth|beetle|plant|tree|dinosaur|mammal|frog|snake|flower|fungus|"
        "breed|insect|butterfly|shark|grass",
        ("Nature", "animals and plants", "Wildlife", "Biology"),
        "animals, plants and other living things",
    ),
    "history": Topic(
        "emperor|king of|queen|dynasty|kingdom|empire|nobleman|archaeological|ancient|medieval|"
        "pharaoh|duke|historian",
        ("History", "history", "Historical figures and events"),
        "past rulers, empires and events",
    ),
    "education": Topic(
        "university|college|school|academic|professor|institute|student",
        ("Education", "schools and universities", "education"),
        "schools, universities and teaching",
    ),
    "transport": Topic(
        "railway|station|highway|airport|locomotive|road|bridge|automobile|car|ship|bus|metro|"
        "motorway",
        ("Transport", "transportation", "vehicles and traffic", "Autos"),
        "roads, railways, cars and ships",
    ),
    "food": Topic(
        "dish|cuisine|drink|beer|wine|cheese|bread|soup|fruit|dessert|restaurant|sauce|chef",
        ("Food", "food and drink", "Cooking"),
        "dishes, drinks and cooking",
    ),
    "law": Topic(
        "court|judge|lawyer|law|act of|supreme court|attorney|crime|criminal|prison|police|statute",
        ("Law", "law and crime", "Crime", "Legal"),
        "courts, crimes and legislation",
    ),
}

# Pairs so close that one is not a wrong answer for the other.
NEAR = frozenset(
    frozenset(pair)
    for pair in (
        ("film and television", "music"),
        ("geography", "transport"),
        ("history", "literature"),
        ("history", "military"),
        ("history", "politics"),
        ("history", "religion"),
        ("law", "politics"),
        ("medicine", "science"),
        ("nature", "science"),
        ("science", "technology"),
    )
)

PATTERNS = {key: re.compile(rf"\b(?:{topic.nouns})s?\b", re.I) for key, topic in TOPICS.items()}
FIRST_SENTENCE = re.compile(
    r"\b(?:is|was|are|were) (?:an?|the|one of the)\b(.{3,90}?)(?:[.,;]| who | which | that | from | by | for )"
)
IS_ABOUT = (
    "Is this text about {x}?",
    "Is {x} the topic of the text?",
    'Does this article belong in the section "{x}"?',
    "Would you file this under {x}?",
)
WHICH_TOPIC = (
    "What is this text about?",
    "What is this news article about?",
    "Which category fits the article?",
    "Which topic does the text belong to?",
    "Which section should this be filed under?",
    "Classify the text by topic.",
)


def find_topic(text: str) -> str | None:
    """The one topic that the first sentence names; None when it names none or several."""
    match = FIRST_SENTENCE.search(text[:320])
    found = [key for key, pattern in PATTERNS.items() if match and pattern.search(match[1])]
    return found[0] if len(found) == 1 else None


def from_article(rng: Random, text: str) -> Example | None:
    topic = find_topic(text)
    if topic is None:
        return None
    sentences = re.split(r"(?<=[.!?])\s+", text.replace("\n", " "))
    # Often without the sentence that gives the topic away.
    if len(sentences) > 4 and rng.random() < 0.6:
        sentences = sentences[1:]
    evidence = clip(" ".join(sentences), rng.choice((200, 400, 700, 1_200)))
    if len(evidence) < 80:
        return None
    others = [key for key in TOPICS if key != topic and frozenset((key, topic)) not in NEAR]
    if rng.random() < 0.3:
        named = topic if rng.random() < 0.5 else rng.choice(others)
        text_asked = rng.choice(IS_ABOUT).replace("{x}", rng.choice(TOPICS[named].names))
        return Example(dress(rng, evidence), (predicate(text_asked, named == topic),), "topic")
    keys = [topic, *rng.sample(others, rng.choice((1, 2, 3, 3, 4, 6, 9)))]
    options = _options(rng, keys)
    right = options[0]
    rng.shuffle(options)
    asked = choice(rng.choice(WHICH_TOPIC), options, options.index(right))
    return Example(dress(rng, evidence), (asked,), "topic")


def _options(rng: Random, keys: list[str]) -> list[Option]:
    """An option per topic; names that two topics share are used once."""
    described, used = rng.random() < 0.35, set[str]()
    options = []
    for key in keys:
        name = rng.choice([name for name in TOPICS[key].names if name not in used])
        used.add(name)
        options.append(Option(name, TOPICS[key].description if described else None))
    return options
