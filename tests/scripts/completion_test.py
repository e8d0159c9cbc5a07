#!/usr/bin/env python3
"""Completion in bash: what is offered at each place of a command line. Takes the path of zsq."""
import pathlib
import shlex
import subprocess
import sys
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/completion.bash"
ZSQ = sys.argv.pop(1)


def offered(*words):
    line = " ".join(shlex.quote(word) for word in (ZSQ, *words))
    done = subprocess.run(["bash", "-c", f"source {shlex.quote(str(SCRIPT))}; COMP_WORDS=({line}); "
                           f"COMP_CWORD={len(words)}; _zsq; printf '%s\\n' \"${{COMPREPLY[@]}}\""],
                          capture_output=True, text=True, check=True)
    return done.stdout.split()


class Completion(unittest.TestCase):
    def test_verbs(self):
        self.assertEqual(offered("qu"), ["quantize"])
        self.assertIn("--version", offered("--"))

    def test_flags_of_the_verb(self):
        self.assertEqual(offered("quantize", "--sch"), ["--scheme"])
        self.assertEqual(offered("run", "--sch"), [])

    def test_recipes(self):
        self.assertEqual(offered("quantize", "--recipe", "inst"), ["instant"])
        self.assertEqual(offered("recipes", "aut"), ["auto"])

        self.assertEqual(offered("quantize", "--recipe", "paper/b"), ["paper/base", "paper/best", "paper/block_reconstruction"])
        self.assertEqual(offered("quantize", "--effort", "min"), ["minute", "minutes"])

    def test_settings(self):
        self.assertIn("quantize.gptq.images=", offered("quantize", "--set", "quantize."))

    def test_targets(self):
        self.assertEqual(offered("export", "folder", "--target", "tens"), ["tensorrt"])
        self.assertIn("qcdq", offered("export", "--target", ""))

    def test_files(self):
        self.assertIn(str(SCRIPT), offered("quantize", str(SCRIPT)[:-2]))


if __name__ == "__main__":
    unittest.main()
