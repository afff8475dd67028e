"""Temperature and bias of each kind of question, fitted on the margins of the kept-back sets that `evaluate` wrote.

Every set counts alike. A margin m becomes m / temperature + bias; the log loss of the server's own rule is minimised.
"""
import json
import math
from typing import Any, Iterator, Sequence

from ..config import Recipe
from ..evaluate import SCORES, read_rows
from ..scoring import is_predicate, judge

Row = tuple[Sequence[str], str, Sequence[float]]
TEMPERATURES = tuple(0.6 * 1.06**step for step in range(40))  # 0.6 to 5.8
BIASES = {"predicate": tuple(b / 20 for b in range(-20, 21)), "choice": tuple(b / 4 for b in range(-24, 9)), "score": tuple(b / 4 for b in range(-40, 9))}


def calibrate(recipe: Recipe) -> None:
    margins = json.loads(recipe.checkpoint("encoder").with_suffix(".margins.json").read_text(encoding="utf8"))
    by_kind: dict[str, list[list[Row]]] = {"predicate": [], "choice": [], "score": []}
    for path in sorted(recipe.kept_back.glob("*.jsonl")):
        rows = read_rows(path)
        for kind, part in _parts(rows, margins[path.stem]):
            by_kind[kind].append(part)
    fitted = {kind: fit(sets, BIASES[kind]) for kind, sets in by_kind.items() if sets}
    (recipe.work / "calibration.json").write_text(json.dumps(fitted), encoding="utf8")
    print(f"calibration: {fitted}", flush=True)


def fit(sets: Sequence[Sequence[Row]], biases: Sequence[float]) -> dict[str, float]:
    """The best of a coarse grid; the loss is flat about its minimum."""
    pairs = ((_loss(sets, t, b), t, b) for t in TEMPERATURES for b in biases)
    _, temperature, bias = min(pairs)
    return {"temperature": round(temperature, 3), "bias": bias}


def calibrated(margins: Sequence[float], temperature: float, bias: float) -> list[float]:
    return [m / temperature + bias for m in margins]


def _loss(sets: Sequence[Sequence[Row]], temperature: float, bias: float) -> float:
    means = []
    for rows in sets:
        outcomes = (judge(options, gold, calibrated(found, temperature, bias)) for options, gold, found in rows)
        means.append(-math.fsum(math.log(max(o.right_probability, 1e-12)) for o in outcomes) / len(rows))
    return math.fsum(means) / len(means)


def _parts(rows: Sequence[dict[str, Any]], margins: Sequence[Sequence[float]]) -> Iterator[tuple[str, list[Row]]]:
    """A set's rows by kind of question."""
    parts: dict[str, list[Row]] = {}
    for row, found in zip(rows, margins):
        kind = "predicate" if is_predicate(row["options"]) else "score" if row.get("kind") in SCORES else "choice"
        parts.setdefault(kind, []).append((row["options"], row["gold"], found))
    yield from parts.items()
