"""`python3 -m recipe STAGE`: runs one stage, or all of them in order."""
import argparse
from pathlib import Path
from typing import Callable

from .config import Recipe, rehearsal

EVALUATED = ("language", "decisions-1", "decisions-2", "final")


def prepare(recipe: Recipe) -> None:
    from .prepare import prepare as run

    run(recipe)


def tokenizer(recipe: Recipe) -> None:
    from .tokenizer import train_tokenizer

    train_tokenizer(recipe)


def corpus(recipe: Recipe) -> None:
    from .corpus import encode_corpus

    encode_corpus(recipe)


def rows(recipe: Recipe) -> None:
    from .rows import build_rows

    build_rows(recipe)


def language(recipe: Recipe) -> None:
    from .train_language import train_language

    train_language(recipe)


def decisions(recipe: Recipe) -> None:
    from .train_decisions import train_decisions

    train_decisions(recipe, recipe.first_decisions, "language", "decisions-1")
    train_decisions(recipe, recipe.second_decisions, "decisions-1", "decisions-2")


def finish(recipe: Recipe) -> None:
    from .average import average

    average(recipe, "decisions-1", "decisions-2", "final")


def export(recipe: Recipe) -> None:
    from .export import export as run

    for quantization in ("f32", "f16", "q8_0"):
        run(recipe, "final", quantization)


def evaluate(recipe: Recipe) -> None:
    from .evaluate import evaluate as run

    for stage in EVALUATED:
        if recipe.checkpoint(stage).exists():
            print(f"== {stage}", flush=True)
            run(recipe, stage)


def reference(recipe: Recipe) -> None:
    from .compare import write_reference

    write_reference(recipe, "final", recipe.work / "reference.json")


def compare(recipe: Recipe) -> None:
    from .compare import report

    report(recipe.work / "reference.json", recipe.work / "measured.json")


def restore(recipe: Recipe) -> None:
    from .restore import restore as run

    run(recipe, recipe.weights("q8_0"), "final")


# In order; `all` runs those up to the reference: the comparison needs a run of the product in between.
STAGES: dict[str, Callable[[Recipe], None]] = {
    stage.__name__: stage
    for stage in (
        prepare,
        tokenizer,
        corpus,
        rows,
        language,
        decisions,
        finish,
        export,
        evaluate,
        reference,
        compare,
        restore,
    )
}
# Each needs something that is not made by the stages before it.
APART = ("compare", "restore")


def main() -> None:
    parser = argparse.ArgumentParser(prog="recipe", description=__doc__)
    parser.add_argument("stage", choices=[*STAGES, "all"])
    parser.add_argument(
        "--work", type=Path, default=Path("work"), help="everything that is made (default: work)"
    )
    parser.add_argument("--sources", type=Path, default=Path("sources"), help="everything that was fetched")
    parser.add_argument("--held-out", type=Path, default=Path("held-out"), help="evaluation sets, JSON Lines")
    parser.add_argument(
        "--rehearsal", action="store_true", help="a tiny network on little data, to try the stages"
    )
    given = parser.parse_args()
    build = rehearsal if given.rehearsal else Recipe
    recipe = build(work=given.work, sources=given.sources, held_out=given.held_out)
    recipe.work.mkdir(parents=True, exist_ok=True)
    for name, stage in STAGES.items():
        if given.stage == name or (given.stage == "all" and name not in APART):
            stage(recipe)


if __name__ == "__main__":
    main()
