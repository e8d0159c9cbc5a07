// SPDX-License-Identifier: Apache-2.0
#include "models/float32_products.h"

#include <ATen/Context.h>

namespace zsq::models {
namespace {

constexpr auto kGpu = at::Float32Backend::CUDA;
constexpr auto kConvolutions = at::Float32Op::CONV, kMatrices = at::Float32Op::MATMUL;

// libtorch has an older pair of switches beside these; it takes any disagreement of the two for an
// error of whoever asks next, as torch.export does. The older ones come first, as they set the
// newer ones, too, to what is inherited.
void set(at::Float32Precision convolutions, at::Float32Precision matrices) {
  at::globalContext().setAllowTF32CuDNN(convolutions == at::Float32Precision::TF32);
  at::globalContext().setAllowTF32CuBLAS(matrices == at::Float32Precision::TF32);
  at::globalContext().setFloat32Precision(kGpu, kConvolutions, convolutions);
  at::globalContext().setFloat32Precision(kGpu, kMatrices, matrices);
}

}  // namespace

void set_float32_products(Precision precision) {
  const auto wanted =
      precision == Precision::tf32 ? at::Float32Precision::TF32 : at::Float32Precision::IEEE;
  set(wanted, wanted);
}

Float32Products::Float32Products(Precision precision)
    : convolutions_(at::globalContext().float32Precision(kGpu, kConvolutions)),
      matrices_(at::globalContext().float32Precision(kGpu, kMatrices)) {
  set_float32_products(precision);
}

Float32Products::~Float32Products() { set(convolutions_, matrices_); }

}  // namespace zsq::models
