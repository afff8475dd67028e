"""Computed groups: the same for a seed, balanced, of many templates, with answers that can be worked out again."""
import json
import re
import unittest
from collections import Counter, defaultdict

from .decisions.computed import TEMPLATES, groups
from .decisions.computed.build import LONG_SHARE, WORDS_MAX, build
from .decisions.computed.world import Draw
from .examples import choice, predicate, score

COUNT = 2_000


def of_template(name: str, count: int) -> list[dict]:
    """Groups of one template, without those of long evidence."""
    template = next(template for template in TEMPLATES if template.id == name)
    made = (build(template, Draw(seed), {}) for seed in range(count))
    return [group for group in made if group and len(group["texts"][0]) < 2_000]


class ComputedGroups(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.groups = list(groups(11, COUNT))

    def test_a_seed_gives_the_same_groups(self) -> None:
        self.assertEqual(json.dumps(self.groups[:300]), json.dumps(list(groups(11, 300))))
        self.assertNotEqual(self.groups[:5], list(groups(12, 5)))

    def test_no_template_is_in_more_than_one_percent(self) -> None:
        self.assertGreaterEqual(len({template.id for template in TEMPLATES}), 400)
        self.assertEqual(len({template.id for template in TEMPLATES}), len(TEMPLATES))
        counts = Counter(group["template"] for group in self.groups)
        self.assertLessEqual(max(counts.values()), COUNT // 100)

    def test_every_group_has_a_question_that_flips_and_one_that_does_not(self) -> None:
        for group in self.groups:
            answers = [set(right) for _, right in group["questions"]]
            self.assertTrue(any({True, False} <= right for right in answers), group["template"])
            self.assertTrue(any(len(right) == 1 for right in answers), group["template"])

    def test_groups_have_two_to_five_texts_and_an_answer_for_each(self) -> None:
        for group in self.groups:
            texts = group["texts"]
            self.assertTrue(2 <= len(set(texts)) == len(texts) <= 5, group["template"])
            for text, right in group["questions"]:
                self.assertEqual(len(right), len(texts))
                [predicate(text, holds) for holds in right]
            for make, part in ((choice, "choices"), (score, "scales")):
                for text, options, right in group[part]:
                    self.assertEqual(len(right), len(texts))
                    self.assertTrue(2 <= len(set(options)) == len(options) <= 11, (group["template"], options))
                    [make(text, options, index) for index in right if index is not None]

    def test_no_slot_is_left_open(self) -> None:
        for group in self.groups:
            if group["phenomenon"] != "records":
                for text in (*group["texts"], *(question[0] for question in group["questions"])):
                    self.assertNotRegex(text, r"[{}\x00]|::|  |None\b(?! of)", group["template"])

    def test_yes_and_no_are_about_equally_frequent_in_every_family(self) -> None:
        found: dict[str, Counter] = defaultdict(Counter)
        for group in self.groups:
            for _, right in group["questions"]:
                found[group["phenomenon"]].update(right)
        for family, counts in found.items():
            self.assertLess(abs(counts[True] - counts[False]), 0.05 * counts.total(), family)
            self.assertLess(counts[None], 0.3 * counts.total(), family)

    def test_the_right_option_stands_anywhere(self) -> None:
        places: dict[int, Counter] = defaultdict(Counter)
        for group in self.groups:
            for _, options, right in group["choices"]:
                places[len(options)].update(index for index in right if index is not None)
        for size, counts in places.items():
            if counts.total() > 300:
                for place in range(size):
                    self.assertAlmostEqual(counts[place] / counts.total(), 1 / size, delta=0.08)

    def test_scales_of_every_size_from_2_to_11(self) -> None:
        sizes = Counter(len(levels) for group in self.groups for _, levels, _ in group["scales"])
        self.assertEqual(set(sizes), set(range(2, 12)))

    def test_lengths(self) -> None:
        lengths = [len(group["texts"][0].split()) for group in self.groups if group["phenomenon"] != "records"]
        long = [length for length in lengths if length > WORDS_MAX + 50]
        self.assertAlmostEqual(len(long) / len(lengths), LONG_SHARE, delta=0.02)
        self.assertGreaterEqual(min(long), 900)
        self.assertLessEqual(max(long), 3_100)
        self.assertGreaterEqual(min(lengths), 12)

    def test_comparisons_worked_out_from_the_text(self) -> None:
        """Reads "Things: X N, Y M." back and compares."""
        checked = 0
        for group in of_template("comparison/counts/2", 60):
            for place, text in enumerate(group["texts"]):
                for question, right in group["questions"]:
                    asked = re.search(r"Do (\w+) and (\w+) have equal numbers\?$", question)
                    if asked:
                        a, b = (re.search(rf"\b{name} ([\w,]+)", text.split(": ", 1)[-1]).group(1).rstrip(",") for name in asked.groups())
                        self.assertEqual(right[place], a == b, text)
                        checked += 1
        self.assertGreater(checked, 5)

    def test_tables_worked_out_from_the_json(self) -> None:
        checked = 0
        for group in of_template("records/table/3", 60):
            for place, text in enumerate(group["texts"]):
                rows = json.loads(text)
                first = max(rows, key=lambda row: row["points"])["name"]
                for question, options, right in group["choices"]:
                    if "most points" in question or "comes first" in question:
                        self.assertEqual(options[right[place]], first)
                        checked += 1
        self.assertGreater(checked, 10)

    def test_thresholds_worked_out_from_the_text(self) -> None:
        tests = {
            "or over": lambda v, m: v >= m, "over": lambda v, m: v > m, "under": lambda v, m: v < m, "up to and including": lambda v, m: v <= m,
            "at least": lambda v, m: v >= m, "below": lambda v, m: v < m, "more than": lambda v, m: v > m, "no more than": lambda v, m: v <= m,
        }
        checked = 0
        for group in of_template("thresholds/age/2", 60):
            for place, text in enumerate(group["texts"]):
                rule, age = re.search(r"age ([a-z 0-9]+)\. [^:]*'s age: (\d+)\.", text).groups()
                limit = int(re.search(r"\d+", rule).group())
                met = tests[re.sub(r"\d+", "", rule).strip()](int(age), limit)
                for question, right in group["questions"]:
                    if question.startswith(("May ", "By the rule, is")):
                        self.assertEqual(right[place], met, text)
                        checked += 1
        self.assertGreater(checked, 10)


if __name__ == "__main__":
    unittest.main()
