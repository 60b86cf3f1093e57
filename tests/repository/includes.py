#!/usr/bin/env python3
"""Checks who includes what, and how long files are.

usage: includes.py ROOT    prints each violation as FILE:LINE: text; exit 1 if there is one

The rules, from the layers (a layer sees only its left) and from what a header costs to compile:
- a layer's headers and sources include muster/<layer>/ of the layers to its left only;
- base, proc, matting and track include nothing of torch, fmt apart;
- no header or source includes a header that brings in all of torch;
- of the public headers train/module.h alone includes torch/nn/module.h (or what includes that);
- c10d's ProcessGroup.hpp is for src/comm/c10d*, its tests in tests/dist/c10d* and bench/sync_bare*;
- few sources see the dear headers, through ours too: nn/module.h or torch.h, and nlohmann/json;
- no file of ours is over 500 lines.
"""

import pathlib
import re
import sys

LEFT = {  # each layer, and those that it may include
    "base": set(),
    "proc": {"base"},
    "matting": {"base"},
    "track": {"base"},
    "value": {"base"},
    "comm": {"base", "value", "proc"},
    "data": {"base", "value"},
    "metrics": {"base", "value", "comm", "data", "matting"},
    "io": {"base", "value", "comm", "data", "metrics", "matting"},
    "train": {"base", "proc", "track", "value", "comm", "data", "metrics", "io", "matting"},
    "cli": {"base", "proc", "track", "value", "comm", "data", "metrics", "io", "train", "matting"},
}
WITHOUT_TORCH = {"base", "proc", "matting", "track"}
TORCH = re.compile(r"^(torch|ATen|c10|caffe2|c10d)/")
WHOLE_TORCH = {"torch/torch.h", "torch/types.h", "torch/all.h", "torch/nn.h", "torch/extension.h", "ATen/ATen.h"}
MODULE = re.compile(r"^torch/(nn\b|(torch|all|python|optim)\.h|optim/(?!optimizer\.h|schedulers/|serialize\.h))")
MODULE_HOME = "include/muster/train/module.h"
PROCESS_GROUP_HOMES = ("src/comm/c10d", "tests/dist/c10d", "bench/sync_bare")
MOST_MODULE_SOURCES = 40
MOST_TRAIN_TEST_SOURCES = 6
MOST_NLOHMANN_SOURCES = 5
MOST_LINES = 500

FOLDERS = ("include", "src", "apps", "examples", "tests", "bench", "scripts", "cmake")
CODE = {".h", ".hpp", ".cpp"}
LINED = CODE | {".py", ".sh", ".cmake", ".txt", ".in"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def is_test_data(path):
    return path.parts[0] == "tests" and "data" in path.parts[2:-1]


class Tree:
    """The repository's files by path relative to the root, each with its includes as (line, name) pairs."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.includes = {}
        self.lines = {}
        for folder in FOLDERS:
            for path in sorted((self.root / folder).rglob("*")):
                if path.is_file() and path.suffix in LINED and not is_test_data(path.relative_to(self.root)):
                    self._read(path)

    def _read(self, path):
        name = path.relative_to(self.root).as_posix()
        lines = path.read_text(encoding="utf-8").splitlines()
        self.lines[name] = len(lines)
        if path.suffix in CODE:
            found = ((number, INCLUDE.match(line)) for number, line in enumerate(lines, 1))
            self.includes[name] = [(number, match[2]) for number, match in found if match]

    def resolve(self, includer, name):
        """The path of our own file that `name` means, or None."""
        beside = (pathlib.PurePosixPath(includer).parent / name).as_posix()
        for candidate in (f"include/{name}", beside, name, f"tests/{name}"):
            if candidate in self.includes:
                return candidate
        return None

    def reaches(self, source, is_target):
        """Whether `source` sees an include for which `is_target` holds, directly or through our own files."""
        seen, waiting = {source}, [source]
        while waiting:
            file = waiting.pop()
            for _, name in self.includes[file]:
                if is_target(name):
                    return True
                ours = self.resolve(file, name)
                if ours and ours not in seen:
                    seen.add(ours)
                    waiting.append(ours)
        return False

    def sources(self, prefix=""):
        return [name for name in self.includes if name.endswith(".cpp") and name.startswith(prefix)]


def layer_of(name):
    match = re.match(r"^(?:include/muster|src)/([^/]+)/", name)
    return match[1] if match else None


def check_file(name, includes, report):
    layer = layer_of(name)
    if layer and layer not in LEFT:
        report(f"{name}:1: '{layer}' is no layer: {', '.join(LEFT)}")
        return
    for number, include in includes:
        place = f"{name}:{number}:"
        target = re.match(r"^(?:muster|src)/([^/]+)/", include)
        if layer and target and target[1] != layer and target[1] not in LEFT[layer]:
            report(f"{place} layer {layer} includes {include}; it may include {', '.join(sorted(LEFT[layer])) or 'none'}")
        if layer in WITHOUT_TORCH and TORCH.match(include):
            report(f"{place} layer {layer} has no torch, and includes {include}")
        if layer and include in WHOLE_TORCH:
            report(f"{place} {include} brings in all of torch: include what is used (ATen/core/Tensor.h, ATen/ops/NAME.h)")
        if name.startswith("include/") and MODULE.match(include) and name != MODULE_HOME:
            report(f"{place} of the public headers only {MODULE_HOME} includes torch/nn/module.h, or what includes it")
        if include.endswith("c10d/ProcessGroup.hpp") and not name.startswith(PROCESS_GROUP_HOMES):
            report(f"{place} only {'* and '.join(PROCESS_GROUP_HOMES)}* include ProcessGroup.hpp")


def check_at_most(limit, sources, what, report):
    if len(sources) > limit:
        report(f"{sources[limit]}:1: {len(sources)} sources see {what}; at most {limit} may: {' '.join(sources)}")


def violations(root):
    tree = Tree(root)
    found = []
    for name, includes in tree.includes.items():
        check_file(name, includes, found.append)
    for name, count in tree.lines.items():
        if count > MOST_LINES:
            found.append(f"{name}:{MOST_LINES + 1}: {count} lines; at most {MOST_LINES}")

    heavy = [source for source in tree.sources() if tree.reaches(source, MODULE.match)]
    check_at_most(MOST_MODULE_SOURCES, heavy, "torch/nn/module.h or torch.h", found.append)
    check_at_most(MOST_TRAIN_TEST_SOURCES, [s for s in heavy if s.startswith("tests/train/")],
                  "torch/nn/module.h or torch.h in tests/train", found.append)
    json = [source for source in tree.sources() if tree.reaches(source, lambda name: name.startswith("nlohmann/"))]
    check_at_most(MOST_NLOHMANN_SOURCES, json, "nlohmann/json", found.append)
    return found


def main():
    if len(sys.argv) != 2 or not (pathlib.Path(sys.argv[1]) / "include").is_dir():
        sys.exit(__doc__)
    found = violations(sys.argv[1])
    for line in found:
        print(line)
    if found:
        sys.exit(1)


if __name__ == "__main__":
    main()
