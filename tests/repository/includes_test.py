#!/usr/bin/env python3
"""Plants each kind of violation in a small tree and looks whether includes.py finds it, and only it."""

import pathlib
import tempfile
import unittest

import includes

CLEAN = {
    "include/muster/base/check.h": "#pragma once\n#include <string>\n",
    "include/muster/value/value.h": "#include <muster/base/check.h>\n#include <ATen/core/Tensor.h>\n",
    "include/muster/train/module.h": "#include <torch/nn/module.h>\n#include <muster/value/value.h>\n",
    "src/base/check.cpp": "#include <muster/base/check.h>\n#include <fmt/format.h>\n",
    "src/comm/c10d_group.cpp": "#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>\n",
    "src/track/report.cpp": "#include <nlohmann/json.hpp>\n",
}


class Violations(unittest.TestCase):
    def found(self, planted):
        with tempfile.TemporaryDirectory() as root:
            for name, text in {**CLEAN, **planted}.items():
                path = pathlib.Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return includes.violations(root)

    def expect(self, planted, start, word):
        found = self.found(planted)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(start), found)
        self.assertIn(word, found[0])

    def test_a_clean_tree_has_none(self):
        self.assertEqual(self.found({}), [])

    def test_a_layer_that_includes_its_right(self):
        self.expect({"src/base/a.cpp": "\n#include <muster/value/value.h>\n"}, "src/base/a.cpp:2:", "layer base")

    def test_layers_side_by_side(self):
        self.expect({"include/muster/proc/a.h": "#include <muster/track/b.h>\n"}, "include/muster/proc/a.h:1:", "track")

    def test_an_internal_header_of_another_layer(self):
        self.expect({"src/data/a.cpp": '#include "src/comm/b_internal.h"\n'}, "src/data/a.cpp:1:", "layer data")

    def test_an_unknown_layer(self):
        self.expect({"src/extra/a.cpp": "\n"}, "src/extra/a.cpp:1:", "no layer")

    def test_torch_where_there_is_none(self):
        self.expect({"src/track/a.cpp": "#include <c10/util/Half.h>\n"}, "src/track/a.cpp:1:", "no torch")

    def test_a_header_of_all_torch(self):
        self.expect({"src/data/a.cpp": "#  include <ATen/ATen.h>\n"}, "src/data/a.cpp:1:", "all of torch")

    def test_module_in_another_public_header(self):
        planted = {"include/muster/train/step.h": "#include <torch/nn/module.h>\n"}
        self.expect(planted, "include/muster/train/step.h:1:", "module.h")

    def test_process_group_elsewhere(self):
        planted = {"src/comm/group.cpp": "#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>\n"}
        self.expect(planted, "src/comm/group.cpp:1:", "ProcessGroup")

    def test_too_many_sources_that_see_module_through_our_header(self):
        through = {"include/muster/train/more.h": "#include <muster/train/module.h>\n"}
        few = {f"examples/e/{i}.cpp": "#include <muster/train/more.h>\n" for i in range(40)}
        self.assertEqual(self.found({**through, **few}), [])
        self.expect({**through, **few, "examples/f/f.cpp": '#include "helper.h"\n',
                     "examples/f/helper.h": "#include <torch/torch.h>\n"}, "examples/f/f.cpp:1:", "41 sources")

    def test_too_many_tests_of_train(self):
        planted = {f"tests/train/{i}_test.cpp": "#include <muster/train/module.h>\n" for i in range(7)}
        self.expect(planted, "tests/train/6_test.cpp:1:", "7 sources")

    def test_too_many_sources_that_see_json(self):
        planted = {f"tests/track/{i}_test.cpp": "#include <nlohmann/json.hpp>\n" for i in range(5)}
        self.expect(planted, "tests/track/4_test.cpp:1:", "6 sources")

    def test_a_long_file(self):
        self.assertEqual(self.found({"tests/base/a_test.cpp": "\n" * 500}), [])
        self.expect({"tests/base/a_test.cpp": "\n" * 501}, "tests/base/a_test.cpp:501:", "501 lines")


if __name__ == "__main__":
    unittest.main()
