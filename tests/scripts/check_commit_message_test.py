"""scripts/check_commit_message.py takes messages as CONTRIBUTING wants them, and says what is wrong with others."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "check_commit_message.py"


class CheckCommitMessage(unittest.TestCase):
    def check(self, message):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(message)
            file.flush()
            done = subprocess.run([sys.executable, SCRIPT, file.name], capture_output=True, text=True)
            return done.returncode, done.stderr

    def accepts(self, message):
        self.assertEqual(self.check(message), (0, ""))

    def names(self, message, *offences):
        self.assertEqual(self.check(message), (1, "".join(f"commit message: {offence}\n" for offence in offences)))

    def test_accepts_a_subject_and_a_body(self):
        self.accepts("Add a loss\n\nIt is needed.\n")
        self.accepts("x" * 72 + "\n\nWhy.\n# On branch main\n")
        self.accepts("Merge branch 'main'\n")

    def test_names_what_is_wrong_with_the_subject(self):
        self.names("x" * 73 + "\n\nWhy.\n", "the subject has 73 characters; 72 are the limit")
        self.names("Add a loss.\n\nWhy.\n", "the subject ends with a full stop; leave it out")
        self.names("\n\nWhy.\n", "the first line is empty; say in it what the commit does")

    def test_names_a_body_that_is_missing(self):
        missing = "there is no body; say why the change is made"
        self.names("Add a loss\n", missing)
        self.names("Add a loss\n\n# Please enter the commit message\n", missing)
        self.names("Add a loss\n# ------------------------ >8 ------------------------\ndiff --git a b\n", missing)
        self.names("Add a loss\nIt is needed.\n", "the second line is not empty")


if __name__ == "__main__":
    unittest.main()
