"""scripts/soak.py on programs that keep their memory, leak it, and leave files open."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOAK = pathlib.Path(__file__).parents[2] / "scripts/soak.py"
STEADY = "import time\nkeep = bytearray(20 << 20)\nfor _ in range(40): time.sleep(0.05)"
LEAK = "import time\nkeep = []\nfor _ in range(40):\n  keep.append(b'x' * (1 << 20))\n  time.sleep(0.05)"
FILES = "import time\nkeep = []\nfor _ in range(40):\n  keep.append(open('/dev/null'))\n  time.sleep(0.05)"


class Soak(unittest.TestCase):
    def run_soak(self, program, *flags):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "out.csv"
            result = subprocess.run([sys.executable, SOAK, out, "--every", "0.1", *flags, "--", sys.executable, "-c", program],
                                    capture_output=True, text=True)
            self.lines = out.read_text().splitlines() if out.exists() else []
            return result

    def test_flat_memory_passes(self):
        # Two seconds say little of an hour: a page more or less is a per cent of thousands.
        result = self.run_soak(STEADY, "--allowed", "2000")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertGreater(len(self.lines), 10)
        self.assertIn("exit code 0", result.stdout)

    def test_growing_memory_fails(self):
        self.assertEqual(self.run_soak(LEAK, "--allowed", "2000").returncode, 1)

    def test_open_files_fail(self):
        self.assertEqual(self.run_soak(FILES, "--allowed", "1000000").returncode, 1)

    def test_the_commands_failure_is_its_own(self):
        result = self.run_soak("import time, sys; time.sleep(1); sys.exit(7)", "--allowed", "1000000")
        self.assertEqual(result.returncode, 7, result.stderr)

    def test_no_command(self):
        result = subprocess.run([sys.executable, SOAK, "x.csv"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 2)


if __name__ == "__main__":
    unittest.main()
