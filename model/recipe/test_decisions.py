"""Generated and converted examples are well formed, and their answers are right where they can be worked out."""
import json
import re
import tempfile
import unittest
from pathlib import Path
from random import Random

from .config import Selection
from .decisions import (
    inference,
    instructions,
    labelled,
    messages,
    opinions,
    passages,
    records,
    tickets,
    topics,
)
from .examples import Example
from .prepare import Task, find_labels

ROUNDS = 400
PASSAGE = (
    "Lisbon is the capital of Portugal and its largest city by far. The city lies at the mouth of the river Tagus. "
    "In 1755 an earthquake destroyed most of the buildings near the harbour. Sebastian Carvalho led the work of "
    "building the lower town again. About 500 thousand people live in the city today."
)
OTHER = (
    "The violin is a wooden instrument with four strings, played with a bow. Antonio Stradivari built some of the "
    "best known instruments in Cremona. Many orchestras have more than twenty players of the violin in total."
)


def labels_task(definition: str, labels: list[str] | None) -> Task:
    return Task(definition, "?", "MIT", labels, False, 100)


class WellFormed(unittest.TestCase):
    def check(self, made: Example | None) -> None:
        if made is None:
            return
        self.assertTrue(made.evidence.strip())
        for question in made.questions:
            self.assertTrue(question.text.strip())
            self.assertNotRegex(
                f"{made.evidence} {question.text}", r"\{(?:[a-zA-Z]|prize|call|link|thing|city|deed|Deed)\}"
            )
            values = [option.value for option in question.options]
            self.assertEqual(len(set(values)), len(values), "an option stands twice")
            self.assertNotEqual(len(values), 1, "a choice of one teaches nothing")

    def test_every_generator_makes_distinct_options_and_leaves_no_place_unfilled(self) -> None:
        rng = Random(1)
        for _ in range(ROUNDS):
            for maker in (records.from_nothing, tickets.from_nothing, messages.from_nothing):
                self.check(maker(rng))

    def test_documents_give_examples(self) -> None:
        rng, others = Random(2), [(f"Violin {n}", OTHER) for n in range(8)]
        made = [passages.from_document(rng, ("Lisbon", PASSAGE), others) for _ in range(ROUNDS)]
        for item in made:
            self.check(item)
        kinds = {item.source for item in made if item}
        self.assertEqual(kinds, {"passage_title", "passage_fact", "passage_mention", "passage_next"})

    def test_the_same_seed_gives_the_same_examples(self) -> None:
        def run() -> list[Example | None]:
            rng = Random(3)
            return [records.from_nothing(rng) for _ in range(50)] + [
                tickets.from_nothing(rng) for _ in range(50)
            ]

        self.assertEqual(run(), run())


class RightAnswers(unittest.TestCase):
    def test_comparisons_with_a_number_are_answered_by_arithmetic(self) -> None:
        rng, checked = Random(4), 0
        for _ in range(ROUNDS):
            question = records.ask_number(rng, "the age", 40)
            if match := re.fullmatch(r"Is the age greater than (-?\d+)\?", question.text):
                self.assertEqual(question.gold, int(40 > int(match[1])))
                checked += 1
        self.assertGreater(checked, 10)

    def test_a_scale_finds_the_level_that_holds_the_value(self) -> None:
        for age, level in ((17, "minor"), (18, "young adult"), (64, "adult"), (65, "senior")):
            question = records.ask_scale(Random(5), {"age": age})
            assert question
            self.assertEqual(question.options[question.gold].value, level)

    def test_an_altered_sentence_is_not_in_the_passage(self) -> None:
        rng = Random(6)
        for _ in range(ROUNDS):
            altered = passages.alter(
                rng, "In 1755 an earthquake destroyed most of the buildings.", PASSAGE, OTHER
            )
            self.assertNotIn(altered or "\0", PASSAGE)

    def test_a_statement_is_judged_by_its_relation(self) -> None:
        rng = Random(7)
        for _ in range(ROUNDS):
            question = inference.judge(rng, "A dog runs.", "contradicted")
            if question.kind == "predicate":
                asks_for_conflict = any(
                    question.text == inference.fill(template, "A dog runs.")
                    for template in inference.CONTRADICTED
                )
                self.assertEqual(question.gold, int(asks_for_conflict))

    def test_the_topic_is_read_off_the_first_sentence(self) -> None:
        self.assertEqual(topics.find_topic("Ada Example is a French composer from Lyon."), "music")
        self.assertIsNone(topics.find_topic("Nothing of the kind is said here."))

    def test_stars_fall_on_their_level(self) -> None:
        rng = Random(8)
        for _ in range(ROUNDS):
            made = opinions.stars(rng, "Fine.", 4, "test")
            assert made
            for question in made.questions:
                if len(question.options) == 5:
                    self.assertEqual(question.gold, 3)
                if len(question.options) == 3:
                    self.assertEqual(question.gold, 2)


class Instructions(unittest.TestCase):
    def test_pairs_are_taken_out_of_an_entailment_task(self) -> None:
        made = inference.from_instruction(Random(1), "task190_snli", "Sentence 1: A. Sentence 2: B.", "E")
        assert made
        self.assertIn("A.", made.evidence)
        self.assertEqual(made.source, "snli")

    def test_written_options_become_the_options(self) -> None:
        found = instructions.find_options("What is it? (A) a bird (B) a plane (C) a cloud")
        self.assertEqual(found, ("What is it?", ["A", "B", "C"], ["a bird", "a plane", "a cloud"]))

    def test_letters_out_of_order_are_not_options(self) -> None:
        self.assertIsNone(instructions.find_options("(A) a bird (C) a cloud"))

    def test_passage_and_question_are_told_apart(self) -> None:
        self.assertEqual(
            instructions.split_question(
                "Passage: The train leaves at nine o'clock.\nQuestion: When does it leave?"
            ),
            ("The train leaves at nine o'clock.", "When does it leave?"),
        )

    def test_a_definition_is_cut_at_a_sentence(self) -> None:
        self.assertEqual(
            instructions.shorten("In this task, you need to name it. Then more words follow.", 3), "Name it."
        )

    def test_a_label_task_gives_the_right_label(self) -> None:
        rng, task = Random(9), labels_task("Name the animal.", ["cat", "dog", "cow"])
        for _ in range(ROUNDS):
            made = instructions.from_instance(
                rng, "task1_animals", task, "It barks at night.", "dog", ["cat"]
            )
            assert made
            question = made.questions[0]
            if question.kind == "choice":
                self.assertEqual(question.options[question.gold].value, "dog")
            else:
                self.assertEqual(question.gold == 1, '"dog"' in question.text)

    def test_labels_are_few_and_cover_nearly_everything(self) -> None:
        self.assertEqual(find_labels(["a"] * 60 + ["b"] * 40), ["a", "b"])
        self.assertIsNone(find_labels([str(n) for n in range(100)]))
        self.assertIsNone(find_labels(["a"] * 100))


class Labelled(unittest.TestCase):
    def test_each_set_is_read_in_its_published_form(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            pair = {"gold_label": "entailment", "sentence1": "A man runs.", "sentence2": "Someone moves."}
            write(
                folder / "snli" / "snli_1.0_dev.jsonl",
                json.dumps(pair) + "\n" + json.dumps({**pair, "gold_label": "-"}),
            )
            recast = [{"context": "c", "hypothesis": "h", "label": "not-entailed"}]
            write(folder / "dnc" / "dev" / "recast_puns_data.json", json.dumps(recast))
            write(folder / "dnc" / "train" / "recast_puns_data.json", json.dumps(recast))
            intents = [[f"text {n}", f"intent_{n}"] for n in range(12)]
            write(folder / "clinc150" / "data_full.json", json.dumps({"train": intents}))
            write(
                folder / "goemotions" / "emotions.txt",
                "\n".join(("joy", "fear", "anger", "love", "grief", "pride", "relief")),
            )
            write(folder / "goemotions" / "train.tsv", "so happy\t0\tid1\nboth\t0,1\tid2\n")
            sentence = "a b c d e f g"
            write(
                folder / "sst2" / "train.tsv",
                f"sentence\tlabel\n" + f"{sentence}\t1\n" * 20 + "short one\t0\n" * 20,
            )
            made = list(labelled.read_all(folder, Selection()))
            without = list(labelled.read_all(folder, Selection(include_unchecked_sets=False)))
        count = {
            source: sum(item.source == source for item in made) for source in {item.source for item in made}
        }
        self.assertEqual(
            (count["snli_dev"], count["dnc"], count["clinc150"], count["goemotions"]), (1, 1, 12, 1)
        )
        self.assertTrue(0 < count["sst2"] <= 20)
        self.assertEqual({item.source for item in without}, {"snli_dev", "clinc150", "goemotions"})


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf8")


if __name__ == "__main__":
    unittest.main()
