"""`python3 -m recipe STAGE`: runs one stage, or all of them in order."""
import argparse
from pathlib import Path
from typing import Callable

from .config import Recipe, rehearsal

EVALUATED = ("language", "decisions", "final")


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
    from .kept_back import write_kept_back
    from .rows import build_rows

    build_rows(recipe)
    write_kept_back(recipe)


def language(recipe: Recipe) -> None:
    from .train_language import train_language

    train_language(recipe)


def decisions(recipe: Recipe) -> None:
    from .train_decisions import train_decisions

    train_decisions(recipe, "language", "decisions")


def finish(recipe: Recipe) -> None:
    from .finish import finish as run
    from .finish import report_temperatures

    report_temperatures(recipe, "decisions")
    run(recipe, "decisions", "final")


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


def encoder_convert(recipe: Recipe) -> None:
    from .encoder.convert import convert

    convert(recipe.pretrained, recipe.wordpiece, recipe.work / "encoder-init.npz")


def encoder_rows(recipe: Recipe) -> None:
    from .encoder.rows import build_rows
    from .kept_back import write_kept_back

    made = recipe.work / "rows-made"
    made.unlink(missing_ok=True)
    build_rows(recipe)
    made.touch()
    write_kept_back(recipe)


def encoder_train(recipe: Recipe) -> None:
    from .encoder.config import Training
    from .encoder.train import train

    for seed in Training().seeds:
        train(recipe, seed)


def encoder_average(recipe: Recipe) -> None:
    from .encoder.average import average

    average(recipe)


def encoder_evaluate(recipe: Recipe) -> None:
    from .encoder.evaluate import evaluate as run

    run(recipe)


def encoder_calibrate(recipe: Recipe) -> None:
    from .encoder.calibrate import calibrate

    calibrate(recipe)


def encoder_export(recipe: Recipe) -> None:
    import torch

    from .encoder.export import KINDS
    from .encoder.export import export as run

    weights = torch.load(recipe.checkpoint("encoder"), map_location="cpu", weights_only=True)
    for kind in KINDS:
        run({name: value.numpy() for name, value in weights.items()}, recipe.work / f"umpire-decide-{kind}.onnx", kind)


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
        encoder_convert,
        encoder_rows,
        encoder_train,
        encoder_average,
        encoder_evaluate,
        encoder_calibrate,
        encoder_export,
    )
}
# Each needs something that is not made by the stages before it; the encoder is a model of its own, which needs `prepare` alone.
ENCODER = tuple(name for name in STAGES if name.startswith("encoder_"))
APART = ("compare", "restore", *ENCODER)


def main() -> None:
    parser = argparse.ArgumentParser(prog="recipe", description=__doc__)
    parser.add_argument("stage", choices=[*STAGES, "all", "encoder"])
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
        in_all = given.stage == "all" and name not in APART
        if given.stage == name or in_all or (given.stage == "encoder" and name in ENCODER):
            stage(recipe)


if __name__ == "__main__":
    main()
