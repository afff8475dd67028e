"""The texts that the encoder reads, as the engine words them (src/engine/encoder/branch-text.ts)."""
from ..examples import Option, Question


def branches(question: Question) -> list[str]:
    stem = f"question: {question.text}"
    if question.kind == "predicate":
        return [stem]
    if question.kind == "choice":
        return [f"{stem} answer: {described(option)}" for option in question.options]
    last = len(question.options) - 1
    return [f"{stem} rating {i} of {last}: {described(o)}" for i, o in enumerate(question.options)]


def targets(question: Question) -> list[int]:
    """1, 0 or `UNKNOWN` for each branch."""
    if question.kind == "predicate":
        return [question.gold]
    return [int(index == question.gold) for index in range(len(question.options))]


def described(option: Option) -> str:
    return f"{option.value}: {option.description}" if option.description else option.value
