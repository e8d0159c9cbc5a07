"""scripts/check_docs.py speaks up on a document that breaks a promise, and only on that."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "check_docs.py"

# Stands for `zsq`: two verbs, two settings, three recipes.
PROGRAM = f"""#!{sys.executable}
import sys
said = " ".join(sys.argv[1:])
if said == "--help":
    print("usage: zsq VERB ...\\n\\n  quantize  the main job\\n  recipes   the settings\\n\\n  --version  of all")
elif said == "quantize --help":
    print("--recipe NAME  --set KEY=VALUE  --eval_data PATH  -o FOLDER")
elif said == "recipes --help":
    print("--settings  --set KEY=VALUE")
elif said == "recipes --settings":
    print("finetune.iterations: 20\\n    steps\\nquantize.weights.num_bits: 4\\n    bits (2..8)")
elif said == "recipes --all":
    print("Recipes\\n  deploy     a\\n  instant    b\\nRows\\n  ablation/01_min_max  c")
elif said == "inspect --list_operators --format json":
    print('{{"first_opset": 7, "last_opset": 9, "onnx": ["Add", "Conv"], "onnx_constants": ["Mod"], "aten": ["add"]}}')
elif "num_bits=9" in said:
    sys.exit("zsq: 9 is above 8")
"""


class CheckDocs(unittest.TestCase):
    def check(self, readme, docs=None, with_program=True):
        """Exit status and output of the script on a tree with this README and these files in docs/."""
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            (root / "README.md").write_text(readme)
            (root / "docs" / "log").mkdir(parents=True)
            for file, text in (docs or {}).items():
                path = root / "docs" / file
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
            (root / "cmake").mkdir()
            (root / "cmake" / "public_headers.txt").write_text("# The public headers\npipeline/quantize.h\n")
            (root / "scripts").mkdir()
            (root / "scripts" / "bench.py").write_text("add_argument('--static')")
            program = root / "zsq"
            program.write_text(PROGRAM)
            program.chmod(0o755)
            arguments = ["--zsq", str(program)] if with_program else []
            done = subprocess.run([sys.executable, SCRIPT, "--root", name, *arguments], capture_output=True, text=True)
            self.assertEqual(done.stderr, "")
            return done.returncode, done.stdout

    def accepts(self, readme, docs=None):
        self.assertEqual(self.check(readme, docs), (0, "the documents keep their promises\n"))

    def names(self, readme, message, docs=None):
        status, output = self.check(readme, docs)
        self.assertEqual(status, 1, readme)
        self.assertEqual(output.splitlines(), [message])

    def test_accepts_what_exists(self):
        self.accepts("# Top\n[a](docs/a.md#two-words-of-it) [b](#top) [c](https://x.org/none) [d](docs)\n"
                     "`finetune.iterations`, `quantize.weights`, `model.onnx`, `pipeline/quantize.h`, `--static`\n"
                     "```sh\nzsq quantize m.onnx --recipe instant --set finetune.iterations=5 \\\n"
                     "    --eval-data x -o out   # not a --flag\n```\n"
                     "```yaml\nextends: deploy\nquantize:\n  weights:\n    num_bits: 3\nfinetune:\n  iterations: 4\n```\n",
                     {"a.md": "## Two words, of `it`\n"})

    def test_names_links_that_lead_nowhere(self):
        self.names("\n[a](docs/b.md)", "README.md:2: links to docs/b.md, which does not exist")
        self.names("[a](#none)", "README.md:1: links to #none, but there is no such heading")
        self.names("[a](docs/a.md#b)", "README.md:1: links to docs/a.md#b, but there is no such heading",
                   {"a.md": "# A\n```\n# b\n```\n"})
        self.names('<img src="docs/x.svg">', "README.md:1: links to docs/x.svg, which does not exist")
        self.names("", "docs/a.md:1: links to ../.., outside of the repository", {"a.md": "[a](../..)\n"})

    def test_names_paths_that_do_not_exist(self):
        self.accepts("`scripts/bench.py` `elsewhere/bench.py` `val/n01.json`\n")
        self.names("`docs/none.svg`", "README.md:1: there is no file docs/none.svg")
        made = {"../out/run.json": "{}"}
        self.names("`out/report.json`", "README.md:1: there is no file out/report.json", made)
        self.accepts("`out/report.json`\n", {**made, "../.gitignore": "/out/\n"})

    def test_names_headers_that_users_do_not_have(self):
        self.accepts("```cpp\n#include <vector>\n#include <zsq/pipeline/quantize.h>\n```\n")
        for header in ('"pipeline/quantize.h"', "<pipeline/quantize.h>", "<zsq/pipeline/session.h>"):
            self.names(f"```cpp\n#include {header}\n```\n", f"README.md:2: {header} is no public header; "
                       "they are in cmake/public_headers.txt")

    def test_a_change_log_may_name_what_was(self):
        self.accepts("", {"../CHANGELOG.md": "`finetune.steps` `--recipe none`\n"})
        self.names("", "CHANGELOG.md:1: links to none.md, which does not exist", {"../CHANGELOG.md": "[a](none.md)\n"})

    def test_the_log_may_name_what_was(self):
        self.accepts("", {"log/a.md": "`finetune.steps` `--recipe none`\n"})
        self.names("", "docs/log/a.md:1: links to none.md, which does not exist", {"log/a.md": "[a](none.md)\n"})
        self.names("", "docs/log/a.md:1: there is no file docs/none.svg", {"log/a.md": "`docs/none.svg`\n"})

    def test_names_how_it_is_written(self):
        self.names(" ".join(["word"] * 36), "README.md:1: a sentence of 36 words; 35 are the limit")
        self.names("", 'docs/a.md:1: "behind"; the field says: after', {"a.md": "It is behind.\n"})

    def test_a_repeated_heading_has_a_numbered_anchor(self):
        self.accepts("# A\n# A\n[first](#a) [second](#a-1)\n")

    def test_names_settings_that_do_not_exist(self):
        self.names("`finetune.steps`", "README.md:1: there is no setting finetune.steps")
        self.names("```sh\nzsq quantize m.onnx --set quantize.weights.num_bits=9\n```\n",
                   "README.md:2: zsq: 9 is above 8")
        self.names("```yaml\nquantize:\n  bits: 3\n```\n", "README.md:3: there is no setting quantize.bits")

    def test_names_recipes_that_do_not_exist(self):
        self.names("`--recipe instant+none`", "README.md:1: there is no recipe none")
        self.names("`02_mse`", "README.md:1: there is no recipe ablation/02_mse")
        self.names("`paper/x`", "README.md:1: there is no recipe paper/x")

    def test_names_flags_and_verbs_that_do_not_exist(self):
        self.names("`zsq recipes --eval_data`", "README.md:1: zsq recipes has no flag --eval_data")
        self.names("`zsq qantize m.onnx`", "README.md:1: there is no verb zsq qantize")
        self.names("`--fast`", "README.md:1: nothing has a flag --fast")

    def test_lists_of_operators_are_those_of_the_program(self):
        block = "<!-- operators of {} -->\n{}<!-- end of operators -->\n"
        self.accepts(block.format("onnx", "`Add`, `Conv`\n") + block.format("aten", "`add`\n"))
        self.names("a\n" + block.format("onnx", "`Add`\n"),
                   "README.md:2: the operators of onnx are others now; scripts/check_docs.py --write")
        self.names(block.format("tflite", ""), "README.md:1: there are no operators of tflite")

    def test_lists_of_operators_are_written(self):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            (root / "docs").mkdir()
            (root / "README.md").write_text("<!-- operators of counts -->\nold\n<!-- end of operators -->\nend\n")
            program = root / "zsq"
            program.write_text(PROGRAM)
            program.chmod(0o755)
            subprocess.run([sys.executable, SCRIPT, "--root", name, "--zsq", program, "--write"], check=True,
                           capture_output=True)
            self.assertIn("ONNX of opsets 7 to 9: 2 operators, and\n1 on constants and sizes;".replace("\n", " "),
                          (root / "README.md").read_text().replace("\n", " "))

    def test_without_the_program_links_are_checked_alone(self):
        status, output = self.check("`finetune.steps` [a](b.md)", with_program=False)
        self.assertEqual((status, output), (1, "README.md:1: links to b.md, which does not exist\n"))


if __name__ == "__main__":
    unittest.main()
