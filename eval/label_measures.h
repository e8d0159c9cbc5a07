// SPDX-License-Identifier: Apache-2.0
// What is measured of networks that give several labels to an image, each on or off.
#pragma once
#include <cstdint>

namespace at {
class Tensor;
}

namespace zsq::eval {

struct LabelMeasures {
  // Per cent. `accuracy`: the share of all labels that are on the right side of 0.5. Where most
  // labels are off it is high whatever is lost, which these two are not:
  // `f1`: the mean over the images of 2 |A and B| / (|A| + |B|), A the labels above 0.5 and B those
  // of the image; 1 where both are empty.
  // `mean_average_precision`: the mean over the labels that some image has of the mean, over these
  // images, of the precision among the images whose score is as high or higher (VOC 2010, COCO).
  double accuracy = 0, f1 = 0, mean_average_precision = 0;
};

// scores: f32 [N, L], what enters the sigmoid; labels: bool [N, L]; N at least 1.
LabelMeasures measure_labels(const at::Tensor& scores, const at::Tensor& labels);

}  // namespace zsq::eval
