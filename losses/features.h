// SPDX-License-Identifier: Apache-2.0
// How far a student's maps are from the teacher's, [N, C_l, H_l, W_l] each, in the same order. The
// teacher's get no gradient. Error(internal) if the lists do not pair.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

namespace zsq::losses {

// sum_l mean (F_l^S - F_l^T)^2, the mean over all values (PLF, CVPR 2024: MSE of features).
at::Tensor feature_error(const std::vector<at::Tensor>& student,
                         const std::vector<at::Tensor>& teacher);

// The same relative to the variance of what the teacher has there, so that every map counts alike
// whatever its size, and no weight has to be found for a network: over L maps of N images each,
//   1 / (L N) sum_ln  |F_ln^S - F_ln^T|^2 / |F_ln^T - mean(F_ln^T)|^2.
// A map that is the same everywhere counts nothing.
at::Tensor relative_feature_error(const std::vector<at::Tensor>& student,
                                  const std::vector<at::Tensor>& teacher);

// Channel attention (HAST 2303.13826, eq. 8): with a_nc the mean square of channel c in image n and
// A_n = a_n / |a_n|_2,
//   sum_l mean_nc (A_l^S - A_l^T)^2
// An image whose map is 0 everywhere has A = 0.
at::Tensor channel_attention_error(const std::vector<at::Tensor>& student,
                                   const std::vector<at::Tensor>& teacher);

// Grad-CAM of the class y of the largest target (SynQ 2603.18423, eq. 7), in closed form, since the
// last map A is averaged over its H * W places before the classifier, whose weight is w:
//   cam_n = ReLU(sum_k w_yk A_nk) / (H W),   mean (cam^S - cam^T)^2
// student, teacher [N, C, H, W]; targets [N, K]; classifier [K, C]. Error(internal) if C differs.
at::Tensor grad_cam_error(const at::Tensor& student, const at::Tensor& teacher,
                          const at::Tensor& targets, const at::Tensor& classifier);

}  // namespace zsq::losses
