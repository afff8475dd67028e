"""Rows, masks, vectors and losses of the encoder."""
import contextlib
import hashlib
import io
import json
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from random import Random

from .config import Recipe
from .encoder import rows, texts
from .encoder.config import Rows
from .encoder.forms import Formed, Law, Term
from .examples import UNKNOWN, UNLABELLED, Example, Option, choice, predicate, score

try:
    import torch

    from .encoder.config import MODELS, Model, Network, Training
    from .encoder.losses import Answers, law_loss, losses
    from .encoder.network import Encoder, tree_mask, vectors
    from .encoder.train import Batch, Mixture, RowReader, hide_words, kinds_of_rows, pairs_of, parameter_groups, train
except ModuleNotFoundError:
    torch = None

try:
    import numpy

    from .encoder.average import mean, mix
    from .encoder.calibrate import BIASES, calibrate, fit
    from .encoder.convert import bucket, read_safetensors, rename
    from .encoder.packed import pack, unpack
    from .encoder.rounding import product_steps, rounded
except ModuleNotFoundError:
    numpy = None


def letters(all_texts):
    return [[ord(letter) for letter in text] for text in all_texts]


MADE = Example(
    "late",
    (
        predicate("late?", True),
        choice("what?", ("billing", Option("delivery", "parcels")), 1),
        score("how?", ("calm", "angry"), 0),
    ),
    "test",
)


MADE_SIZE = 256


def keyed(*keys: int) -> rows.Item:
    item = rows.encode(letters, MADE)
    return replace(item, branches=[replace(branch, key=key) for branch, key in zip(item.branches, keys, strict=True)])


def write_rows(folder: Path, laid: list[rows.Row]) -> None:
    columns = {name: numpy.array([getattr(row, name) for row in laid], "uint16") for name in rows.COLUMNS}
    tables = {
        name: numpy.array([(at, *one) for at, row in enumerate(laid) for one in getattr(row, name)], "int32").reshape(-1, width)
        for name, width in (("answers", 7), ("terms", 6))
    }
    numpy.savez(folder / "part000.npz", **columns, **tables)


class Texts(unittest.TestCase):
    def test_they_are_those_of_the_engine(self) -> None:
        self.assertEqual([texts.stem(question) for question in MADE.questions], [None, "question: what? answer:", "question: how?"])
        self.assertEqual(
            [text for question in MADE.questions for text in texts.branches(question)],
            ["question: late?", "billing", "delivery: parcels", "rating 0 of 1: calm", "rating 1 of 1: angry"],
        )
        self.assertEqual([texts.targets(q) for q in MADE.questions], [[True], [False, True], [True, False]])


class Packing(unittest.TestCase):
    def setUp(self) -> None:
        self.item = rows.encode(letters, MADE)

    def test_only_options_of_choices_are_documents_of_their_own(self) -> None:
        self.assertEqual([b.option is not None for b in self.item.branches], [False, True, True, False, False])
        self.assertEqual(self.item.branches[2].option, [101, *map(ord, "delivery: parcels"), 102])

    def test_a_row_says_where_every_answer_is_read(self) -> None:
        row = rows.lay_out([self.item, self.item], 2 * self.item.size + 7)
        self.assertEqual(len(row.ids), 2 * self.item.size + 7)
        self.assertEqual(len(row.answers), 10)
        for column, _, _, evidence, option, _ in row.answers:
            self.assertEqual(row.ids[column], rows.SEPARATOR)
            self.assertEqual(row.documents[column], evidence)
            if option:
                held = [token for token, document in zip(row.ids, row.documents) if document == option]
                self.assertEqual((held[0], held[-1]), (rows.START, rows.SEPARATOR))
        first, second = row.answers[:5], row.answers[5:]
        self.assertNotEqual(first[1][2], second[1][2])
        self.assertEqual(first[1][2], first[2][2])
        self.assertFalse({a[3] for a in first} & {a[3] for a in second})

    def test_a_stem_is_read_once_and_its_branches_go_on_from_it(self) -> None:
        row = rows.lay_out([self.item], self.item.size)
        stem = [*map(ord, "question: what? answer:")]
        places = [at for at, branch in enumerate(row.branches) if branch == 2]
        self.assertEqual([row.ids[at] for at in places], stem)
        self.assertEqual({row.parents[at] for at in places}, {0})
        for place, text in ((3, "billing"), (4, "delivery: parcels")):
            found = [at for at, branch in enumerate(row.branches) if branch == place]
            self.assertEqual([row.ids[at] for at in found], [*map(ord, text), rows.SEPARATOR])
            self.assertEqual({row.parents[at] for at in found}, {2})
            self.assertEqual(row.positions[found[0]], len(stem))

    def test_a_text_is_asked_what_others_of_its_source_were_and_nobody_answers(self) -> None:
        lender, found = rows.Lender(Random(1)), []
        for number in range(40):
            made = Example(f"text {number}", (predicate(f"Is it {number}?", True),), "one" if number % 2 else "other")
            found.append(lender.lend(Formed(made)).made)
        lent = [(made, question) for made in found for question in made.questions if not question.is_labelled]
        self.assertTrue(10 <= len(lent) <= 40, len(lent))
        for made, question in lent:
            self.assertIn(question.text, {q.text for other in found if other.source == made.source and other is not made for q in other.questions})
            self.assertEqual(texts.targets(question), [UNLABELLED])
        self.assertEqual(texts.targets(replace(MADE.questions[1], is_labelled=False)), [UNLABELLED] * 2)

    def test_what_does_not_fit_loses_whole_questions(self) -> None:
        fitted = rows.fit(self.item, self.item.size - 1)
        self.assertEqual(len(fitted.branches), 3)
        self.assertIsNone(rows.fit(self.item, len(self.item.ids)))

    def test_limits_cut_tokens_and_keep_the_separator(self) -> None:
        limits = Rows(evidence_tokens_max=2, branch_tokens_max=3, option_tokens_max=1)
        item = rows.encode(letters, MADE, limits)
        self.assertEqual(len(item.ids), 4)
        self.assertTrue(all(len(b.ids) == 4 and b.ids[-1] == rows.SEPARATOR for b in item.branches))
        self.assertEqual(len(item.branches[1].option), 3)


@unittest.skipIf(torch is None, "not installed: torch")
class Networks(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(0)
        self.shape = Network(vocabulary=128, layers=2, width=16, heads=2, feed_forward=32, dropout=0.0)
        self.network = Encoder(self.shape).eval()

    def margins(self, made: Example) -> list[float]:
        item = rows.encode(letters, made)
        row = rows.lay_out([item], item.size)
        ids, positions, documents, branches, parents = (torch.tensor([getattr(row, name)]) for name in rows.COLUMNS)
        with torch.no_grad():
            hidden = self.network(ids, positions, branches, tree_mask(documents, branches, parents))
            return self.network.margins(hidden[0, [answer[0] for answer in row.answers]]).tolist()

    def test_a_branch_is_scored_the_same_alone_and_amid_others(self) -> None:
        together = self.margins(MADE)
        alone = [self.margins(Example(MADE.evidence, (question,), "test")) for question in MADE.questions]
        for found, wanted in zip(together, [margin for each in alone for margin in each]):
            self.assertAlmostEqual(found, wanted, places=5)

    def test_vectors_are_means_of_shared_tokens_of_length_one(self) -> None:
        hidden = torch.randn(2, 5, 4)
        documents = torch.tensor([[1, 1, 1, 2, 3], [1, 2, 2, 3, 3]])
        branches = torch.tensor([[0, 0, 1, 0, 0], [0, 0, 0, 0, 0]])
        project = torch.nn.Linear(4, 3, bias=False)
        means = (hidden[0, :2].mean(0), hidden[1, 1:3].mean(0))
        for projected, each in ((None, means), (project, [project(mean) for mean in means])):
            found = vectors(hidden, documents, branches, projected)(torch.tensor([[0, 1], [1, 2]]))
            for got, mean in zip(found, each):
                self.assertTrue(torch.allclose(got, mean / mean.norm(), atol=1e-5))

    def test_only_words_of_the_evidence_are_hidden(self) -> None:
        item = rows.encode(letters, MADE)
        row = rows.lay_out([item], item.size)
        columns = [torch.tensor([getattr(row, name)] * 8) for name in rows.COLUMNS]
        answers = torch.tensor([(place, *answer) for place in range(8) for answer in row.answers])
        batch = Batch(*columns, answers, answers[:, 3], *[torch.zeros(0, dtype=torch.int64)] * 4)
        hidden = hide_words(batch, 1.0).ids != batch.ids
        words = [place for place, token in enumerate(item.ids) if token not in (rows.START, rows.SEPARATOR)]
        found = {tuple(row.nonzero().flatten().tolist()) for row in hidden}
        self.assertEqual(found, {(), tuple(words)})

    def test_lower_layers_learn_more_slowly(self) -> None:
        groups = parameter_groups(self.network, Training(layer_decay=0.5))
        scale_of = {id(p): group["scale"] for group in groups for p in group["params"]}
        scales = [scale_of[id(p)] for p in (self.network.out.weight, self.network.blocks[1].up.weight, self.network.blocks[0].up.weight, self.network.token.weight)]
        self.assertEqual(scales, [1, 1, 0.5, 0.25])
        self.assertEqual(len(scale_of), len(list(self.network.parameters())))


@unittest.skipIf(numpy is None, "not installed: numpy")
class Calibration(unittest.TestCase):
    def test_overconfident_margins_are_divided(self) -> None:
        # Two thirds of the answers are right, at margins that claim more than 99 %.
        says_yes = [place % 2 == 0 for place in range(60)]
        truth = [said != (place % 3 == 0) for place, said in enumerate(says_yes)]
        rows = [(("yes", "no"), "yes" if true else "no", [6.0 if said else -6.0]) for said, true in zip(says_yes, truth)]
        found = fit([rows], BIASES["predicate"])
        self.assertGreater(found["temperature"], 5)

    def test_margins_that_are_calibrated_stay(self) -> None:
        rows = [(("yes", "no"), "yes" if place < 73 else "no", [1.0]) for place in range(100)]
        rows += [(("yes", "no"), "no" if place < 73 else "yes", [-1.0]) for place in range(100)]
        found = fit([rows], BIASES["predicate"])
        self.assertAlmostEqual(found["temperature"], 1.0, delta=0.07)

    def test_of_equal_biases_the_lowest_is_taken(self) -> None:
        # Far below zero the share of an option does not change with the bias.
        rows = [(("a", "b"), "a" if place < 7 else "b", [-9.0, -10.0]) for place in range(10)]
        self.assertEqual(fit([rows], (-20.0, -12.0, -5.0))["bias"], -20.0)

    def test_every_row_of_a_kept_back_set_is_fitted_with_its_own_margins(self) -> None:
        # More rows than a sample has, and every margin right: with another row's margins the doubt would be the greatest.
        golds = ["yes" if number % 3 else "no" for number in range(700)]
        with tempfile.TemporaryDirectory() as folder:
            recipe = Recipe(Path(folder), Path(folder), Path(folder))
            recipe.kept_back.mkdir()
            recipe.checkpoint("encoder").parent.mkdir()
            lines = [json.dumps({"text": "t", "question": "q", "options": ["yes", "no"], "gold": gold}) for gold in golds]
            (recipe.kept_back / "banks-bool.jsonl").write_text("\n".join(lines) + "\n", encoding="utf8")
            margins = {"banks-bool": [[2.0 if gold == "yes" else -2.0] for gold in golds]}
            recipe.checkpoint("encoder").with_suffix(".margins.json").write_text(json.dumps(margins), encoding="utf8")
            with contextlib.redirect_stdout(io.StringIO()):
                calibrate(recipe)
            found = json.loads((recipe.work / "calibration.json").read_text(encoding="utf8"))
        self.assertEqual(found, {"predicate": {"temperature": 0.6, "bias": 0.0}})


@unittest.skipIf(torch is None, "not installed: torch")
class Losses(unittest.TestCase):
    def answers(self, targets, groups, has_option, **more) -> "Answers":
        empty = {name: torch.zeros(0, width, dtype=torch.int64) for name, width in (("pairs", 2), ("terms", 3), ("laws", 2))}
        empty["families"] = torch.full((len(targets),), -1)
        given = {name: torch.tensor(rows) for name, rows in more.items()}
        return Answers(torch.tensor(targets), torch.tensor(groups), torch.tensor(has_option), **(empty | given))

    def of(self, margins, cosines=(0.0, 0.0, 0.0)):
        """One choice, its right option first, then one predicate."""
        count = len(margins) - 1
        asked = self.answers([1, *[0] * (count - 1), 1], [*[0] * count, -1], [*[True] * count, False])
        return losses(torch.tensor(margins), torch.tensor(cosines), asked, 0.0)

    def test_the_group_loss_is_that_of_the_right_option(self) -> None:
        share = torch.sigmoid(torch.tensor([1.0, -0.5]))
        self.assertAlmostEqual(self.of([1.0, -0.5, 2.0]).group.item(), -(share[0] / share.sum()).log().item(), places=5)

    def test_every_part_falls_when_its_answer_improves(self) -> None:
        worse = self.of([0.0] * 6, [0.5] * 6)
        better = self.of([2.0, *[-2.0] * 4, 2.0], [0.9, *[0.1] * 4, 0.0])
        for part in ("single", "group", "similarity"):
            self.assertLess(getattr(better, part).item(), getattr(worse, part).item())

    def test_similarity_is_learnt_from_choices_of_five_and_more(self) -> None:
        self.assertEqual(self.of([0.0] * 5, [0.5] * 5).similarity.item(), 0.0)
        self.assertGreater(self.of([0.0] * 6, [0.5] * 6).similarity.item(), 0.0)

    def test_what_the_evidence_does_not_tell_pulls_to_the_middle(self) -> None:
        for margin in (-2.0, 2.0):
            asked = torch.tensor([margin], requires_grad=True)
            found = losses(asked, torch.zeros(1), self.answers([UNKNOWN], [-1], [False]), 0.1)
            found.single.backward()
            self.assertGreater(asked.grad.item() * margin, 0)

    def test_without_groups_there_is_only_the_single_loss(self) -> None:
        none = losses(torch.tensor([1.0]), torch.zeros(1), self.answers([1], [-1], [False]), 0.1)
        self.assertEqual((none.group.item(), none.similarity.item()), (0.0, 0.0))

    def test_a_score_loses_less_by_a_level_that_is_nearer(self) -> None:
        def ordinal(said: int) -> float:
            margins = torch.tensor([6.0 if level == said else -6.0 for level in range(4)] * 2)
            return losses(margins, torch.zeros(8), self.answers([0, 0, 0, 1] * 2, [0] * 4 + [1] * 4, [False] * 8), 0.0).ordinal.item()

        found = [ordinal(said) for said in range(4)]
        self.assertEqual(found, sorted(found, reverse=True))
        self.assertAlmostEqual(found[3], 0.0, delta=0.01)
        self.assertAlmostEqual(found[0], 1.0, delta=0.03)

    def test_a_pair_is_rewarded_by_the_difference_of_its_margins_alone(self) -> None:
        def pair(margins) -> float:
            return losses(torch.tensor(margins), torch.zeros(2), self.answers([1, 0], [-1, -1], [False] * 2, pairs=[[0, 1]]), 0.0).pair.item()

        self.assertAlmostEqual(pair([5.0, 4.0]), pair([-4.0, -5.0]), places=5)
        self.assertLess(pair([1.0, -1.0]), pair([1.0, 1.0]))

    def test_what_nobody_has_answered_is_learnt_from_a_teacher_alone(self) -> None:
        asked = self.answers([UNLABELLED, UNLABELLED, UNLABELLED], [0, 0, -1], [True, True, False])
        for taught in (None, torch.tensor([2.0, -2.0, 3.0])):
            margins = torch.tensor([0.5, 0.0, 0.0], requires_grad=True)
            sum(losses(margins, torch.zeros(3), asked, 0.1, taught)).backward()
            signs = [0, 0, 0] if taught is None else [-1, 1, -1]
            self.assertEqual(margins.grad.sign().tolist(), signs)

    def test_a_teachers_margins_cost_nothing_where_they_are_met(self) -> None:
        margins = torch.tensor([1.5, -0.5, -2.0, 0.3])
        asked = self.answers([1, 0, 1, 0], [0, 0, -1, -1], [True, True, False, False], families=[-1, -1, 0, 0])
        met = losses(margins, torch.zeros(4), asked, 0.0, margins)
        for part in ("margin", "share", "apart"):
            self.assertAlmostEqual(getattr(met, part).item(), 0.0, places=6)
        # All margins of a question and of a family off by as much: how far apart they are is right, the margins are not.
        off = losses(margins, torch.zeros(4), asked, 0.0, margins + 2)
        self.assertAlmostEqual(off.apart.item(), 0.0, places=6)
        self.assertAlmostEqual(off.margin.item(), 1.5, places=5)
        self.assertGreater(off.share.item(), 0.0)

    def test_a_question_of_many_branches_counts_as_one(self) -> None:
        asked = self.answers([1, 0, 0, 0, 1], [0, 0, 0, 0, -1], [True] * 4 + [False])
        taught = torch.tensor([0.0, 0.0, 0.0, 0.0, 1.5])
        self.assertAlmostEqual(losses(torch.zeros(5), torch.zeros(5), asked, 0.0, taught).margin.item(), 0.5, places=5)

    def test_a_law_is_kept_or_costs_the_square_of_what_is_missing(self) -> None:
        terms, total = torch.tensor([[0, 0, 1], [0, 1, 1]]), torch.tensor([[1, 0]])
        self.assertAlmostEqual(law_loss(torch.tensor([0.8, 0.2]), terms, total).item(), 0.0, places=6)
        self.assertAlmostEqual(law_loss(torch.tensor([0.8, 0.5]), terms, total).item(), 0.09, places=6)
        bound = torch.tensor([[1, 1]])
        self.assertEqual(law_loss(torch.tensor([0.2, 0.5]), terms, bound).item(), 0.0)
        self.assertAlmostEqual(law_loss(torch.tensor([0.8, 0.5]), terms, bound).item(), 0.09, places=6)


@unittest.skipIf(torch is None, "not installed: torch")
class Reading(unittest.TestCase):
    def test_pairs_are_of_one_key_and_of_two_answers(self) -> None:
        found = pairs_of(numpy.array([0, 7, 7, 9, 9, 7, 0]), numpy.array([1, 1, 0, 1, 1, 1, 0]))
        self.assertEqual(sorted(map(tuple, found.tolist())), [(1, 2), (5, 2)])

    def test_steps_read_kinds_of_rows_in_their_shares(self) -> None:
        kinds = [kind for kind, _ in zip(kinds_of_rows(Mixture(general=0.25, close=0.5, contrast=0.25)), range(400))]
        self.assertEqual([kinds.count(kind) for kind in ("general", "close", "contrast")], [100, 200, 100])

    def test_a_family_is_of_one_key(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            write_rows(Path(folder), [rows.lay_out([keyed(0, 7, 7, 9, 0)], MADE_SIZE)] * 2)
            batch = RowReader(Path(folder).glob("*.npz"), 1).next(1)
        self.assertEqual(batch.families.tolist(), [-1, 0, 0, 1, -1])

    def test_a_small_network_is_trained_on_labels_and_on_a_larger_ones_margins(self) -> None:
        shape = replace(MODELS["umpire-decide-small"].shape, vocabulary=128, layers=2, width=24, feed_forward=24)
        teacher = replace(MODELS["umpire-decide-small"].teacher, vocabulary=128, layers=1, width=48, feed_forward=24)
        training = replace(MODELS["umpire-decide-small"].training, rows_per_step=2, mixture=Mixture(0.0, 0.0, 1.0), warm_up_steps=1, rate=0.01)
        self.assertTrue(training.is_taught and not MODELS["umpire-decide"].training.is_taught)
        with tempfile.TemporaryDirectory() as folder:
            recipe = Recipe(Path(folder), Path(folder), Path(folder), model="umpire-decide-small")
            for mark in (rows.ROWS_BEGUN, rows.ROWS_MADE):
                (Path(folder) / mark).touch()
            rows.rows_folder(recipe, "contrast").mkdir()
            write_rows(rows.rows_folder(recipe, "contrast"), [rows.lay_out([keyed(0, 7, 7, 9, 0)], MADE_SIZE)] * 4)
            for seed, (file, one) in enumerate(((recipe.start, shape), (recipe.teacher, teacher))):
                torch.manual_seed(seed)
                numpy.savez(file, **{name: value.numpy() for name, value in Encoder(one).state_dict().items()})

            def margin_after(steps: int) -> float:
                with contextlib.redirect_stdout(io.StringIO()) as said:
                    train(recipe, 7, Model(shape, training, teacher), steps)
                return float(said.getvalue().rsplit(" margin ", 1)[1].split()[0])

            self.assertLess(margin_after(60), margin_after(1))

    def test_a_batch_numbers_laws_and_answers_across_its_rows(self) -> None:
        item = rows.encode_formed(rows.Encoders(letters), Formed(MADE, (Law((Term(0, 0, 1), Term(1, 1, -1))), Law((Term(2, 0, 1), Term(2, 1, 1)), 1))))
        with tempfile.TemporaryDirectory() as folder:
            write_rows(Path(folder), [rows.lay_out([item, item], 2 * item.size) for _ in range(2)])
            batch = RowReader(Path(folder).glob("*.npz"), 1).next(2)
        self.assertEqual(batch.laws.tolist(), [[0, 0], [1, 0]] * 4)
        self.assertEqual(batch.terms[-2:].tolist(), [[7, 18, 1], [7, 19, 1]])
        self.assertEqual(batch.groups.max().item(), 7)


@unittest.skipIf(numpy is None, "not installed: numpy")
class Conversion(unittest.TestCase):
    def test_a_mixture_lies_between(self) -> None:
        made = mix({"a": numpy.array([1.0, 3.0])}, {"a": numpy.array([2.0, -3.0])}, 0.25)
        self.assertEqual(made["a"].tolist(), [1.25, 1.5])

    def test_a_mean_is_of_every_training(self) -> None:
        made = mean([{"a": numpy.array([1.0, 3.0], "float16")}, {"a": numpy.array([2.0, -3.0], "float16")}])
        self.assertEqual(made["a"].tolist(), [1.5, 0.0])

    def test_products_and_tables_are_rounded_to_steps_of_their_rows_and_stay_so(self) -> None:
        rows = numpy.array([[1.0, -0.4, -0.2, 0.1], [0.0, 0.0, 0.0, 0.0], [-254.0, 3.0, 2.9, 0.0]])
        once = rounded({"blocks.0.up.weight": rows, "token.weight": rows, "dense.weight": rows})
        self.assertEqual(once["dense.weight"].tolist(), rows.astype("float32").tolist())
        for name in ("blocks.0.up.weight", "token.weight"):
            steps = once[name] / numpy.array([[1 / 127], [1.0], [2.0]])
            numpy.testing.assert_allclose(steps, [[127, -51, -25, 13], [0, 0, 0, 0], [-127, 2, 1, 0]], rtol=1e-6)
        again = rounded(once)
        for name, array in once.items():
            numpy.testing.assert_allclose(again[name], array, rtol=1e-6)

    def test_neighbours_in_a_product_never_exceed_sixteen_bits_together(self) -> None:
        rows = numpy.random.default_rng(1).normal(size=(200, 64)).astype("float32")
        steps, step = product_steps(rows)
        pairs = steps.astype("int32").reshape(200, -1, 2)
        for part in (numpy.maximum(pairs, 0), numpy.maximum(-pairs, 0)):
            self.assertLessEqual(255 * part.sum(2).max(), 32_767)
        numpy.testing.assert_allclose(steps * step, rows, atol=1.01 * step.max())
        again, step_again = product_steps(steps * step)
        numpy.testing.assert_array_equal(again, steps)
        numpy.testing.assert_allclose(step_again, step, rtol=1e-6)

    def test_packed_weights_are_within_half_a_step_of_what_they_were(self) -> None:
        rows = numpy.random.default_rng(2).normal(size=(5, 128)).astype("float32")
        made = pack({"a.weight": rows, "a.bias": rows[0, :3]})
        self.assertEqual((made["a.weight|q"].dtype, made["a.weight|s"].shape), (numpy.dtype("int8"), (5, 2)))
        numpy.testing.assert_allclose(unpack(made)["a.weight"], rows, atol=0.51 * made["a.weight|s"].astype("float32").max())
        numpy.testing.assert_allclose(unpack(made)["a.bias"], rows[0, :3], rtol=1e-3)

    def test_near_differences_have_a_bucket_each_and_far_ones_share(self) -> None:
        self.assertEqual([bucket(d) for d in (0, -1, -7, 1, 7)], [0, 1, 7, 17, 23])
        self.assertEqual({bucket(-d) for d in range(128, 512)}, {15})
        self.assertEqual({bucket(d) for d in range(128, 512)}, {31})

    def test_only_the_known_file_is_converted(self) -> None:
        array = numpy.arange(6, dtype="float32").reshape(2, 3)
        head = json.dumps({"a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}).encode()
        content = len(head).to_bytes(8, "little") + head + array.tobytes()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.safetensors"
            file.write_bytes(content)
            self.assertEqual(read_safetensors(file, hashlib.sha256(content).hexdigest())["a"].tolist(), array.tolist())
            with self.assertRaises(ValueError):
                read_safetensors(file)

    def test_a_layer_gets_the_names_of_the_network(self) -> None:
        tokens = {"[CLS]": 0, "word": 1}
        weights = {name: numpy.zeros((2, 2)) for name in ("embeddings.LayerNorm.weight", "embeddings.LayerNorm.bias")}
        weights["embeddings.word_embeddings.weight"] = numpy.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
        weights["embeddings.position_embeddings.weight"] = numpy.arange(1028.0).reshape(514, 2)
        weights["encoder.relative_attention_bias.weight"] = numpy.arange(64.0).reshape(32, 2)
        for part in ("attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o", "attention.LayerNorm",
                     "intermediate.dense", "output.dense", "output.LayerNorm"):
            weights[f"encoder.layer.0.{part}.weight"] = numpy.ones((2, 2))
            weights[f"encoder.layer.0.{part}.bias"] = numpy.ones(2)
        made = rename(weights, {"<s>": 1, "word": 2}, tokens)
        self.assertEqual(made["token.weight"].tolist(), [[2.0, 2.0], [3.0, 3.0]])
        self.assertEqual(made["position.weight"][0].tolist(), [4.0, 5.0])
        self.assertEqual(made["relative"].shape, (2, 1024))
        self.assertEqual(made["blocks.0.qkv.weight"].shape, (6, 2))
        self.assertEqual(len(made), 6 + 2 * 6)


if __name__ == "__main__":
    unittest.main()
