"""scripts/coverage.py counts the lines of small programs as one counts them by hand."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "coverage.py"
HALF = """int half(int x) {
  if (x > 0)
    return x / 2;
  return -1;
}
"""
# Six lines that no program of the test runs.
NEVER = "int never() {\n" + "".join(f"  volatile int v{i} = {i};\n" for i in range(4)) + "  return v0;\n}\n"
MAIN = "int half(int);\nint main() { return half(%d) == %d ? 0 : 1; }\n"


@unittest.skipUnless(shutil.which("g++") and shutil.which("gcov"), "needs g++ and gcov")
class Coverage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        (self.root / "core").mkdir()
        (self.root / "tests").mkdir()
        (self.root / "core/half.cpp").write_text(HALF)

    def run_program(self, name, main):
        """Compiles and runs a program of core/half.cpp in a build folder of its own, as targets have."""
        build = self.root / "build" / name
        build.mkdir(parents=True)
        (self.root / f"tests/{name}.cpp").write_text(main)
        subprocess.run(["g++", "-O0", "--coverage", "-o", "program", self.root / "core/half.cpp",
                        self.root / f"tests/{name}.cpp"], cwd=build, check=True)
        subprocess.run([build / "program"], check=True)

    def report(self):
        done = subprocess.run([sys.executable, SCRIPT, self.root / "build", "--root", self.root], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_lines_of_all_programs_count_once_and_tests_not_at_all(self):
        self.run_program("positive", MAIN % (4, 2))
        status, output = self.report()
        self.assertIn("| core | 1 | 4 | 75.0 % |", output)
        self.assertEqual(status, 0, "a file with few lines that did not run may have any share")
        self.run_program("negative", MAIN % (-4, -1))
        status, output = self.report()
        self.assertIn("| core | 1 | 4 | 100.0 % |\n| all | 1 | 4 | 100.0 % |", output)
        self.assertNotIn("tests", output)

    def test_a_file_with_too_few_lines_is_named_with_those_that_did_not_run(self):
        (self.root / "core/half.cpp").write_text(HALF + NEVER)
        self.run_program("positive", MAIN % (4, 2))
        status, output = self.report()
        self.assertEqual(status, 1)
        self.assertIn("core/half.cpp:4: 30 % of 10 lines ran, 80 % is the least; not 4, 6, 7, 8, 9, 10, 11", output)

    def test_without_counts_it_says_how_they_are_made(self):
        (self.root / "build").mkdir()
        status, output = self.report()
        self.assertEqual(status, 1)
        self.assertIn("holds no counts (*.gcda); --measure builds and runs the tests", output)


if __name__ == "__main__":
    unittest.main()
