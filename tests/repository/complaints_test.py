#!/usr/bin/env python3
"""Plants each kind of difference in a small tree and looks whether complaints.py finds it, and only it."""

import pathlib
import tempfile
import unittest

import complaints


def row(number):
    return f"| I-{number} | c | m | `Complaints.I{number}Holds` |\n"


def test_of(number):
    return f"TEST_F(Complaints, I{number}Holds) {{\n}}\n"


PAGE = "".join(map(row, complaints.NUMBERS))
TESTS = "".join(map(test_of, complaints.NUMBERS)) + "TEST(Group,\n     Gathers) {}\n"


class Differences(unittest.TestCase):
    def found(self, page=PAGE, tests=TESTS):
        with tempfile.TemporaryDirectory() as root:
            for name, text in (("docs/complaints.md", page), ("tests/comm/a_test.cpp", tests)):
                path = pathlib.Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return complaints.differences(root)

    def test_a_page_like_its_tests_has_none(self):
        self.assertEqual(self.found(), [])
        self.assertEqual(self.found(page=PAGE.replace("I7Holds`", "I7Holds`, `Group.Gathers`")), [])

    def test_a_complaint_that_is_missing_or_there_twice(self):
        self.assertEqual(len(self.found(page=PAGE.replace(row(5), ""))), 2)
        self.assertIn("2 times", self.found(page=PAGE + row(5))[0])

    def test_a_row_without_a_test_of_its_number(self):
        found = self.found(page=PAGE.replace("`Complaints.I5Holds`", "`Group.Gathers`"))
        self.assertEqual(len(found), 2)
        self.assertIn("I-5 names no test", found[0])

    def test_a_test_that_is_gone(self):
        found = self.found(tests=TESTS.replace(test_of(9), ""))
        self.assertEqual(found, ["docs/complaints.md: I-9 names Complaints.I9Holds, which is no test"])

    def test_a_test_that_the_page_lacks(self):
        found = self.found(tests=TESTS + "TEST(Complaints, I4AlsoHolds) {}\n")
        self.assertEqual(found, ["docs/complaints.md: I-4 does not name the test Complaints.I4AlsoHolds"])


if __name__ == "__main__":
    unittest.main()
