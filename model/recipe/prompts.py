"""The prompt texts, exactly as the server writes them; prefix and suffix are tokenised on their own.

`prompts.json` beside this file holds question and text pairs that both this module and the server are tested against.
"""
from .examples import Option, Question

TAIL = "<|im_end|>\n<|im_start|>assistant\n"


def prefix(evidence: str) -> str:
    """The start of the user turn, ending with the evidence."""
    return f"<|im_start|>user\n{evidence}"


def predicate(instructions: str, yes_means: str = "", no_means: str = "") -> str:
    criteria = (f"\nYes means: {yes_means}" if yes_means else "") + (f"\nNo means: {no_means}" if no_means else "")
    return f"\n\nQuestion: {instructions}{criteria}\nAnswer yes or no."


def choice(instructions: str, option: Option) -> str:
    return (
        f"\n\nQuestion: {instructions}\nProposed answer: {_described(option)}"
        "\nIs the proposed answer correct? Answer yes or no."
    )


def level(instructions: str, option: Option, index: int, count: int) -> str:
    return (
        f"\n\nQuestion: {instructions}\nProposed rating: {_described(option)} (level {index} of 0..{count - 1})"
        "\nIs the proposed rating correct? Answer yes or no."
    )


def branches(question: Question) -> list[str]:
    """The branch texts of a question, one per binary read, without the template's own tokens."""
    match question.kind:
        case "predicate":
            return [predicate(question.text)]
        case "choice":
            return [choice(question.text, option) for option in question.options]
        case "score":
            count = len(question.options)
            return [level(question.text, option, index, count) for index, option in enumerate(question.options)]


def targets(question: Question) -> list[bool]:
    """Whether yes is the right answer to each branch."""
    if question.kind == "predicate":
        return [question.gold == 1]
    return [index == question.gold for index in range(len(question.options))]


def _described(option: Option) -> str:
    return f"{option.value} - {option.description}" if option.description else option.value
