"""`python3 -m recipe STAGE`: runs one stage, or all of them in order."""
import argparse
from pathlib import Path
from typing import Callable

from .config import Recipe


def prepare(recipe: Recipe) -> None:
    from .prepare import prepare as run

    run(recipe)


def convert(recipe: Recipe) -> None:
    from .encoder.config import MODELS
    from .encoder.convert import convert as run
    from .encoder.multilingual import convert_multilingual

    out = recipe.work / "encoder-init.npz"
    if MODELS[recipe.model].is_multilingual:
        convert_multilingual(recipe.multilingual, recipe.unigram, out)
    else:
        run(recipe.pretrained, recipe.wordpiece, out)


def rows(recipe: Recipe) -> None:
    from .encoder.rows import ROWS_BEGUN, ROWS_MADE, build_rows
    from .kept_back import write_kept_back

    for mark in (ROWS_BEGUN, ROWS_MADE):
        (recipe.work / mark).unlink(missing_ok=True)
    build_rows(recipe)
    write_kept_back(recipe)


def train(recipe: Recipe) -> None:
    from .encoder.config import MODELS
    from .encoder.train import train as run

    for seed in MODELS[recipe.model].training.seeds:
        run(recipe, seed)


def average(recipe: Recipe) -> None:
    from .encoder.average import average as run

    run(recipe)


def evaluate(recipe: Recipe) -> None:
    from .encoder.evaluate import evaluate as run

    run(recipe)


def calibrate(recipe: Recipe) -> None:
    from .encoder.calibrate import calibrate as run

    run(recipe)


def export(recipe: Recipe) -> None:
    import torch

    from .encoder.config import MODELS
    from .encoder.export import KINDS
    from .encoder.export import export as run

    weights = torch.load(recipe.checkpoint("encoder"), map_location="cpu", weights_only=True)
    for kind in KINDS:
        run({name: value.numpy() for name, value in weights.items()}, recipe.work / f"{recipe.model}-{kind}.onnx", kind, MODELS[recipe.model].shape)


# In order.
STAGES: dict[str, Callable[[Recipe], None]] = {
    stage.__name__: stage for stage in (prepare, convert, rows, train, average, evaluate, calibrate, export)
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="recipe", description=__doc__)
    parser.add_argument("stage", choices=[*STAGES, "all"])
    parser.add_argument("--work", type=Path, default=Path("work"), help="everything that is made (default: work)")
    parser.add_argument("--sources", type=Path, default=Path("sources"), help="everything that was fetched")
    parser.add_argument("--held-out", type=Path, default=Path("held-out"), help="evaluation sets, JSON Lines")
    parser.add_argument("--model", default=Recipe.model, help="umpire-decide, umpire-decide-small or umpire-decide-multilingual")
    given = parser.parse_args()
    recipe = Recipe(work=given.work, sources=given.sources, held_out=given.held_out, model=given.model)
    recipe.work.mkdir(parents=True, exist_ok=True)
    for name, stage in STAGES.items():
        if given.stage in (name, "all"):
            stage(recipe)


if __name__ == "__main__":
    main()
