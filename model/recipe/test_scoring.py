"""The evaluation scores as the server does."""
import math
import unittest

from .scoring import Outcome, calibration_error, choice_probabilities, judge, predicate_probability, summarise


class Probabilities(unittest.TestCase):
    def test_a_choice_is_the_yes_probabilities_made_to_sum_to_one(self) -> None:
        margins = [0.3, -1.2, 2.0]
        yes = [1 / (1 + math.exp(-m)) for m in margins]
        for got, want in zip(choice_probabilities(margins), yes):
            self.assertAlmostEqual(got, want / sum(yes), places=14)

    def test_extreme_margins_stay_finite(self) -> None:
        self.assertEqual(choice_probabilities([-1e5, -1e5]), [0.5, 0.5])
        self.assertEqual(choice_probabilities([1e5, -1e5]), [1.0, 0.0])
        self.assertEqual((predicate_probability(1e5), predicate_probability(-1e5)), (1.0, 0.0))

    def test_a_choice_sums_to_one(self) -> None:
        self.assertAlmostEqual(sum(choice_probabilities([n / 7 for n in range(-100, 100)])), 1, places=12)


class Rows(unittest.TestCase):
    def test_yes_and_no_are_one_predicate_in_either_order(self) -> None:
        for options in (["yes", "no"], ["no", "yes"]):
            self.assertTrue(judge(options, "yes", [2.0]).right)
            self.assertFalse(judge(options, "no", [2.0]).right)

    def test_other_options_are_a_choice(self) -> None:
        outcome = judge(["a", "b"], "b", [-1.0, 1.0])
        self.assertTrue(outcome.right)
        self.assertAlmostEqual(outcome.confidence, outcome.right_probability)

    def test_ties_go_to_the_earlier_option(self) -> None:
        self.assertTrue(judge(["a", "b"], "a", [1.0, 1.0]).right)


class Figures(unittest.TestCase):
    def test_calibration_error_is_the_gap_of_each_bin_weighted_by_its_size(self) -> None:
        outcomes = [Outcome(0.95, True, 0.95, "a")] * 3 + [Outcome(0.95, False, 0.05, "a")] + [Outcome(0.55, True, 0.55, "b")] * 4
        self.assertAlmostEqual(calibration_error(outcomes), (abs(3.8 - 3) + abs(2.2 - 4)) / 8)

    def test_the_edges_of_confidence_fall_into_bins(self) -> None:
        self.assertAlmostEqual(calibration_error([Outcome(1.0, True, 1.0, "a")]), 0)
        self.assertAlmostEqual(calibration_error([Outcome(0.0, False, 0.0, "a")]), 0)

    def test_majority_and_accuracy(self) -> None:
        outcomes = [Outcome(0.9, True, 0.9, "a"), Outcome(0.9, True, 0.9, "a"), Outcome(0.9, False, 0.1, "b")]
        figures = summarise(outcomes, 2)
        self.assertAlmostEqual(figures.accuracy, 2 / 3)
        self.assertAlmostEqual(figures.majority, 2 / 3)
        self.assertAlmostEqual(figures.log_loss, -(2 * math.log(0.9) + math.log(0.1)) / 3)


if __name__ == "__main__":
    unittest.main()
