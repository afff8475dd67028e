"""Computed texts in other languages: the wordings of every language, and the answers."""
import string
import unittest
from collections import Counter
from datetime import date
from random import Random

from . import languages_computed as computed

ENGLISH = computed.wordings(computed.ENGLISH)
# Fourteen that are trained on; Swedish and Vietnamese are kept back.
LANGUAGES = "ar de es fr hi it ja ko nl pl pt ru tr zh".split()


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def faults_of(here: dict) -> list[str]:
    found = []
    if len(set(here["names"])) < 8 or len(here["months"]) != 12 or len(here["around"]) < 5:
        found.append("names, months, around")
    if not all({"m", "mm", "month"} & fields(form) and {"d", "dd"} & fields(form) for form in here["dates"]):
        found.append("dates")
    if not all("mm" in fields(form) and {"h", "hh"} & fields(form) for form in here["clocks"]) or not all("n" in fields(form) for form in here["money"]):
        found.append("clocks, money")
    for name, variants in ENGLISH["situations"].items():
        if len(here["situations"][name]) != len(variants):
            found.append(f"{name}: variants")
            continue
        for place, (own, said) in enumerate(zip(here["situations"][name], variants)):
            wanted = fields(said["texts"][0]) - {"a", "b"}
            for text in own["texts"]:
                if fields(text) - {"a", "b"} != wanted:
                    found.append(f"{name} {place}: {text}")
            if own["asks"].keys() != said["asks"].keys() or own.get("turns", {}).keys() != said.get("turns", {}).keys():
                found.append(f"{name} {place}: asks or turns")
            if not all(forms["yes"] for forms in own["asks"].values()):
                found.append(f"{name} {place}: nothing asked")
            if ("choice" in own) != ("choice" in said) or len(own.get("choice", {}).get("options", ())) != len(said.get("choice", {}).get("options", ())):
                found.append(f"{name} {place}: choice")
            for turn, forms in own.get("turns", {}).items():
                if not forms or any(fields(form) - {"a", "b", "n", "m", "when", "due"} for form in forms):
                    found.append(f"{name} {place}: {turn}")
            known = wanted | {"a", "b", "total", "other", "third", "min"}
            asked = [text for forms in own["asks"].values() for text in (*forms["yes"], *forms["no"])]
            asked += [*own.get("choice", {}).get("ask", ()), *own.get("choice", {}).get("options", ())]
            found += [f"{name} {place}: {text}" for text in asked if fields(text) - known - {"n", "m", "due"}]
    return found


class Wordings(unittest.TestCase):
    def test_every_language_says_everything(self) -> None:
        self.assertEqual(computed.languages(), LANGUAGES)
        for language in (computed.ENGLISH, *LANGUAGES):
            with self.subTest(language=language):
                self.assertEqual(faults_of(computed.wordings(language)), [])

    def test_a_fault_is_found(self) -> None:
        for wrong in ({"months": []}, {"dates": ["{month}"]}, {"clocks": ["{h}"]}, {"money": ["1"]}, {"situations": {**ENGLISH["situations"], "owes": []}}):
            self.assertNotEqual(faults_of({**ENGLISH, **wrong}), [])


class Answers(unittest.TestCase):
    def test_groups_are_the_same_for_a_seed_and_ask_twice_about_the_same_texts(self) -> None:
        made = list(computed.groups(3, 420))
        self.assertEqual(made, list(computed.groups(3, 420)))
        self.assertNotEqual(made, list(computed.groups(4, 420)))
        for own, other in zip(made[::2], made[1::2]):
            self.assertEqual(own.texts, other.texts)
            self.assertTrue(other.source.startswith(own.source + "-asked-in-"))
        self.assertEqual({one.source for one in made[::2]}, {f"computed_{language}" for language in LANGUAGES})
        asked_in = Counter(one.source[-2:] for one in made[1::2])
        self.assertEqual(set(asked_in), {computed.ENGLISH, *LANGUAGES})
        self.assertGreater(asked_in[computed.ENGLISH], 210)

    def test_nothing_is_left_to_fill_in_and_yes_and_no_are_near_each_other(self) -> None:
        answers: Counter[bool] = Counter()
        for record in computed.records(9, 700):
            for side in (record.own, record.other):
                options = [option for _, all_options, _ in side["choices"] for option in all_options]
                for text in [*side["texts"], *options, *(asked for asked, _ in side["questions"])]:
                    self.assertNotIn("{", text)
                self.assertTrue(side["questions"])
                for _, right in side["questions"]:
                    answers.update(right)
        self.assertTrue(0.8 < answers[True] / answers[False] < 1.25, answers)

    def test_worlds_have_the_answers_that_their_numbers_give(self) -> None:
        rng = Random(1)
        for _ in range(200):
            for world in computed.SITUATIONS["deadline"][0](rng):
                late = (world["when"] - world["due"]).days
                self.assertEqual(world["asks"], {"in_time": late <= 0, "week_late": late > 7})
                self.assertEqual(world["choice"], 0 if late < 0 else 1 if late == 0 else 2)
                self.assertEqual((type(world["due"]), world["due"].year), (date, computed.YEAR))
            for world in computed.SITUATIONS["limit"][0](rng):
                self.assertEqual(world["asks"]["within"], world["amount_money"] <= world["limit_money"])
                self.assertEqual(world["asks"]["within"], world["amount"] <= world["limit"])
            for world in computed.SITUATIONS["opening"][0](rng):
                self.assertEqual(world["asks"]["is_open"], world["open"] <= world["t"] < world["close"])
            for world in computed.SITUATIONS["enough"][0](rng):
                self.assertEqual(world["asks"]["enough"], world["boxes"] * world["each"] >= world["need"])
            swimmers, returns = (variant(rng) for variant in computed.SITUATIONS["rule"])
            for world in swimmers:
                self.assertEqual(world["asks"]["allowed"], world["age"] >= world["min"] or world["turn"] == "with")
            for world in returns:
                self.assertEqual(world["asks"]["allowed"], world["age"] <= world["min"] or world["turn"] == "with")


if __name__ == "__main__":
    unittest.main()
