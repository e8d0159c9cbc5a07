# SPDX-License-Identifier: Apache-2.0
"""scripts/prose.py speaks up on long sentences and home-made words, and only on these."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "prose.py"
KEPT = "the documents are in short sentences and the field's terms\n"
WORDS = " ".join(["word"] * 35)


class Prose(unittest.TestCase):
    def check(self, files):
        """Exit status and output of the script on a tree of these files."""
        with tempfile.TemporaryDirectory() as name:
            for file, text in files.items():
                path = pathlib.Path(name) / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            done = subprocess.run([sys.executable, SCRIPT, name], capture_output=True, text=True)
            self.assertEqual(done.stderr, "")
            return done.returncode, done.stdout

    def accepts(self, text, file="README.md"):
        self.assertEqual(self.check({file: text}), (0, KEPT))

    def names(self, text, message, file="README.md"):
        self.assertEqual(self.check({file: text}), (1, f"{file}:{message}\n"))

    def too_long(self, text, line=1, words=36):
        self.names(text, f"{line}: a sentence of {words} words; 35 are the limit")

    def test_35_words_are_the_limit(self):
        self.accepts(f"{WORDS}.\n")
        self.too_long(f"{WORDS} word.\n")

    def test_a_sentence_is_found_at_its_first_line(self):
        self.too_long(f"# Top\n\nShort one.\nAnother. {WORDS}\nword. Short.\n", line=4)

    def test_list_items_tables_headings_and_blank_lines_end_a_sentence(self):
        for end in ("\n\n", "\n- ", "\n1. ", "\n| a | b |\n", "\n## Heading\n", "\n```sh\nzsq\n```\n"):
            self.accepts(f"{WORDS}{end}{WORDS}\n")

    def test_code_tables_and_headings_are_not_counted(self):
        self.accepts(f"```\n{WORDS} word\n```\n| {WORDS} word |\n# {WORDS} word\n")
        self.accepts(f"<!-- operators of onnx -->\n{WORDS} word\n<!-- end of operators -->\n")

    def test_inline_code_links_and_pictures_are_short(self):
        some = " ".join(["word"] * 32)
        self.accepts(f"{some} `zsq quantize m.onnx -o out` [a](b.md#long-anchor-of-a-page) ![{WORDS}](c.svg).\n")
        self.too_long(f"{some} `zsq quantize m.onnx -o out` [two words](b.md) ![{WORDS}](c.svg).\n")

    def test_abbreviations_and_file_names_end_no_sentence(self):
        self.too_long(f"Choi et al. {WORDS[:-5]}.\n", words=37)
        self.too_long(f"model.onnx {WORDS}.\n")

    def test_the_log_and_the_change_log_may_be_long(self):
        self.assertEqual(self.check({"docs/log/a.md": f"{WORDS} word.\n", "CHANGELOG.md": f"{WORDS} word.\n"})[0], 0)
        self.assertEqual(self.check({"docs/a.md": f"{WORDS} word.\n"})[0], 1)

    def test_names_home_made_words(self):
        said = '"thought to take"; the field says: estimated time'
        self.names("What it is thought to take.\n", f"1: {said}")
        self.names("\n// What it is thought\n// to take.\n", f"2: {said}", "a/b.h")
        self.names('throw Error("it is thought "\n    "to take long");\n', f"1: {said}", "a/b.cpp")
        self.names("# what it is Thought to take\n", f"1: {said}", "a/b.py")
        self.names("about: thought to take\n", f"1: {said}", "recipes/b.yaml")
        self.names("It is thought to take.\n", f"1: {said}", "docs/log/a.md")
        self.accepts("It is thought to take.\n", "CHANGELOG.md")
        self.accepts("// unthought to takeaway\n", "a/b.h")

    def test_every_term_of_the_table_is_found(self):
        sys.dont_write_bytecode = True
        sys.path.append(str(SCRIPT.parent))
        import prose  # noqa: E402
        for phrase, term in {**prose.TERMS, **prose.COMMENT_TERMS}.items():
            found = list(prose.home_made(f"// so {phrase} it\n", markdown=False))
            self.assertEqual(found, [(1, f'"{phrase}"; the field says: {term}')])

    def test_behind_is_after_in_comments_but_may_be_a_name(self):
        said = '"behind"; the field says: after'
        self.names("x = 1;  // behind the pool\n", f"1: {said}", "a/b.cpp")
        self.names("The layer behind it.\n", f"1: {said}")
        self.accepts('int behind = f("behind");  // left behind\n', "a/b.cpp")
        self.accepts("The variable `behind`.\n")

    def test_folders_of_builds_are_left_out(self):
        self.accepts("// thought to take\n", "build/a.h")
        self.accepts("// thought to take\n", ".deps/a.h")


if __name__ == "__main__":
    unittest.main()
