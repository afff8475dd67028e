"""Passages with statements and questions of their own."""
import unittest
from pathlib import Path
from random import Random

from .decisions.written_passages import Passage, from_passage, load, plain_rows
from .examples import UNKNOWN

PASSAGE = Passage(
    "The ferry left at noon without the two coaches.",
    (("The coaches stayed behind.", "entailed"), ("The ferry waited.", "contradicted"), ("The sea was calm.", "neutral")),
    (("Did the ferry leave?", True), ("Were the coaches on board?", False)),
)
OTHER = Passage("Ilse paid.", (), (("Did Ilse pay in Ghent?", True), ("was it paid?", True)))


class Passages(unittest.TestCase):
    def setUp(self) -> None:
        self.asked = [q for _ in range(400) for q in from_passage(Random(_), PASSAGE, OTHER).questions]

    def test_questions_have_their_own_answers(self) -> None:
        answers = {q.text: q.gold for q in self.asked if q.text in dict(PASSAGE.questions)}
        self.assertEqual(answers, {"Did the ferry leave?": 1, "Were the coaches on board?": 0})

    def test_a_particular_question_of_another_passage_has_no_answer(self) -> None:
        strange = {q.text: q.gold for q in self.asked if q.text in dict(OTHER.questions)}
        self.assertEqual(strange, {"Did Ilse pay in Ghent?": UNKNOWN})

    def test_what_is_left_open_is_unknown_only_where_the_world_is_asked(self) -> None:
        calm = {q.text: q.gold for q in self.asked if q.kind == "predicate" and "calm" in q.text}
        self.assertEqual(calm["Is this true? The sea was calm."], UNKNOWN)
        self.assertEqual(calm['Does the text imply that the following statement is true? "The sea was calm."'], 0)

    def test_evaluation_lines_are_the_questions(self) -> None:
        self.assertEqual([line["gold"] for line in plain_rows(PASSAGE)], ["yes", "no"])

    def test_every_passage_of_the_folder_can_be_read(self) -> None:
        found = load(Path(__file__).parent.parent / "banks")
        self.assertGreater(len(found), 400)
        self.assertTrue(all(len(p.text) > 20 and p.statements and p.questions for p in found))
        self.assertGreater(sum(p.is_kept_back for p in found), 10)


if __name__ == "__main__":
    unittest.main()
