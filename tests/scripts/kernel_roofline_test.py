"""The expected times of kernels: one worked by hand, and the table of the documents."""
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import kernel_roofline  # noqa: E402  pylint: disable=wrong-import-position


class KernelRoofline(unittest.TestCase):
    def test_times_worked_by_hand(self):
        # A million floats read twice and written once at 3 TB/s: 12 MB in 4 us; 10 operations take 0.33 us.
        moved, work, time = kernel_roofline.expected(1_000_000, 2, 1, 10, False, 4, 3, 60)
        self.assertEqual((moved, work), (12_000_000, 10_000_000))
        self.assertAlmostEqual(time, 4)
        # A thousand operations per element take longer than that: 1 G at 30 T/s, in double at 15 T/s.
        self.assertAlmostEqual(kernel_roofline.expected(1_000_000, 2, 1, 1000, False, 4, 3, 60)[2], 100 / 3)
        self.assertAlmostEqual(kernel_roofline.expected(1_000_000, 2, 1, 1000, True, 4, 3, 60)[2], 200 / 3)

    def test_bf16_halves_the_bytes_of_activations_only(self):
        lines = kernel_roofline.table(3.35, 67, True).splitlines()
        moved = {cells[1].strip(): cells[3].strip() for cells in (line.split("|") for line in lines)}
        self.assertEqual(moved["`fake_quant` forward"], "13.1 M")  # 2 x 2 bytes x 3,276,800
        self.assertEqual(moved["`fake_quant_layers` forward"], "2.17 M")  # 2 x 4 bytes x 270,896

    def test_the_document_holds_what_is_printed(self):
        printed = subprocess.run([sys.executable, ROOT / "scripts/kernel_roofline.py"], capture_output=True, text=True,
                                 check=True).stdout.strip()
        self.assertIn(printed, (ROOT / "docs/performance.md").read_text())


if __name__ == "__main__":
    unittest.main()
