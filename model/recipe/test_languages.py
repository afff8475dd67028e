"""Texts in other languages: what is kept back, and every line of the folder."""
import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

from . import languages
from .examples import UNKNOWN

BANKS = Path(__file__).parent.parent / "banks"
TEXTS_MAX = 4
QUESTIONS_MIN, QUESTIONS_MAX = 2, 4
CHARACTERS_MAX = 1_500
PARTS = ("questions", "choices", "scales")


def everyday(text: str) -> dict[str, Any]:
    own = {"questions": [["Betalat?", [True]], ["Sent?", [None]]], "choices": [["Vad?", ["a", "b"], [1]]], "scales": []}
    english = {"questions": [["Paid?", [False]]], "choices": [], "scales": [["How late?", ["a", "b"], [0]]]}
    return {"set": "everyday-xx", "domain": "bank", "texts": [text], **own, "english": english}


def faults_of(language: str, record: dict[str, Any]) -> list[str]:
    texts, english, found = record["texts"], record.get("english", {}), []
    if record["set"] == f"everyday-{language}":
        if len(texts) != 1 or "phenomenon" in record:
            found.append("an everyday text is alone and has no phenomenon")
    elif record["set"] == f"lang-{language}":
        if not 2 <= len(texts) <= TEXTS_MAX or not record.get("phenomenon"):
            found.append(f"a group has 2 to {TEXTS_MAX} texts and a phenomenon")
        rights = [entry[-1] for side in (record, english) for part in PARTS for entry in side.get(part, ())]
        if not any(len(set(right)) > 1 for right in rights):
            found.append("nothing flips")
    else:
        found.append(f"set {record['set']}")
    if not record.get("domain") or any(not text.strip() or len(text) > CHARACTERS_MAX for text in texts):
        found.append(f"a domain, and texts of at most {CHARACTERS_MAX} characters")
    for name, side, questions_min in (("own", record, QUESTIONS_MIN), ("english", english, 1)):
        if not all(isinstance(side.get(part), list) for part in PARTS):
            found.append(f"{name}: {', '.join(PARTS)} are wanted")
            continue
        if not questions_min <= len(side["questions"]) <= QUESTIONS_MAX:
            found.append(f"{name}: {len(side['questions'])} questions")
        asked = [entry[0] for part in PARTS for entry in side[part]]
        if len(set(asked)) != len(asked) or not all(text.strip() for text in asked):
            found.append(f"{name}: a question twice or empty")
        for text, right in side["questions"]:
            if len(right) != len(texts) or not all(answer is None or type(answer) is bool for answer in right):
                found.append(f"{name}: answers of {text}")
        for text, options, right in [*side["choices"], *side["scales"]]:
            if not 2 <= len(options) <= 8 or len(set(options)) != len(options):
                found.append(f"{name}: options of {text}")
            if len(right) != len(texts) or not all(place is None or type(place) is int and 0 <= place < len(options) for place in right):
                found.append(f"{name}: places of {text}")
    return found


class Read(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        banks = Path(self.folder.name)
        (banks / languages.FOLDER).mkdir()
        for name in ("de", *languages.KEPT_BACK_LANGUAGES):
            lines = (json.dumps(everyday(f"{name} {n}")) + "\n" for n in range(40))
            (banks / languages.FOLDER / f"{name}.jsonl").write_text("".join(lines), encoding="utf8")
        self.trained, self.back = (list(languages.written(banks, kept_back)) for kept_back in (False, True))

    def test_kept_back_languages_are_never_trained_on(self) -> None:
        self.assertEqual({made.language for made in self.trained}, {"de"})
        for name in languages.KEPT_BACK_LANGUAGES:
            self.assertEqual(sum(made.language == name for made in self.back), 40)

    def test_of_the_others_some_whole_lines_are_kept_back(self) -> None:
        back = {made.own.texts for made in self.back if made.language == "de"}
        self.assertTrue(0 < len(back) < 20)
        self.assertFalse(back & {made.own.texts for made in self.trained})
        self.assertEqual(len(back) + len(self.trained), 40)

    def test_both_sides_ask_about_the_same_text(self) -> None:
        made = self.trained[0]
        self.assertEqual(made.own.texts, made.english.texts)
        self.assertEqual([q.gold for q in made.own.examples[0].questions], [1, UNKNOWN, 1])
        self.assertEqual([q.text for q in made.english.examples[0].questions], ["Paid?", "How late?"])


class Folder(unittest.TestCase):
    def test_every_line_is_whole_and_no_text_stands_twice(self) -> None:
        seen: set[str] = set()
        for file in sorted((BANKS / languages.FOLDER).glob("*.jsonl")):
            for number, line in enumerate(file.read_text(encoding="utf8").rstrip("\n").split("\n"), 1):
                with self.subTest(file=file.name, line=number):
                    record = json.loads(line)
                    self.assertEqual(faults_of(file.stem, record), [])
                    self.assertFalse(seen & set(record["texts"]))
                    self.assertEqual(len(set(record["texts"])), len(record["texts"]))
                    seen.update(record["texts"])

    def test_a_fault_is_found(self) -> None:
        right = everyday("text")
        self.assertEqual(faults_of("xx", right), [])
        for wrong in (
            {"set": "everyday-yy"}, {"set": "lang-xx"}, {"texts": ["a", "b"]}, {"texts": [" "]}, {"english": {}}, {"domain": ""},
            {"questions": right["questions"][:1]}, {"questions": [["A?", [1]], ["B?", [True]]]}, {"questions": [["A?", [True]]] * 2},
            {"choices": [["Vad?", ["a", "b"], [2]]]}, {"choices": [["Vad?", ["a", "a"], [0]]]}, {"scales": [["Hur?", ["a", "b"], [True]]]},
            {"choices": [["Vad?", ["a", "b"], [0, 1]]]},
        ):
            with self.subTest(wrong=wrong):
                self.assertNotEqual(faults_of("xx", {**right, **wrong}), [])


if __name__ == "__main__":
    unittest.main()
