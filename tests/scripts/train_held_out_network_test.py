# SPDX-License-Identifier: Apache-2.0
"""The images that scripts/train_held_out_network.py draws."""
import pathlib
import sys
import unittest

import numpy

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import train_held_out_network as script  # noqa: E402


class Images(unittest.TestCase):
    def test_every_class_looks_different(self):
        seen = set()
        grid = numpy.linspace(-1, 1, 64)
        x, y = numpy.meshgrid(grid, grid)
        for label in range(script.SHAPES * script.FILLINGS):
            there = script.inside(label // script.FILLINGS, x, y)
            share = script.filled(label % script.FILLINGS, x, y)
            self.assertGreater(there.mean(), 0.1)
            seen.add((there * (1 + share)).tobytes())
        self.assertEqual(len(seen), script.SHAPES * script.FILLINGS)

    def test_images_are_the_seed_s_and_pixels_of_8_bits(self):
        images, labels = script.draw_all(80, 3)
        again, _ = script.draw_all(80, 3)
        other, _ = script.draw_all(80, 4)
        self.assertTrue((images == again).all())
        self.assertFalse((images == other).all())
        self.assertEqual(images.shape, (80, 3, script.SIZE, script.SIZE))
        self.assertEqual(sorted(labels), sorted(2 * list(range(40))))
        pixels = (images * script.DEVIATION + script.MEAN) * 255
        self.assertLess(abs(pixels - numpy.rint(pixels)).max(), 1e-3)
        self.assertTrue(((pixels > -0.5) & (pixels < 255.5)).all())


if __name__ == "__main__":
    unittest.main()
