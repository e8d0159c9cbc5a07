# SPDX-License-Identifier: Apache-2.0
"""What scripts/public_networks.py counts, by hand."""
import pathlib
import sys
import unittest

import numpy

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import public_networks  # noqa: E402


def place(x, y, side, *scores):
    return [x, y, side, side, *scores]


class PublicNetworks(unittest.TestCase):
    def test_closeness_is_relative_to_the_variance_over_images(self):
        exact = numpy.array([[1.0, 10.0], [3.0, 10.0]])
        error, correlation = public_networks.closeness(exact, exact + [[1, 0], [0, 0]])
        self.assertAlmostEqual(error, 1 / 2)
        error, correlation = public_networks.closeness(exact, 2 * exact)
        self.assertAlmostEqual(correlation, 1)
        error, correlation = public_networks.closeness(exact, exact[::-1])
        self.assertAlmostEqual(correlation, -1)

    def test_iou(self):
        box = numpy.array([0, 0, 2, 2])
        self.assertEqual(public_networks.iou(box, box), 1)
        self.assertAlmostEqual(public_networks.iou(box, box + 1), 1 / 7)
        self.assertEqual(public_networks.iou(box, box + 5), 0)

    def test_boxes_are_found_again_at_the_place_whatever_their_rank(self):
        exact = numpy.array([place(10, 10, 4, 0.9, 0.1), place(10, 11, 4, 0.8, 0.1), place(50, 50, 6, 0.1, 0.5),
                             place(80, 80, 6, 0.1, 0.29)]).T
        # the second place lies on the first one; the last is not above 0.3
        self.assertEqual([round(float(s), 2) for _, s in public_networks.boxes_of(exact)], [0.9, 0.5, 0.29])
        moved = exact.copy()
        moved[0, 0] += 1  # IoU 12 / 20
        moved[5, 2] = 0.25
        self.assertEqual(public_networks.found_again([exact], [moved], 0.2), (2, 2))
        self.assertEqual(public_networks.found_again([exact], [moved], 0.3), (2, 1))
        moved[0, :2] += 3
        self.assertEqual(public_networks.found_again([exact], [moved], 0.2), (2, 1))

    def test_pixels_are_what_the_program_is_told(self):
        self.assertEqual(public_networks.preprocessing_of("page")[1], "data.mean=0.485,0.456,0.406")
        self.assertIn("data.channel_order=bgr", public_networks.preprocessing_of("nsfw"))


if __name__ == "__main__":
    unittest.main()
