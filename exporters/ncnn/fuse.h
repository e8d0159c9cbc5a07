// SPDX-License-Identifier: Apache-2.0
// Rewrites of a finished list of layers, with which ncnn executes it faster, or at all.
#pragma once
#include "exporters/ncnn/net.h"

namespace zsq::exporters::ncnn {

// A ReLU or Clip whose input nothing else reads becomes the activation of the convolution or inner
// product before it.
void fuse_activations(std::vector<Layer>& layers);

// A convolution in int8 whose output only layers in int8 with one and the same grid read gives
// their codes: it rounds as they would.
void hand_over_codes(std::vector<Layer>& layers);

// ncnn gives each blob one reader; a Split serves several.
void add_splits(std::vector<Layer>& layers);

}  // namespace zsq::exporters::ncnn
