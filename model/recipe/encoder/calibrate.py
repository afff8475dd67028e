"""Temperature and bias of each kind of question, fitted on the margins of the kept-back banks that `evaluate` wrote.

The kept-back tasks are left out: many ask for what the model cannot know, and would make it doubt everything. A margin m becomes m / temperature + bias; the log loss of the server's own rule is minimised.
"""
import json
from typing import Any, Iterator, Sequence

import numpy

from ..config import Recipe
from ..scoring import is_predicate
from ..sets import SCORES, read_all

Row = tuple[Sequence[str], str, Sequence[float]]
TEMPERATURES = tuple(0.6 * 1.06**step for step in range(40))  # 0.6 to 5.8
TOLERANCE = 0.01
BIASES = {
    "predicate": (0.0,),  # yes and no alike
    "choice": (-20.0,),  # a plain softmax; -4 fits the kept-back choices 1.6 % better, and makes the calibration error of public sets worse
    "score": tuple(b / 2 for b in range(-12, 5)),
}


def calibrate(recipe: Recipe) -> None:
    margins = json.loads(recipe.checkpoint("encoder").with_suffix(".margins.json").read_text(encoding="utf8"))
    by_kind: dict[str, list[list[Row]]] = {"predicate": [], "choice": [], "score": []}
    for path in sorted(recipe.kept_back.glob("banks-*.jsonl")):
        rows = read_all(path)
        for kind, part in _parts(rows, margins[path.stem]):
            by_kind[kind].append(part)
    fitted = {kind: fit(sets, BIASES[kind]) for kind, sets in by_kind.items() if sets}
    (recipe.work / "calibration.json").write_text(json.dumps(fitted), encoding="utf8")
    print(f"calibration: {fitted}", flush=True)


def fit(sets: Sequence[Sequence[Row]], biases: Sequence[float]) -> dict[str, float]:
    """The best temperature for each bias of a coarse grid; of those that are as good, the lowest bias.

    The loss is flat about its minimum. A low bias makes a choice a softmax of its margins, in which many unlikely options
    do not add up; trained with smoothing, each of them keeps a margin of about -4.
    """
    tables = [_Table(rows) for rows in sets]
    losses = {(b, t): sum(table.loss(t, b) for table in tables) for b in biases for t in TEMPERATURES}
    enough = min(losses.values()) * (1 + TOLERANCE)
    bias = min(b for (b, _), loss in losses.items() if loss <= enough)
    temperature = min(TEMPERATURES, key=lambda t: losses[bias, t])
    return {"temperature": round(temperature, 3), "bias": bias}


class _Table:
    """The margins of a set side by side, so that one temperature is tried on all rows at once."""

    def __init__(self, rows: Sequence[Row]) -> None:
        width = max(len(margins) for _, _, margins in rows)
        self.margins = numpy.full((len(rows), width), -numpy.inf)
        for row, (_, _, margins) in zip(self.margins, rows):
            row[: len(margins)] = margins
        self.single = is_predicate(rows[0][0])
        self.gold = numpy.array([gold == "yes" if self.single else options.index(gold) for options, gold, _ in rows], int)

    def loss(self, temperature: float, bias: float) -> float:
        logs = -numpy.logaddexp(0, -(self.margins / temperature + bias))
        if self.single:
            no = -numpy.logaddexp(0, self.margins[:, 0] / temperature + bias)
            return -float(numpy.where(self.gold == 1, logs[:, 0], no).mean())
        right = logs[numpy.arange(len(logs)), self.gold]
        return float((numpy.logaddexp.reduce(logs, axis=1) - right).mean())


def _parts(rows: Sequence[dict[str, Any]], margins: Sequence[Sequence[float]]) -> Iterator[tuple[str, list[Row]]]:
    """A set's rows by kind of question."""
    parts: dict[str, list[Row]] = {}
    for row, found in zip(rows, margins, strict=True):
        kind = "predicate" if is_predicate(row["options"]) else "score" if row.get("kind") in SCORES else "choice"
        parts.setdefault(kind, []).append((row["options"], row["gold"], found))
    yield from parts.items()
