"""Reads evaluation sets.

Sets are JSON Lines {text, question, options, gold}; the options yes and no are a predicate, any others a choice, or the
levels of a score, lowest first, where `kind` says "score" or "scale".
"""
import json
from pathlib import Path
from random import Random
from typing import Any

ROWS_MAX = 500
MANY_OPTIONS = 20
MANY_OPTIONS_ROWS_MAX = 300
SCORES = ("score", "scale")


def read_all(path: Path) -> list[dict[str, Any]]:
    # Not splitlines: texts hold other characters that it takes for the end of a line.
    return [json.loads(text) for text in path.read_text(encoding="utf8").rstrip("\n").split("\n")]


def read_sample(path: Path) -> list[dict[str, Any]]:
    """The same rows of a set every time."""
    rows = read_all(path)
    Random(0).shuffle(rows)
    many = len(rows[0]["options"]) > MANY_OPTIONS
    return rows[: MANY_OPTIONS_ROWS_MAX if many else ROWS_MAX]
