// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx.h"

#include "formats/onnx_metadata.h"
#include "tests/fuzz/targets.h"

namespace zsq::fuzz {

void onnx(File file) {
  formats::onnx::read_metadata(file);
  formats::onnx::read(file);
}

}  // namespace zsq::fuzz
