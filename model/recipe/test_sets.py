"""Evaluation sets are read whole, or as the same sample every time."""
import json
import tempfile
import unittest
from pathlib import Path

from .sets import MANY_OPTIONS, MANY_OPTIONS_ROWS_MAX, ROWS_MAX, read_all, read_sample


class Sets(unittest.TestCase):
    def write(self, options: int) -> Path:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = Path(folder.name) / "set.jsonl"
        names = [str(number) for number in range(options)]
        # The text has characters that end a line for some readers, and do not here.
        rows = [{"text": f"{number}\u2028\x0b", "question": "?", "options": names, "gold": "0"} for number in range(600)]
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf8")
        return path

    def test_all_rows_are_read_in_their_order(self) -> None:
        self.assertEqual([row["text"] for row in read_all(self.write(2))], [f"{n}\u2028\x0b" for n in range(600)])

    def test_a_sample_is_the_same_every_time_and_smaller_where_there_are_many_options(self) -> None:
        path = self.write(MANY_OPTIONS)
        self.assertEqual(read_sample(path), read_sample(path))
        self.assertEqual(len(read_sample(path)), ROWS_MAX)
        self.assertEqual(len(read_sample(self.write(MANY_OPTIONS + 1))), MANY_OPTIONS_ROWS_MAX)


if __name__ == "__main__":
    unittest.main()
