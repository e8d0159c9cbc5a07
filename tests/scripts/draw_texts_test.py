# SPDX-License-Identifier: Apache-2.0
"""How scripts/draw_texts.py turns what it draws."""
import pathlib
import sys
import unittest

import numpy

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import draw_texts as script  # noqa: E402


class Texts(unittest.TestCase):
    def test_a_line_is_turned_whole(self):
        upright, turned = (numpy.asarray(script.line(numpy.random.default_rng(3), k)) for k in (0, 1))
        self.assertEqual(upright.shape, (48, 192, 3))
        self.assertTrue((upright == turned[::-1, ::-1]).all())
        self.assertGreater(upright.std(), 10)  # there is something on it

    def test_a_page_is_turned_clockwise(self):
        for seed in range(4):
            upright, *turned = (numpy.asarray(script.page(numpy.random.default_rng(seed), k)).astype(float) for k in range(4))
            self.assertEqual(upright.shape, (224, 224, 3))
            for k, page in enumerate(turned, 1):
                back = [abs(numpy.rot90(page, by) - upright).mean() for by in (k, -k)]
                self.assertLess(back[0], 6)  # but for what resizing does
                if k != 2:
                    self.assertGreater(back[1], 2 * back[0])

    def test_images_are_the_seed_s_and_as_many_of_each_label(self):
        images, labels = script.draw("lines", 60, 1)
        again, _ = script.draw("lines", 60, 1)
        self.assertTrue((images == again).all())
        self.assertEqual((images.shape, images.dtype), ((60, 3, 48, 192), numpy.float32))
        self.assertTrue(20 <= labels.sum() <= 40)
        self.assertTrue((abs(images) <= 1).all())


if __name__ == "__main__":
    unittest.main()
