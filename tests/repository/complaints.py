#!/usr/bin/env python3
"""Compares docs/complaints.md with the tests.

usage: complaints.py ROOT    prints each difference; exit 1 if there is one

- The page has each of the complaints I-1 to I-43 once, and each names a test Complaints.I<number>...
- Each test that the page names is there, and each test Complaints.I<number>... is named beside its number.
"""

import pathlib
import re
import sys

NUMBERS = range(1, 44)
PAGE = "docs/complaints.md"
ROW = re.compile(r"^\| I-(\d+) \|")
NAME = re.compile(r"`(\w+\.\w+)`")
TEST = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)
NUMBERED = re.compile(r"^Complaints\.I(\d+)[A-Z]")


def tests_of(root):
    found = set()
    for path in sorted(pathlib.Path(root, "tests").rglob("*_test.cpp")):
        found.update(f"{group}.{name}" for group, name in TEST.findall(path.read_text(encoding="utf-8")))
    return found


def rows_of(root):
    """(number, names of tests) of each row of the page, in order."""
    for line in pathlib.Path(root, PAGE).read_text(encoding="utf-8").splitlines():
        row = ROW.match(line)
        if row:
            yield int(row[1]), NAME.findall(line.rsplit("|", 2)[1])


def differences(root):
    tests, rows = tests_of(root), list(rows_of(root))
    found = []
    numbers = [number for number, _ in rows]
    for number in NUMBERS:
        if numbers.count(number) != 1:
            found.append(f"{PAGE}: I-{number} is there {numbers.count(number)} times")
    for number, names in rows:
        own = [name for name in names if (match := NUMBERED.match(name)) and int(match[1]) == number]
        if not own:
            found.append(f"{PAGE}: I-{number} names no test Complaints.I{number}...")
        found.extend(f"{PAGE}: I-{number} names {name}, which is no test" for name in names if name not in tests)
    named = {(number, name) for number, names in rows for name in names}
    for test in sorted(tests):
        match = NUMBERED.match(test)
        if match and (int(match[1]), test) not in named:
            found.append(f"{PAGE}: I-{match[1]} does not name the test {test}")
    return found


def main():
    if len(sys.argv) != 2 or not pathlib.Path(sys.argv[1], PAGE).is_file():
        sys.exit(__doc__)
    found = differences(sys.argv[1])
    for line in found:
        print(line)
    if found:
        sys.exit(1)


if __name__ == "__main__":
    main()
