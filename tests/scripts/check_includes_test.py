"""Every rule of scripts/check_includes.py speaks up on a file that breaks it, and only on that."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "check_includes.py"
LICENCE = "// SPDX-License-Identifier: Apache-2.0\n"


class CheckIncludes(unittest.TestCase):
    def check(self, files):
        """Exit status and output of the script on a tree of these files (path -> text)."""
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                path = pathlib.Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            done = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True)
            return done.returncode, done.stdout

    def test_accepts_a_tree_that_keeps_the_rules(self):
        status, output = self.check({
            "core/error.h": LICENCE,
            "train/loop.cpp": LICENCE + '#include <ATen/ops/add.h>\n#include "quant/student.h"\n',
            "recipes/recipe.h": LICENCE + '#include "quant/options.h"\n',
        })
        self.assertEqual((status, output), (0, "3 files keep the rules\n"))

    def test_names_file_line_and_offence(self):
        for name, line, message in [
            ("quant/a.cpp", '#include "train/trainer.h"', "quant/ may not include train/"),
            ("recipes/a.h", '#include "quant/student.h"', "recipes/ may not include quant/"),
            ("cli/a.cpp", '#include "train/options.h"', "cli/ may not include train/"),
            ("formats/a.cpp", "#include <ATen/core/Tensor.h>", "formats/ does without torch"),
            ("quant/a.cpp", "#include <torch/torch.h>", "torch/torch.h costs seconds"),
            ("models/a.cpp", "#include <opencv2/core.hpp>", "OpenCV belongs to eval/"),
            ("core/a.cpp", "#include <spdlog/spdlog.h>", "spdlog/spdlog.h cannot share"),
        ]:
            with self.subTest(line):
                status, output = self.check({name: LICENCE + line + "\n"})
                self.assertEqual(status, 1)
                self.assertIn(f"{name}:2: {message}", output)

    def test_public_headers_are_complete_and_bring_no_torch_along(self):
        status, output = self.check({
            "cmake/public_headers.txt": "# The public headers\npipeline/quantize.h\npipeline/gone.h\nrecipes/recipe.h\n",
            "pipeline/quantize.h": LICENCE + '#include "recipes/recipe.h"\n#include "quant/options.h"\n',
            "quant/options.h": LICENCE,
            "recipes/recipe.h": LICENCE + "#include <ATen/core/Tensor.h>\n",
        })
        self.assertEqual(status, 1)
        self.assertIn("there is no pipeline/gone.h", output)
        self.assertIn("pipeline/quantize.h:3: quant/options.h is not in cmake/public_headers.txt", output)
        self.assertIn("recipes/recipe.h:2: a public header may not include ATen/core/Tensor.h", output)
        self.assertNotIn("quantize.h:2", output)

    def test_rooms_of_the_pipeline_include_lower_rooms_and_public_headers(self):
        tree = {
            "cmake/public_headers.txt": "pipeline/results.h\n",
            "pipeline/results.h": LICENCE,
            "pipeline/session/a.cpp": LICENCE + '#include "pipeline/results.h"\n',
            "pipeline/run/stages/a.cpp": LICENCE + '#include "pipeline/images/a.h"\n#include "pipeline/run/a.h"\n',
            "pipeline/verb.cpp": LICENCE + '#include "pipeline/run/a.h"\n#include "pipeline/tables/a.h"\n',
        }
        self.assertEqual(self.check(tree)[0], 0)
        for name in ("pipeline/run/a.h", "pipeline/verb.h", "pipeline/tables/a.h"):
            with self.subTest(name):
                status, output = self.check(tree | {"pipeline/images/b.cpp": LICENCE + f'#include "{name}"\n'})
                self.assertEqual(status, 1)
                self.assertIn(f"pipeline/images/b.cpp:2: pipeline/images/ may not include {name}", output)

    def test_files_carry_the_licence_and_stay_short(self):
        status, output = self.check({"core/a.h": "#pragma once\n", "core/b.h": LICENCE + "\n" * 500})
        self.assertEqual(status, 1)
        self.assertIn("core/a.h:1: the first line is the SPDX", output)
        self.assertIn("core/b.h:501: 501 lines", output)


if __name__ == "__main__":
    unittest.main()
