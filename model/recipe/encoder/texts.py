"""The texts that the encoder reads, as the engine words them (src/engine/encoder/encoder.ts)."""
from ..examples import UNLABELLED, Option, Question


def stem(question: Question) -> str | None:
    """What the branches of a choice or score have in common, which is read once; None for a predicate."""
    if question.kind == "predicate":
        return None
    return f"question: {question.text} answer:" if question.kind == "choice" else f"question: {question.text}"


def branches(question: Question) -> list[str]:
    """After the stem, where there is one."""
    if question.kind == "predicate":
        return [f"question: {question.text}"]
    if question.kind == "choice":
        return [described(option) for option in question.options]
    last = len(question.options) - 1
    return [f"rating {i} of {last}: {described(o)}" for i, o in enumerate(question.options)]


def targets(question: Question) -> list[int]:
    """1, 0, `UNKNOWN` or `UNLABELLED` for each branch."""
    if not question.is_labelled:
        return [UNLABELLED] * (len(question.options) or 1)
    if question.kind == "predicate":
        return [question.gold]
    return [int(index == question.gold) for index in range(len(question.options))]


def described(option: Option) -> str:
    return f"{option.value}: {option.description}" if option.description else option.value
