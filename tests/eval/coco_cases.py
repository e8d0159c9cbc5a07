# SPDX-License-Identifier: Apache-2.0
"""Computes coco_cases.h: what pycocotools says of boxes that box_measures_test.cpp draws in the same way.

coco_cases.py | clang-format-14 > coco_cases.h
"""
import contextlib
import importlib.metadata
import io

import numpy
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

CASES = [(1, 6, 3), (2, 25, 5), (3, 60, 2)]  # seed, images, categories
SIDES = [200, 700, 3000]  # eighths of a pixel


class Draw:
    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n

    def box(self):
        left, top = self.below(4000) / 8, self.below(4000) / 8
        sides = SIDES[self.below(3)]
        return [left, top, (1 + self.below(sides)) / 8, (1 + self.below(sides)) / 8]

    def near(self, box):
        return [x + (self.below(65) - 32) / 8 for x in box[:2]] + [x * (12 + self.below(9)) / 16 for x in box[2:]]


def draw(seed, images, categories):
    """Truth and detections as COCO's files have them."""
    random = Draw(seed)
    truth, found = [], []
    for image in range(images):
        for _ in range(random.below(8)):
            category, box = random.below(categories), random.box()
            area = box[2] * box[3] / (1 + (random.below(4) == 0))
            truth.append({"id": len(truth) + 1, "image_id": image, "category_id": category, "bbox": box, "area": area,
                          "iscrowd": int(random.below(8) == 0)})
            for _ in range(random.below(4)):
                found.append({"image_id": image, "category_id": category, "bbox": random.near(box),
                              "score": random.below(50) / 50})
        for _ in range(130 if image == 0 else random.below(6)):  # more than the 100 that count
            found.append({"image_id": image, "category_id": 0 if image == 0 else random.below(categories),
                          "bbox": random.box(), "score": random.below(50) / 50})
    return {"images": [{"id": i} for i in range(images)], "annotations": truth,
            "categories": [{"id": c} for c in range(categories)]}, found


def measure(truth, found):
    """AP, AP50, AP75, AR@100, AP of small, medium and large boxes, per cent; NaN for pycocotools' -1."""
    with contextlib.redirect_stdout(io.StringIO()):
        boxes = COCO()
        boxes.dataset = truth
        boxes.createIndex()
        judge = COCOeval(boxes, boxes.loadRes(found) if found else COCO(), "bbox")
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    numbers = numpy.array(judge.stats)[[0, 1, 2, 8, 3, 4, 5]]
    return numpy.where(numbers < 0, numpy.nan, 100 * numbers)


def main():
    print(f"""// SPDX-License-Identifier: Apache-2.0
// Written by coco_cases.py with pycocotools {importlib.metadata.version("pycocotools")}.
#pragma once
#include <array>
#include <cstdint>

namespace zsq::eval {{

struct CocoCase {{
  std::uint64_t seed;
  std::int64_t images, categories;
  std::array<double, 7> measures;  // as BoxMeasures has them
}};
inline constexpr CocoCase kCocoCases[] = {{""")
    for case in CASES:
        numbers = ", ".join(f"{x:.15g}" for x in measure(*draw(*case)))
        print(f"    {{{', '.join(map(str, case))}, {{{numbers}}}}},")
    print("};\n\n}  // namespace zsq::eval")


if __name__ == "__main__":
    main()
