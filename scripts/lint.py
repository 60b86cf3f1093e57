#!/usr/bin/env python3
"""clang-format and clang-tidy over the repository's C++.

usage: scripts/lint.py BUILD [JOBS] [PATH...]    BUILD holds compile_commands.json; PATHs are sources to look at alone

A source that clang-tidy has passed is not looked at again until it, a header of ours that it sees, its compile command,
.clang-tidy or the version of clang-tidy changes: BUILD/tidy holds a stamp for each. A planted fault must be reported
first, so that a broken configuration cannot pass unseen.
"""

import concurrent.futures
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIDY = "clang-tidy-16"
FORMAT = "clang-format"
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def run(command, **options):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, **options)


def known_files():
    names = run(["git", "ls-files", "-co", "--exclude-standard", "*.h", "*.cpp"]).stdout.split("\n")
    return [name for name in names if name and (ROOT / name).is_file()]


def check_format(files):
    if run([FORMAT, "--dry-run", "-Werror"], input="int  x ;\n").returncode == 0:
        sys.exit("lint: clang-format passes a planted fault: is .clang-format whole?")
    result = run([FORMAT, "--dry-run", "-Werror", "--ferror-limit=1", *files])
    for line in result.stderr.splitlines():
        if "clang-format-violations" in line:
            print(line)
    if result.returncode != 0:
        print(f"lint: run {FORMAT} -i on these", flush=True)
    return result.returncode == 0


def check_planted_fault():
    """A use after a move must be an error, and nothing else in that file."""
    text = "#include <string>\n#include <utility>\n" \
           "std::string twice(std::string text) {\n  std::string first = std::move(text);\n  return first + text;\n}\n"
    with tempfile.TemporaryDirectory() as folder:
        planted = pathlib.Path(folder, "planted.cpp")
        planted.write_text(text, encoding="utf-8")
        result = run([TIDY, "--quiet", f"--config-file={ROOT / '.clang-tidy'}", str(planted), "--", "-std=c++20"])
    if result.returncode == 0 or "[bugprone-use-after-move,-warnings-as-errors]" not in result.stdout:
        sys.exit(f"lint: clang-tidy passes a planted fault: is .clang-tidy whole?\n{result.stdout}{result.stderr}")


class Stamps:
    def __init__(self, folder):
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.common = run([TIDY, "--version"]).stdout + (ROOT / ".clang-tidy").read_text(encoding="utf-8")
        self.texts = {}

    def text(self, path):
        if path not in self.texts:
            self.texts[path] = path.read_text(encoding="utf-8") if path.is_file() else None
        return self.texts[path]

    def key(self, source, command):
        """A hash of the source, of all headers of ours that it sees, of the command and the configuration."""
        digest = hashlib.sha256((self.common + command).encode())
        seen, waiting = {source}, [source]
        while waiting:
            path = waiting.pop()
            text = self.text(path)
            digest.update(f"{path}\0{text}\0".encode())
            for name in INCLUDE.findall(text):
                for candidate in (ROOT / "include" / name, path.parent / name, ROOT / name, ROOT / "tests" / name):
                    if candidate not in seen and self.text(candidate) is not None:
                        seen.add(candidate)
                        waiting.append(candidate)
        return digest.hexdigest()

    def file(self, source):
        return self.folder / str(source.relative_to(ROOT)).replace("/", "__")

    def passed(self, source, key):
        return self.text(self.file(source)) == key


def check_tidy(build, jobs, files):
    stamps = Stamps(build / "tidy")
    todo = []
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        source = pathlib.Path(entry["file"])
        if source.is_relative_to(ROOT) and str(source.relative_to(ROOT)) in files:
            key = stamps.key(source, entry["command"])
            if not stamps.passed(source, key):
                todo.append((source, key))
    print(f"lint: clang-tidy on {len(todo)} sources that are new or changed", flush=True)

    def tidy(item):
        return item, run([TIDY, "--quiet", "-p", str(build), str(item[0])])

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done, ((source, key), result) in enumerate(pool.map(tidy, todo), 1):
            verdict = "ok" if result.returncode == 0 else "FAULTS"
            print(f"[{done}/{len(todo)}] {source.relative_to(ROOT)}: {verdict}", flush=True)
            if result.returncode == 0:
                stamps.file(source).write_text(key, encoding="utf-8")
            else:
                failed += 1
                print(result.stdout or result.stderr, flush=True)
    return failed == 0


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build = (ROOT / sys.argv[1]).resolve()
    jobs = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    files = sys.argv[3:] or known_files()
    formatted = check_format(files)
    check_planted_fault()
    tidy = check_tidy(build, jobs, set(files))
    if not (formatted and tidy):
        sys.exit("lint: faults were found")
    print("lint: no faults")


if __name__ == "__main__":
    main()
