"""Questions about what a text implies, from pairs labelled as entailed, neutral or contradicted."""
import re
from random import Random
from typing import Literal, Sequence

from ..examples import Example, Option, Question, choice, dress, predicate

# "not_entailed" is all that some sets know: neutral or contradicted.
Relation = Literal["entailed", "neutral", "contradicted", "not_entailed"]
THREE: tuple[Relation, ...] = ("entailed", "neutral", "contradicted")

# {h} is the statement as it stands, {l} the same with a small first letter and a question mark at its end.
ENTAILED = (
    'Does the text imply that the following statement is true? "{h}"',
    'Is the following statement supported by the text? "{h}"',
    "Based on the text, is it true that {l}",
    'Can we conclude from the text that "{h}"?',
    "According to the text, is this correct: {h}",
    'Does the evidence support this claim? "{h}"',
    "Is it certain, given the text, that {l}",
    'Does it follow from the text that "{h}"?',
    "Is this statement true given the passage? {h}",
    "Does the passage confirm that {l}",
    "{h} Is that right?",
    'Is "{h}" a correct conclusion?',
    'Does the text say or imply "{h}"?',
    "Given the evidence, should we believe that {l}",
)
CONTRADICTED = (
    'Does the text contradict the statement "{h}"?',
    'Is the following statement false according to the text? "{h}"',
    "Is this claim refuted by the text? {h}",
    "Does the evidence rule out that {l}",
    'Is "{h}" inconsistent with the text?',
    'Does the text make it clear that the following is not the case? "{h}"',
)
NEUTRAL = (
    'Is it impossible to tell from the text whether "{h}"?',
    "Does the text leave open whether {l}",
    'Is there not enough information to decide if the following is true? "{h}"',
    'Is the truth of "{h}" undetermined by the text?',
)
RELATION = (
    'What is the relationship between the text and the statement "{h}"?',
    'Given the text, how should the statement "{h}" be judged?',
    'Is this statement true, false or undetermined? "{h}"',
    "Classify the statement with respect to the text: {h}",
)
RELATION_NAMES = (
    ("entailment", "neutral", "contradiction"),
    ("true", "cannot be determined", "false"),
    ("supported", "not enough information", "refuted"),
    ("yes", "unclear", "no"),
    ("follows from the text", "is possible but not stated", "conflicts with the text"),
)
RELATION_DESCRIPTIONS = (
    "the statement must be true if the text is true",
    "the text neither confirms nor denies the statement",
    "the statement cannot be true if the text is true",
)
SUPPORT = (
    'Does the text support the claim "{h}"?',
    "Is the author of the text likely to agree that {l}",
    'Does this perspective support the claim "{h}"?',
)
FOLLOWS = (
    "Which statement follows from the text?",
    "Which of these can be inferred from the text?",
    "Which statement is supported by the evidence?",
)
CONFLICTS = ("Which statement contradicts the text?", "Which of these statements clearly disagrees with the text?")

# First words that carry no meaning in their capital letter.
COMMON_OPENINGS = frozenset(
    "The A An There Some It He She They This These People Two Three Many His Her All In No One".split()
)


def fill(template: str, statement: str) -> str:
    """The template with the statement in it."""
    statement = statement.strip()
    clause = _lower_opening(statement)
    if not clause.endswith("?"):
        clause = clause.removesuffix(".") + "?"
    return template.replace("{h}", statement).replace("{l}", clause)


def judge(rng: Random, statement: str, relation: Relation) -> Question:
    """One question about a statement whose relation to the evidence is known."""
    draw = rng.random()
    if relation == "not_entailed" or draw < 0.55:
        return predicate(fill(rng.choice(ENTAILED), statement), relation == "entailed")
    if draw < 0.70:
        return predicate(fill(rng.choice(CONTRADICTED), statement), relation == "contradicted")
    if draw < 0.76:
        return predicate(fill(rng.choice(NEUTRAL), statement), relation == "neutral")
    return _relation_choice(rng, statement, relation)


def pairs(rng: Random, premise: str, statements: Sequence[tuple[str, Relation]], source: str) -> Example:
    return Example(dress(rng, premise), tuple(judge(rng, text, relation) for text, relation in statements), source)


def _relation_choice(rng: Random, statement: str, relation: Relation) -> Question:
    names = rng.choice(RELATION_NAMES)
    described = rng.random() < 0.3
    options = [Option(n, d if described else None) for n, d in zip(names, RELATION_DESCRIPTIONS)]
    right = options[THREE.index(relation)]
    if relation != "neutral" and rng.random() < 0.25:
        options = [options[0], options[2]]
    rng.shuffle(options)
    return choice(fill(rng.choice(RELATION), statement), options, options.index(right))


def _lower_opening(text: str) -> str:
    return text[0].lower() + text[1:] if text.split(" ")[0] in COMMON_OPENINGS else text


# How the instruction tasks write a pair into one input.
NUMBERED = re.compile(r"^\s*Sentence ?1 ?: ?(.*?)\s*Sentence ?2 ?: ?(.*)$", re.S | re.I)
THREE_CHOICES = re.compile(r"^\s*Statement: (.*?)\s*Choices:\s*1\. ?(.*?)\s*2\. ?(.*?)\s*3\. ?(.*)$", re.S)
PREMISE = re.compile(r"^\s*Premise\s*:\s*(.*?)\s*\n?\s*Hypothesis\s*:\s*(.*)$", re.S)
LETTERED = re.compile(r"^\s*sentence_A: ?(.*?) sentence_B: ?(.*)$", re.S)
CLAIM = re.compile(r"^\s*claim: ?(.*?)\s*\n\s*perspective: ?(.*)$", re.S)
REWRITE = re.compile(r"task18[4-8]_snli_(entailment|contradiction|neutral)_to_(entailment|contradiction|neutral)")

INITIAL: dict[str, Relation] = {"e": "entailed", "n": "neutral", "c": "contradicted"}


def from_instruction(rng: Random, task: str, text: str, output: str) -> Example | None:
    """An example from a task of the entailment kind; None when the task is of another kind or does not parse."""
    number = task.split("_")[0]
    output = output.strip()
    if number in ("task200", "task201", "task202"):
        return _three_choices(rng, INITIAL["enc"[int(number[-1])]], text, output)
    if number == "task738" and (match := CLAIM.match(text)):
        asked = predicate(fill(rng.choice(SUPPORT), match[1]), output == "support")
        return Example(dress(rng, match[2].strip()), (asked,), "perspectrum")
    if rewrite := REWRITE.match(task):
        match = NUMBERED.match(text)
        made = [(match[2], INITIAL[rewrite[1][0]]), (output, INITIAL[rewrite[2][0]])] if match else None
        return pairs(rng, match[1], made, "snli") if match and made else None
    parsed = _labelled_pair(number, text, output)
    return pairs(rng, parsed[0], [parsed[1:3]], parsed[3]) if parsed else None


def _labelled_pair(number: str, text: str, output: str) -> tuple[str, str, Relation, str] | None:
    """(premise, statement, relation, source) of the tasks that hold one labelled pair."""
    entails: Relation = "entailed" if output == "entails" else "not_entailed"
    match number:
        case "task190" if m := NUMBERED.match(text):
            return m[1], m[2], INITIAL[output.lower()], "snli"
        case "task199" if m := NUMBERED.match(text):
            return m[1], m[2], "entailed" if output == "yes" else "contradicted", "mnli"
        case "task640" if "<sep>" in text:
            premise, statement = text.split("<sep>", 1)
            return premise.strip(), statement.strip(), INITIAL[output[0].lower()], "snli"
        case "task1529" if m := PREMISE.match(text):
            return m[1], m[2], entails, "scitail"
        case "task1554" if m := NUMBERED.match(text):
            return m[2], m[1], entails, "scitail"
        case "task1612" if m := LETTERED.match(text):
            return m[1], m[2], THREE[int(output)], "sick"
        case "task1615" if m := LETTERED.match(text):
            return m[1], m[2], INITIAL[output.split("_")[1][0]], "sick"
        case _:
            return None


def _three_choices(rng: Random, relation: Relation, text: str, output: str) -> Example | None:
    match = THREE_CHOICES.match(text)
    if not match:
        return None
    statements, right = [match[n].strip() for n in (2, 3, 4)], int(output) - 1
    questions = [judge(rng, statements[right], relation)]
    if relation == "contradicted":
        questions.append(choice(rng.choice(CONFLICTS), statements, right))
    if relation == "entailed":
        questions.append(choice(rng.choice(FOLLOWS), statements, right))
        questions.append(predicate(fill(rng.choice(ENTAILED), statements[right]), True))
        others = [s for i, s in enumerate(statements) if i != right and rng.random() < 0.6]
        questions.extend(judge(rng, statement, "not_entailed") for statement in others)
    return Example(dress(rng, match[1].strip()), tuple(questions), "mnli")
