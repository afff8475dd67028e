"""The model for many languages: its tokens, its table of four bits, rows in the tokens of its teacher, texts of other languages."""
import contextlib
import dataclasses
import io
import json
import tempfile
import unittest
from pathlib import Path

from . import languages
from .config import Recipe
from .encoder import rows
from .encoder.config import MODELS, Mixture, Rows
from .encoder.forms import Formed
from .examples import Example, choice, predicate, score

try:
    import numpy
    import tokenizers
    import torch

    from .describe_encoder import tokens_of
    from .encoder.multilingual import SPECIAL, UNKNOWN, chosen, stays, write_tokenizer
    from .encoder.network import Encoder
    from .encoder.rounding import BLOCK, four_bit_steps, from_four_bits, rounded
    from .encoder.train import RowReader, parameter_groups, train
    from .encoder.config import Model, Network, Training
except ModuleNotFoundError as missing:
    raise unittest.SkipTest(f"not installed: {missing.name}")

MULTILINGUAL = "umpire-decide-multilingual"
MADE = Example("late", (predicate("late?", True), choice("what?", ("billing", "parcels"), 1), score("how?", ("calm", "angry"), 0)), "test")
SMALL = dataclasses.replace(MODELS[MULTILINGUAL].shape, vocabulary=140, layers=2, width=96, feed_forward=24)

VOCABULARY = [(SPECIAL.get(number, f"\u2581w{number}"), 0.0 if number in SPECIAL else -float(number)) for number in range(105)]


def letters(texts):
    return [[ord(letter) for letter in text] for text in texts]


def doubled(texts):
    """A teacher's tokens: other ones, and more of them."""
    return [[ord(letter) % 90 for letter in text for _ in range(2)] for text in texts]


ITEM = rows.encode_formed(rows.Encoders(letters, doubled), Formed(MADE, ()))


class Twins(unittest.TestCase):
    def test_a_row_and_its_twin_are_equally_long_and_have_the_same_answers(self) -> None:
        self.assertGreater(ITEM.twin.size, ITEM.own_size)
        self.assertEqual(ITEM.size, ITEM.twin.size)
        row = rows.lay_out([ITEM, ITEM], 2 * ITEM.size)
        self.assertEqual(len(row.ids), len(row.twin.ids))
        for own, twin in zip(row.answers, row.twin.answers, strict=True):
            self.assertEqual((own[1:5], row.ids[own[0]]), (twin[1:5], row.twin.ids[twin[0]]))
        self.assertIsNone(rows.lay_out([rows.encode(letters, MADE)], ITEM.size).twin)

    def test_what_does_not_fit_leaves_both(self) -> None:
        fitted = rows.fit(ITEM, ITEM.size - 1)
        self.assertEqual((len(fitted.branches), len(fitted.twin.branches)), (3, 3))
        self.assertLess(fitted.size, ITEM.size)

    def test_a_batch_has_the_answers_of_the_rows_that_were_drawn(self) -> None:
        other = rows.encode_formed(rows.Encoders(letters, doubled), Formed(dataclasses.replace(MADE, evidence="later than that"), ()))
        with tempfile.TemporaryDirectory() as folder:
            write_rows(Path(folder), [rows.lay_out([item], other.size) for item in (ITEM, other, ITEM)])
            batch = RowReader([Path(folder) / "part000.npz"], 1).next(3)
        for read in (batch, batch.twin):
            answers = read.answers
            self.assertTrue((read.ids[answers[:, 0], answers[:, 1]] == rows.SEPARATOR).all())
            self.assertTrue((read.documents[answers[:, 0], answers[:, 1]] == answers[:, 4]).all())
        self.assertTrue((batch.answers[:, [0, 2, 3, 6]] == batch.twin.answers[:, [0, 2, 3, 6]]).all())

    def test_it_learns_a_teachers_margins_in_other_tokens_and_leaves_its_table(self) -> None:
        teacher = Network(vocabulary=150, layers=1, width=48, heads=12, feed_forward=24, dropout=0.0)
        training = dataclasses.replace(MODELS[MULTILINGUAL].training, rows_per_step=2, mixture=Mixture(0.0, 0.0, 1.0), contrast_from=0.0, warm_up_steps=1, rate=0.01)
        with tempfile.TemporaryDirectory() as folder:
            recipe = Recipe(Path(folder), Path(folder), Path(folder), model=MULTILINGUAL)
            for mark in (rows.ROWS_BEGUN, rows.ROWS_MADE):
                (Path(folder) / mark).touch()
            rows.rows_folder(recipe, "contrast").mkdir()
            write_rows(rows.rows_folder(recipe, "contrast"), [rows.lay_out([ITEM], ITEM.size)] * 4)
            for seed, (file, shape) in enumerate(((recipe.start, SMALL), (recipe.teacher, teacher))):
                torch.manual_seed(seed)
                numpy.savez(file, **{name: value.numpy() for name, value in Encoder(shape).state_dict().items()})
            before = numpy.load(recipe.start)["token.weight"]

            def margin_after(steps: int) -> float:
                with contextlib.redirect_stdout(io.StringIO()) as said:
                    train(recipe, 7, Model(SMALL, training, teacher, is_multilingual=True), steps)
                return float(said.getvalue().rsplit(" margin ", 1)[1].split()[0])

            self.assertLess(margin_after(60), margin_after(1))
            trained = torch.load(recipe.checkpoint("encoder-7"), weights_only=True)
        numpy.testing.assert_allclose(trained["token.weight"].numpy(), before, rtol=1e-3, atol=1e-6)

    def test_what_is_not_trained_is_in_no_group(self) -> None:
        network = Encoder(SMALL)
        network.token.requires_grad_(False)
        found = [id(p) for group in parameter_groups(network, Training()) for p in group["params"]]
        self.assertNotIn(id(network.token.weight), found)
        self.assertIn(id(network.position.weight), found)


def write_rows(folder: Path, laid: list[rows.Row]) -> None:
    """As the stage `rows` does."""
    tables = {
        name: numpy.array([(at, *one) for at, row in enumerate(laid) for one in getattr(row, name)], "int32").reshape(-1, width)
        for name, width in (("answers", 7), ("terms", 6))
    }
    numpy.savez(folder / "part000.npz", **rows.columns_of(laid), **rows.twin_columns(laid), **tables)


class Languages(unittest.TestCase):
    def test_rows_of_other_languages_are_for_the_student_alone(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            recipe = Recipe(Path(folder), Path(folder), Path(folder), model=MULTILINGUAL)
            write_tokenizer(VOCABULARY, recipe.unigram)
            recipe.wordpiece.parent.mkdir()
            bert = tokenizers.Tokenizer(tokenizers.models.WordPiece({"[UNK]": 0}, unk_token="[UNK]"))
            bert.save(str(recipe.wordpiece))
            found = {name: list(rows.bundles_of(recipe, 0, ("contrast", (name, 0)), Rows())) for name in ("languages", "written")}
        for name, kind, has_twin in (("languages", "languages", False), ("written", "contrast", True)):
            self.assertEqual({each[0] for each in found[name]}, {kind})
            self.assertEqual({item.twin is not None for *_, made in found[name] if made for item in made.items}, {has_twin})

    def test_what_is_kept_back_is_in_no_row(self) -> None:
        recipe = Recipe(Path("."), Path("."), Path("."), model=MULTILINGUAL)
        parts = [what for name, what in rows.jobs(recipe) if name == "contrast" and what[0] == "languages"]
        groups = [group for part in parts for group in rows._groups(recipe, *part)]
        sources = {group.source for group in groups}
        self.assertTrue({"everyday-de", "everyday-de-asked-in-en", "lang-ja", "contrast_lang-ja"} <= sources)
        self.assertFalse(any("-sv" in source or "-vi" in source for source in sources))
        back = {made.own.texts for made in languages.written(recipe.banks, kept_back=True)}
        self.assertFalse(back & {group.texts for group in groups})

    def test_the_other_models_read_english_alone(self) -> None:
        for name, model in MODELS.items():
            self.assertEqual(model.training.mixture.languages > 0, name == MULTILINGUAL)
            self.assertEqual(model.has_twins, name == MULTILINGUAL)


class Tokens(unittest.TestCase):
    def test_special_tokens_have_berts_numbers_and_scripts_that_few_read_go(self) -> None:
        pieces = ["<s>", "<pad>", "</s>", "<unk>", *(f"\u2581word{n}" for n in range(200)), "\u2581\u1300\u1301", "\u1300", "<mask>"]
        order = chosen(pieces)
        self.assertEqual({number: pieces[order[number]] for number in SPECIAL}, SPECIAL)
        self.assertEqual(len(order), len(pieces) - 1)
        self.assertEqual([stays(piece) for piece in ("\u2581\u1300\u1301", "\u1300", "\u2581\u1300", "\u0e01\u0e02", "a1", "\u2581")], [False, True, True, True, True, True])

    def test_no_text_has_a_special_token_and_the_file_has_their_names(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "unigram.json"
            write_tokenizer(VOCABULARY, file)
            found = rows.tokens_by(file)(["<s> </s> <mask> <pad>", "w5\u200bw6\tw7\x01", "\uff57\uff19"])
            metadata = tokens_of(json.loads(file.read_text(encoding="utf8")))
        self.assertEqual(set(found[0]) & (SPECIAL.keys() - {UNKNOWN}), set())
        self.assertEqual(found[1:], [[5, 6, 7], [9]])
        self.assertEqual(metadata["umpire.vocabulary"].split("\n"), [piece for piece, _ in VOCABULARY])


class FourBits(unittest.TestCase):
    def test_what_was_four_bits_is_so_again_to_the_bit(self) -> None:
        rng = numpy.random.default_rng(1)
        steps = rng.integers(-8, 8, (20, 2 * BLOCK)).astype("float32")
        steps[:, [0, BLOCK]] = -8
        step = (rng.normal(size=(20, 2)) / 100).astype("float16").astype("float32")
        made = from_four_bits(steps, step)
        found, sizes = four_bit_steps(made.astype("float16").astype("float32"))
        numpy.testing.assert_array_equal(found, steps)
        numpy.testing.assert_array_equal(sizes, step)
        self.assertFalse(four_bit_steps(numpy.zeros((1, BLOCK)))[0].any())

    def test_only_the_table_of_tokens_is_of_four_bits(self) -> None:
        table = numpy.random.default_rng(2).normal(size=(9, BLOCK)).astype("float32")
        made = rounded({"token.weight": table, "position.weight": table}, 4)
        self.assertLessEqual(len(numpy.unique(made["token.weight"][0])), 16)
        numpy.testing.assert_allclose(made["token.weight"], table, atol=abs(table).max() / 8)
        numpy.testing.assert_allclose(made["position.weight"], table, atol=abs(table).max() / 127)


if __name__ == "__main__":
    unittest.main()
