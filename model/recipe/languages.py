"""Texts written in other languages, asked about in their language and in English.

`banks/languages/` has a file a language and a group or an everyday text a line; banks/FORMAT.md describes it.
"""
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator

from .decisions.contrast import Group, group_of

FOLDER = "languages"
# Never trained on, neither in whole languages nor in whole lines of the others.
KEPT_BACK_LANGUAGES = ("sv", "vi")
KEPT_BACK_ONE_IN = 8


@dataclass(frozen=True)
class Written:
    """The same texts twice: `own` is asked in their language, `english` in English. An everyday text is alone in its group."""

    language: str
    own: Group
    english: Group


def written(banks: Path, kept_back: bool = False) -> Iterator[Written]:
    """What may be trained on; what is kept back only when asked for."""
    for file in sorted((banks / FOLDER).glob("*.jsonl")):
        with file.open(encoding="utf8") as lines:
            for number, line in enumerate(lines):
                record = json.loads(line)
                if is_kept_back(file.stem, record) == kept_back:
                    english = {"texts": record["texts"], **record["english"]}
                    source = record["set"]
                    yield Written(file.stem, group_of(record, source, number), group_of(english, f"{source}-asked-in-en", number))


def is_kept_back(language: str, record: dict[str, Any]) -> bool:
    drawn = int.from_bytes(hashlib.sha256(record["texts"][0].encode()).digest()[:4], "big")
    return language in KEPT_BACK_LANGUAGES or drawn % KEPT_BACK_ONE_IN == 0
