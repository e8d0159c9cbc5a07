// SPDX-License-Identifier: Apache-2.0
// The two-group cross-entropy of PLF ("Data-Free Quantization via Pseudo-label Filtering", Fan et
// al., CVPR 2024): labels are the teacher's predictions, one if it is certain and two if not.
#pragma once
#include <ATen/core/Tensor.h>

namespace zsq::losses {

// With p the teacher's probabilities, s the student's, classes y1 and y2 the two likeliest of p and
//   h_n = -sum_c p_nc log p_nc / log C   (the entropy's share of the largest, 0 to 1),
// the mean over the batch of
//   -log s_n,y1                                   where h_n <= reliable_entropy,
//   unreliable_weight sum_k=1,2 p_n,yk -log s_n,yk   elsewhere.
// The published threshold falls in a run (0.5 to 0.2 on CIFAR, 0.4 to 0.1 on ImageNet) and the
// published weights are 0.3 and 0.5; here the threshold stays. student, teacher (logits) [N, C]
// f32, C at least 2 -> scalar; the gradient flows to the student.
at::Tensor pseudo_label_cross_entropy(const at::Tensor& student, const at::Tensor& teacher,
                                      double reliable_entropy, double unreliable_weight);

}  // namespace zsq::losses
