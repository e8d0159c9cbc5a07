# SPDX-License-Identifier: Apache-2.0
"""The form of findings/, as scripts/findings.sh --check sees it. No finding is run here: that needs a network."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def check(folder):
    done = subprocess.run([ROOT / "scripts/findings.sh", "--check", folder], capture_output=True, text=True)
    return done.returncode, done.stdout


class Form(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "findings"
        shutil.copytree(ROOT / "findings", self.folder)
        self.finding = sorted(self.folder.glob("*.sh"))[0]

    def change(self, old, new):
        text = self.finding.read_text()
        self.assertIn(old, text)
        self.finding.write_text(text.replace(old, new))

    def assert_offence(self, said):
        status, output = check(self.folder)
        self.assertEqual(status, 1)
        self.assertIn(said, output)

    def test_all_findings_have_the_form(self):
        status, output = check(ROOT / "findings")
        self.assertEqual(status, 0, output)

    def test_each_part_of_the_header_is_missed(self):
        for key in ("Where", "Guess", "Seen", "Do", "Packages"):
            whole = self.finding.read_text()
            self.change(f"# {key}: ", f"# {key} ")
            self.assert_offence(f"{self.finding.name} has no '# {key}:' in its header")
            self.finding.write_text(whole)
        self.change("# > ", "# ")
        self.assert_offence("shows no output")

    def test_output_that_was_never_filled_in_is_missed(self):
        whole = self.finding.read_text()
        for placeholder in ("?", "..."):
            self.finding.write_text(whole + f"# > {placeholder}\n")
            self.assert_offence(f"{self.finding.name} has a placeholder in its output")

    def test_a_version_is_exact(self):
        self.change("numpy==", "numpy>=")
        self.assert_offence("without its exact version")

    def test_the_temporary_folder_goes(self):
        self.change("trap ", "# trap ")
        self.assert_offence("does not remove its temporary folder")

    def test_it_can_be_run(self):
        self.finding.chmod(0o644)
        self.assert_offence("is not executable")

    def test_the_product_is_not_used(self):
        self.finding.write_text(self.finding.read_text() + "zsq run\n")
        self.assert_offence("uses the product")

    def test_the_table_is_complete_and_names_nothing_else(self):
        readme = self.folder / "README.md"
        name = self.finding.stem
        readme.write_text(readme.read_text().replace(f"| [{name}](", "| [not_there]("))
        self.assert_offence(f"{self.finding.name} has no row of its own in README.md")
        self.assert_offence("README.md lists not_there, which is not there")

    def test_an_unknown_name_is_refused(self):
        done = subprocess.run([ROOT / "scripts/findings.sh", "no_such_finding"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no findings/no_such_finding.sh", done.stderr)


if __name__ == "__main__":
    unittest.main()
