# SPDX-License-Identifier: Apache-2.0
"""The images and answers of scripts/train_verdict_networks.py."""
import pathlib
import sys
import unittest

import numpy

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import train_verdict_networks as script  # noqa: E402


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.images, cls.seen = script.draw_all(600, 3)
        cls.answers = script.answers(cls.seen)

    def test_each_output_has_as_many_answers_as_its_name_says(self):
        for name, right in self.answers.items():
            count, kind = name.split("_")
            if kind == "classes":
                self.assertEqual(right.shape, (600,))
                self.assertLess(right.max(), int(count))
                self.assertGreater(len(set(right)), 0.9 * int(count), name)
            else:
                self.assertEqual(right.shape, (600, int(count)), name)
            if kind.startswith("label"):  # each label is on and off
                self.assertTrue(((right.mean(0) > 0) & (right.mean(0) < 0.8)).all(), name)

    def test_answers_are_of_what_is_drawn(self):
        shape, filling, x = self.seen[:, 0], self.seen[:, 1], self.seen[:, 2]
        self.assertTrue((self.answers["20_labels"][:, :8].argmax(1) == shape).all())
        self.assertTrue((self.answers["10_classes"] // 2 == filling).all())
        self.assertTrue((self.answers["100_classes"] // 20 == filling).all())
        right = x > 0.2  # the two columns on the right, of five
        self.assertTrue((self.answers["100_classes"][right] % 5 >= 3).all())
        self.assertTrue((abs(self.answers["4_values"]) <= 1).all())

    def test_images_are_the_seed_s(self):
        again, _ = script.draw_all(20, 3)
        self.assertTrue((self.images[:20] == again).all())
        self.assertEqual(self.images.shape, (600, 3, script.SIZE, script.SIZE))


if __name__ == "__main__":
    unittest.main()
