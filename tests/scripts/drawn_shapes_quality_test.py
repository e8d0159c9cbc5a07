# SPDX-License-Identifier: Apache-2.0
"""What scripts/drawn_shapes_quality.py counts, by hand."""
import pathlib
import sys
import unittest

import numpy

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import drawn_shapes_quality as script  # noqa: E402

BOXES = numpy.array([[0, 0, 10, 10], [1, 0, 11, 10], [40, 40, 60, 60], [80, 80, 90, 90]], dtype="f8")
#                      background, two classes
SCORES = numpy.array([[0.1, 0.9, 0.0], [0.2, 0.8, 0.0], [0.4, 0.0, 0.6], [0.75, 0.25, 0.0]])


def outputs(boxes, scores):
    return {"boxes": boxes[None], "scores": scores[None]}


class DrawnShapesQuality(unittest.TestCase):
    def test_a_place_below_a_better_one_of_its_class_is_no_box(self):
        kept = script.kept_boxes(BOXES, SCORES, 0.2)
        self.assertEqual([(label, box[0]) for label, box in kept], [(1, 0), (1, 80), (2, 40)])

    def test_a_box_is_found_again_at_its_place_with_its_class_and_score(self):
        exact = outputs(BOXES, SCORES)
        self.assertEqual(script.found_again(exact, exact, 0.3), (2, 2))
        self.assertEqual(script.found_again(exact, outputs(BOXES + 20, SCORES), 0.3), (2, 0))
        self.assertEqual(script.found_again(exact, outputs(BOXES, SCORES[:, [0, 2, 1]]), 0.3), (2, 0))
        weaker = SCORES.copy()
        weaker[2] = [0.75, 0, 0.25]
        self.assertEqual(script.found_again(exact, outputs(BOXES, weaker), 0.3), (2, 1))
        self.assertEqual(script.found_again(exact, outputs(BOXES, weaker), 0.2), (2, 2))

    def test_pixels(self):
        own = numpy.zeros((1, 2, 2, 2))
        own[0, 1, 0, 0] = 1  # the class of one pixel of four is 1
        said = script.figures({"map": own}, {"map": numpy.zeros_like(own)}, numpy.zeros((1, 2, 2)))
        self.assertEqual(said, "75.00 % of the pixels as float, accuracy 100.00 % (float 75.00 %)")


if __name__ == "__main__":
    unittest.main()
