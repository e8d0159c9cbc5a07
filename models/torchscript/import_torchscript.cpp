// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "models/programs.h"
#include "models/torchscript/interpreter.h"

namespace zsq::models {

Model import_torchscript(const formats::TorchScript& file, const LoadOptions& options) {
  aten::Program program(options);
  // The code of a network is seldom bound to the size that it was traced with, so a given one
  // counts first.
  auto shape = file.traced_shape.empty() ? Shape{-1, -1, -1, -1} : file.traced_shape;
  if (options.image_size[0] > 0 && shape.size() == 4)
    std::copy(options.image_size.begin(), options.image_size.end(), shape.begin() + 2);
  const auto image = program.add_input(shape);
  auto model = program.finish(torchscript::Interpreter(file, program).run(image));
  model.format = "torchscript";
  model.producer = "TorchScript";
  return model;
}

}  // namespace zsq::models
