"""Decision examples from instances of the instruction collection: definition, input and right output."""
import re
from dataclasses import dataclass
from random import Random
from typing import Sequence

from ..examples import Example, Question, choice, clip, dress, predicate, score, shuffled_choice
from ..prepare import Task
from . import inference, opinions

YES = frozenset(("yes", "true", "y", "correct"))
NO = frozenset(("no", "false", "n", "wrong", "incorrect"))
POLARITY_TASKS = frozenset(
    f"task{n}" for n in (363, 476, 477, 478, 493, 586, 761, 833, 888, 929)
)
SIMILARITY_LEVELS = (
    "completely dissimilar",
    "same topic only",
    "share some details",
    "roughly equivalent",
    "mostly equivalent",
    "equivalent",
)
OPEN_QUESTIONS = (
    "What is the correct output for this input?",
    "Which answer is correct for this task?",
    "What is the right answer?",
    "Which label applies?",
    "Following the instructions, what is the correct answer?",
)
YES_QUESTIONS = (
    "Following the instructions, is the answer yes?",
    "Is the correct answer yes?",
    "What is the correct answer, yes or no?",
)
PROPOSALS = (
    'Is "{x}" the correct answer?',
    'Is the right label "{x}"?',
    'Following the instructions, is the answer "{x}"?',
    'Should this be answered with "{x}"?',
)
ANSWER_PROPOSALS = (
    'Is "{x}" the correct answer to the question: {q}',
    '{q} Is the answer "{x}"?',
    'The question is: {q} Does the text show that the answer is "{x}"?',
)
INSTRUCTION_FRAMES = ("{d}\n\n{i}", "Task: {d}\n\nInput: {i}", "Instructions: {d}\n\n{i}", "{i}\n\n({d})")
FREE_ANSWER_CHARACTERS_MAX = 220


@dataclass(frozen=True)
class Instance:
    """One input and its right output, with the outputs of other instances to draw wrong answers from."""

    name: str
    task: Task
    text: str
    output: str
    others: Sequence[str]

    @property
    def source(self) -> str:
        return self.name.split("_")[0]


def from_instance(rng: Random, name: str, task: Task, text: str, output: str, others: Sequence[str]) -> Example | None:
    """One example, or None when this instance does not lend itself to a decision."""
    instance = Instance(name, task, text.strip(), tidy_answer(output), others)
    if not instance.text or not instance.output:
        return None
    for maker in (inference.from_instruction, opinions.flag, opinions.likeness):
        if made := maker(rng, name, instance.text, instance.output):
            return made
    if instance.source == "task588":
        return opinions.stars(rng, instance.text, int(instance.output), "amazonfood_stars")
    if instance.source in POLARITY_TASKS:
        label = "positive" if instance.output.lower().startswith(("pos", "good")) else "negative"
        return opinions.sentiment(rng, instance.text, label, ("positive", "negative"), f"{instance.source}_sentiment")
    if instance.source == "task1347":
        return _similarity(instance)
    return _labelled(rng, instance) if task.labels else _free_answer(rng, instance)


def tidy_answer(text: str) -> str:
    return text.strip().rstrip(".").strip()


def _similarity(instance: Instance) -> Example | None:
    match = inference.NUMBERED.match(instance.text)
    if not match:
        return None
    asked = score("How similar are the two sentences in meaning?", SIMILARITY_LEVELS, int(instance.output))
    return Example(f"Sentence 1: {match[1]}\nSentence 2: {match[2]}", (asked,), "similarity")


def _labelled(rng: Random, instance: Instance) -> Example | None:
    """A task with a small set of labels."""
    labels = list(dict.fromkeys(map(tidy_answer, instance.task.labels or ())))
    if instance.output not in labels:
        return None
    lettered = all(re.fullmatch(r"(?:Option |Completion |Text )?[A-H1-9]", label, re.I) for label in labels)
    if lettered and rng.random() < 0.85 and (made := _written_options(rng, instance)):
        return made
    # A long definition belongs to the evidence, which is read once, rather than to every branch.
    inside = len(instance.task.definition.split()) > 45 or rng.random() < 0.4
    asked = shorten(instance.task.definition, rng.choice((40, 60, 80)))
    evidence = _framed(rng, instance) if inside else dress(rng, instance.text) if rng.random() < 0.2 else instance.text
    question = (
        _yes_no(rng, instance, labels, asked, inside)
        if instance.output.lower() in YES | NO
        else _label_choice(rng, instance, labels, asked, inside)
    )
    return Example(evidence, (question,), instance.source) if question else None


def _framed(rng: Random, instance: Instance) -> str:
    frame = rng.choice(INSTRUCTION_FRAMES)
    return frame.replace("{d}", clip(instance.task.definition.strip(), 1_500)).replace("{i}", instance.text)


def _yes_no(rng: Random, instance: Instance, labels: Sequence[str], asked: str, inside: bool) -> Question:
    words = [label for label in labels if label.lower() in YES | NO][:2]
    if rng.random() < 0.2 and len(words) == 2 and instance.output in words:
        return choice(rng.choice(OPEN_QUESTIONS) if inside else asked, words, words.index(instance.output))
    text = rng.choice((*YES_QUESTIONS, asked)) if inside else asked
    return predicate(text, instance.output.lower() in YES)


def _label_choice(rng: Random, instance: Instance, labels: Sequence[str], asked: str, inside: bool) -> Question | None:
    wrong = [label for label in labels if label != instance.output]
    if not wrong:
        return None
    rng.shuffle(wrong)
    if rng.random() < 0.2 and len(instance.output) > 2:
        proposed = instance.output if rng.random() < 0.5 else wrong[0]
        proposal = rng.choice(PROPOSALS).replace("{x}", proposed)
        return predicate(proposal if inside else f"{asked} {proposal}", proposed == instance.output)
    options = [instance.output, *wrong[: rng.choice((1, 2, 3, 4, 6, 9))]]
    rng.shuffle(options)
    text = rng.choice(OPEN_QUESTIONS) if inside and rng.random() < 0.6 else asked
    return choice(text, _spelled(rng, options), options.index(instance.output))


def _spelled(rng: Random, options: list[str]) -> list[str]:
    """The options in one of the spellings that callers use, unless that makes two of them equal."""
    style = rng.random()
    if style < 0.75:
        return options
    spelled = [o.lower() if style < 0.9 else re.sub(r"[_-]", " ", o).strip() for o in options]
    return spelled if len(set(spelled)) == len(options) and all(spelled) else options


LETTERED_OPTIONS = (
    re.compile(r"\(?\b([A-H])\)\s*(.*?)(?=\s*,?\s*\(?\b[A-H]\)|$)", re.S),
    re.compile(r"(?<![\w.])([1-9])[.)]\s*(.*?)(?=\s*,?\s*(?<![\w.])[1-9][.)]|$)", re.S),
)
OPTIONS_HEADING = re.compile(r"\s*(?:Options|Choices)\s*:?\s*$", re.I)


def find_options(text: str) -> tuple[str, list[str], list[str]] | None:
    """Multiple choice written inside an input: (what stands before it, the letters, the option texts)."""
    for pattern in LETTERED_OPTIONS:
        matches = list(pattern.finditer(text))
        letters, values = [m[1] for m in matches], [m[2].strip(" ,;\n") for m in matches]
        if not 2 <= len(matches) <= 9 or not all(0 < len(value) < 300 for value in values):
            continue
        first = ord("A" if letters[0].isalpha() else "1")
        if letters == [chr(first + place) for place in range(len(letters))]:
            return text[: matches[0].start()].strip(), letters, values
    return None


def _written_options(rng: Random, instance: Instance) -> Example | None:
    found = find_options(instance.text)
    letter = instance.output.split(" ")[-1].upper()
    if not found or letter not in found[1]:
        return None
    body, letters, values = found
    definition = shorten(instance.task.definition, 45)
    if split := split_question(body):
        evidence, asked = split
    elif len(body) < 240 and body.endswith("?"):
        evidence, asked = definition, body
    else:
        evidence, asked = body, definition
    right = values.pop(letters.index(letter))
    if right in values:
        return None
    question = shuffled_choice(rng, OPTIONS_HEADING.sub("", asked).strip(), right, values)
    return Example(OPTIONS_HEADING.sub("", evidence).strip(), (question,), instance.source)


PASSAGE_FIRST = re.compile(r"^(.*?)\s*(?:\n|\s|<sep>)\s*(?:Question|Q)\s?[:\-]\s*(.*)$", re.S | re.I)
QUESTION_FIRST = re.compile(
    r"^\s*(?:Question|Q)\s?[:\-]\s*(.*?)\s*(?:\n|<sep>|\s)"
    r"\s*(?:Passage|Context|Paragraph|Text|Facts?|Story)\s?[:\-]\s*(.*)$",
    re.S | re.I,
)
PASSAGE_HEADING = re.compile(
    r"^(?:Context|Passage|Paragraph|Text|Fact|Story|Article|Input|Sentences?|Background paragraph|Review|Tweet"
    r"|Document)\s?[:\-]\s*",
    re.I,
)


def split_question(text: str) -> tuple[str, str] | None:
    """(passage, question) of an input that holds both."""
    match = QUESTION_FIRST.match(text)
    if match and len(match[1]) < 400 and len(match[2]) > 20:
        return match[2].strip(), match[1].strip()
    match = PASSAGE_FIRST.match(text)
    if match and 5 < len(match[2]) < 400 and len(match[1]) > 20:
        return PASSAGE_HEADING.sub("", match[1].strip()), match[2].strip()
    return None


OPENING = re.compile(r"^In this task,? ?(?:we ask you to|you are asked to|you need to|you should)?,?\s*", re.I)
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'])")


def shorten(definition: str, words_max: int) -> str:
    """The first sentences of a definition, to about so many words."""
    text = re.sub(r"\s+", " ", OPENING.sub("", definition.strip()))
    kept: list[str] = []
    count = 0
    for sentence in SENTENCE_END.split(text):
        count += len(sentence.split())
        if kept and count > words_max:
            break
        kept.append(sentence)
    short = " ".join(kept)
    return short[:1].upper() + short[1:]


def _free_answer(rng: Random, instance: Instance) -> Example | None:
    """The right answer among plausible wrong ones: spans of the same text, answers to other inputs."""
    if len(instance.output) > FREE_ANSWER_CHARACTERS_MAX:
        return None
    split, definition = split_question(instance.text), instance.task.definition
    evidence, asked = split or (instance.text, shorten(definition, 45))
    if not split and len(definition.split()) > 40 and rng.random() < 0.7:
        evidence, asked = f"{clip(definition.strip(), 1_200)}\n\n{instance.text}", rng.choice(OPEN_QUESTIONS)
    wrong = _wrong_answers(rng, evidence, instance)
    if not wrong:
        return None
    source = f"{instance.source}_answer"
    if rng.random() < 0.3:
        proposed = instance.output if rng.random() < 0.5 else wrong[0]
        frame = rng.choice(ANSWER_PROPOSALS) if split else f"{{q}} {rng.choice(PROPOSALS)}"
        text = frame.replace("{x}", proposed).replace("{q}", asked)
        return Example(evidence, (predicate(text, proposed == instance.output),), source)
    return Example(evidence, (shuffled_choice(rng, asked, instance.output, wrong),), source)


def _wrong_answers(rng: Random, evidence: str, instance: Instance) -> list[str]:
    right = instance.output
    wrong = find_spans(rng, evidence, right, rng.randrange(1, 4)) if len(right) < 60 else []
    for _ in range(8):
        other = tidy_answer(rng.choice(instance.others))
        if len(wrong) < 4 and other and other.lower() != right.lower() and other not in wrong:
            if len(other) < 3 * len(right) + 20:
                wrong.append(other)
    rng.shuffle(wrong)
    return wrong[: rng.choice((1, 2, 3, 3, 4))]


NAME_OR_NUMBER = re.compile(
    r"\b(?:[A-Z][\w'’-]+(?: (?:of |the |de |and )?[A-Z][\w'’-]+)*|\d[\d,.]*(?: (?:percent|million|years|days|people))?)"
)
NOT_A_NAME = frozenset("The A In It He She They This What Who".split())


def find_spans(rng: Random, text: str, right: str, count: int) -> list[str]:
    """Wrong answers taken from the same text: names, numbers, and for a lower-case answer runs of as many words."""
    spans = NAME_OR_NUMBER.findall(text)
    if right[:1].islower():
        words, length = text.split(), len(right.split())
        starts = [rng.randrange(max(1, len(words) - length)) for _ in range(6)]
        spans += [" ".join(words[start : start + length]).strip(".,;:!?\"'()") for start in starts]
    low = right.lower()
    distinct = dict.fromkeys(s for s in spans if len(s) > 1 and s not in NOT_A_NAME)
    usable = [s for s in distinct if s.lower() not in low and low not in s.lower()]
    rng.shuffle(usable)
    return usable[:count]
