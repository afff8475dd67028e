"""Groups of texts that differ in little, other forms of a question, and the laws of their probabilities."""
import gzip
import json
import tempfile
import unittest
from pathlib import Path
from random import Random

from .decisions import contrast
from .encoder import rows
from .encoder.config import Rows
from .encoder.forms import with_forms, with_slip
from .examples import UNKNOWN, Example, choice, predicate, score

BANKS = Path(__file__).parent.parent / "banks"
ASKED = (
    predicate("Was it paid?", True),
    predicate("Did Ann call?", False),
    choice("What broke?", ("door", "window", "roof"), 1),
    score("How bad?", ("fine", "bad", "awful"), 2),
)


def truth(question, option: int) -> float:
    """The probability of a branch where every answer is known."""
    return float(question.gold) if question.kind == "predicate" else float(question.gold == option)


def letters(all_texts):
    return [[ord(letter) for letter in text] for text in all_texts]


class Forms(unittest.TestCase):
    def test_right_answers_obey_every_law(self) -> None:
        kinds = set()
        for seed in range(400):
            formed = with_forms(Random(seed), Example("text", ASKED, "test"), 1.0)
            self.assertEqual(formed.made.questions[: len(ASKED)], ASKED)
            for law in formed.laws:
                total = sum(sign * truth(formed.made.questions[q], option) for q, option, sign in law.terms)
                kinds.add((len(law.terms), law.total, law.at_most))
                (self.assertLessEqual if law.at_most else self.assertEqual)(total, law.total, law)
        self.assertGreaterEqual(len(kinds), 5)

    def test_what_is_not_known_stays_so_in_other_forms(self) -> None:
        for seed in range(50):
            formed = with_forms(Random(seed), Example("text", (predicate("Was it paid?", None),), "test"), 1.0)
            self.assertEqual({q.gold for q in formed.made.questions}, {UNKNOWN})

    def test_a_slip_changes_two_letters_inside_a_word(self) -> None:
        found = with_slip(Random(1), "Was the window repaired?")
        self.assertNotEqual(found, "Was the window repaired?")
        self.assertEqual(sorted(found), sorted("Was the window repaired?"))
        self.assertEqual(with_slip(Random(1), "a b?"), "a b?")


class Groups(unittest.TestCase):
    def setUp(self) -> None:
        record = {"texts": ["It is paid.", "It is not paid."], "questions": [["Paid?", [True, False]], ["Late?", [None, None]]],
                  "choices": [["What?", ["a", "b"], [0, None]]]}
        self.group = contrast.group_of(record, "test")

    def test_every_text_has_the_questions_that_it_answers(self) -> None:
        self.assertEqual([[q.gold for q in made.questions] for made in self.group.examples], [[1, UNKNOWN, 0], [0, UNKNOWN]])

    def test_a_group_stands_in_one_row_and_shares_the_keys_of_its_questions(self) -> None:
        made = rows.bundle_of(Random(2), rows.Encoders(letters), self.group, ["Did Bob sing?"], iter(range(1, 999)), Rows(), 0.22)
        paid = [[b for b in item.branches if bytes(b.ids[:-1]) == b"question: Paid?"][0] for item in made.items]
        self.assertEqual([b.target for b in paid], [1, 0])
        self.assertEqual(len({b.key for b in paid}), 1)
        self.assertGreater(paid[0].key, 0)
        row = rows.lay_out(made.items, made.size)
        self.assertEqual(sum(1 for answer in row.answers if answer[5] == paid[0].key), 2)

    def test_what_does_not_fit_into_a_row_is_left_out(self) -> None:
        self.assertIsNone(rows.bundle_of(Random(2), rows.Encoders(letters), self.group, [], iter(range(1, 999)), Rows(length=40), 0.22))

    def test_of_a_public_set_groups_and_single_texts_are_read_apart_and_bounded(self) -> None:
        item = {"q": "Paid?", "kind": "yesno", "answer": True}
        lines = [{"evidence": f"text {n}", "group": f"g{n // 2}" if n < 6 else "", "items": [item]} for n in range(10)]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "some.jsonl.gz"
            with gzip.open(file, "wt", encoding="utf8") as out:
                out.write("".join(json.dumps(line) + "\n" for line in lines))
            self.assertEqual([len(group.texts) for group in contrast.public_groups(file, 5)], [2, 2])
            self.assertEqual(len(list(contrast.public_examples(file, 3))), 3)
            self.assertEqual(next(contrast.public_examples(file, 3)).source, "clean_some")


class Written(unittest.TestCase):
    def test_the_file_is_whole(self) -> None:
        records = [json.loads(line) for line in (BANKS / "contrast.jsonl").read_text(encoding="utf8").rstrip("\n").split("\n")]
        self.assertEqual(len(records), 4_334)
        for record in records:
            asked = [answers for _, answers in record["questions"]]
            for _, options, right in [*record.get("choices", ()), *record.get("scales", ())]:
                self.assertTrue(all(place is None or 0 <= place < len(options) for place in right))
                asked.append(right)
            self.assertTrue(all(len(answers) == len(record["texts"]) for answers in asked))

    def test_whole_groups_are_kept_back_and_no_text_of_theirs_is_trained_on(self) -> None:
        back, trained = (list(contrast.written(BANKS, kept_back)) for kept_back in (True, False))
        self.assertGreaterEqual(len(back), 100)
        self.assertFalse({text for group in back for text in group.texts} & {text for group in trained for text in group.texts})
        self.assertEqual(len(back) + len(trained), 4_054)

    def test_whole_templates_of_computed_groups_are_kept_back(self) -> None:
        parts = [list(contrast.computed(3, 120, kept_back)) for kept_back in (True, False)]
        self.assertEqual(sum(map(len, parts)), 120)
        self.assertTrue(0 < len(parts[0]) < 40)


if __name__ == "__main__":
    unittest.main()
