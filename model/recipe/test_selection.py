"""What may not go into the weights stays out."""
import unittest

from .selection import is_dull, refusal


class Licences(unittest.TestCase):
    def test_tasks_with_non_commercial_terms_stay_out(self) -> None:
        for licence in (
            "CC BY-NC 4.0",
            "CC-BY-NC-SA",
            "CC NC",
            "Non-commercial research only",
            "LDC User Agreement",
        ):
            with self.subTest(licence):
                self.assertEqual(refusal("task1_anything", [licence]), "licence")

    def test_the_tasks_that_once_went_in_by_mistake_stay_out_whatever_their_licence_field_says(self) -> None:
        for task in (
            "task248_dream_classification",
            "task906_dialogre_identify_names",
            "task909_dialogre_prevalent_speakers",
            "task495_semeval_headline_classification",
            "task496_semeval_answer_generation",
            "task056_multirc_classify_correct_answer",
            "task1421_mathqa_semeval_2019_task10",
        ):
            with self.subTest(task):
                self.assertEqual(refusal(task, ["MIT"]), "licence")

    def test_their_licence_fields_keep_them_out_under_another_name(self) -> None:
        for licence in (
            "https://github.com/nlpdata/dream/blob/master/license.txt",
            "https://github.com/nlpdata/dialogre",
            "https://competitions.codalab.org/competitions/20970",
            "https://github.com/allenai/semeval-2019-task-10",
        ):
            with self.subTest(licence):
                self.assertEqual(refusal("task9999_new_name", [licence]), "licence")

    def test_open_terms_go_in(self) -> None:
        for licence in ("MIT", "Apache 2.0", "CC BY 4.0", "CC BY-SA 4.0", "CC0", "BSD"):
            with self.subTest(licence):
                self.assertIsNone(refusal("task190_snli_classification", [licence]))

    def test_an_unstated_licence_goes_in_only_when_asked(self) -> None:
        self.assertIsNone(refusal("task10_x", ["Unknown"]))
        self.assertIsNone(refusal("task10_x", []))
        self.assertEqual(refusal("task10_x", ["Unknown"], include_unknown=False), "unknown licence")
        self.assertEqual(refusal("task10_x", [], include_unknown=False), "unknown licence")
        self.assertIsNone(refusal("task10_x", ["MIT"], include_unknown=False))


class HeldOut(unittest.TestCase):
    def test_tasks_on_evaluation_sets_stay_out(self) -> None:
        for task in (
            "task1541_agnews_classification",
            "task1289_trec_classification",
            "task379_agnews_topic_classification",
            "task1344_glue_entailment_classification",
            "task380_boolq_yes_no_question",
            "task284_imdb_classification",
            "task109_smsspamcollection_spamsmsdetection",
            "task1529_hans_entailment",
        ):
            with self.subTest(task):
                self.assertEqual(refusal(task, ["MIT"]), "held out")


class Dull(unittest.TestCase):
    def test_puzzles_are_told_from_language_tasks(self) -> None:
        self.assertTrue(is_dull("task205_remove_even_elements_list_"))
        self.assertFalse(is_dull("task199_mnli_classification"))


if __name__ == "__main__":
    unittest.main()
