"""Finds training inputs that share text with an evaluation set, so that they can be left out."""
import json
import re
from pathlib import Path
from typing import Iterable, Iterator

RUN_WORDS = 12  # a run this long is not shared by accident
WORD = re.compile(r"\w+")


class Overlap:
    """Remembers every run of `RUN_WORDS` words of the evaluation texts; shorter texts are remembered whole."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._runs: set[int] = set()
        self._short: set[tuple[str, ...]] = set()
        for text in texts:
            words = _words(text)
            if len(words) < RUN_WORDS:
                self._short.add(words)
            else:
                self._runs.update(_runs(words))
        self._short.discard(())

    @classmethod
    def of_folder(cls, folder: Path) -> "Overlap":
        """Over every JSON Lines file {text, question, ...} of a folder."""
        return cls(text for path in sorted(folder.glob("*.jsonl")) for text in _texts(path))

    def touches(self, text: str) -> bool:
        """Whether the text shares a run with, or a line of it is, an evaluation text."""
        if any(run in self._runs for run in _runs(_words(text))):
            return True
        return any(_words(line) in self._short for line in text.split("\n"))


def _texts(path: Path) -> Iterator[str]:
    with path.open(encoding="utf8") as lines:
        for line in lines:
            yield json.loads(line)["text"]


def _words(text: str) -> tuple[str, ...]:
    return tuple(WORD.findall(text.lower()))


# Built-in hashes hold for one process: an Overlap is made where it is used and never sent to another.
def _runs(words: tuple[str, ...]) -> Iterator[int]:
    for start in range(len(words) - RUN_WORDS + 1):
        yield hash(words[start : start + RUN_WORDS])
