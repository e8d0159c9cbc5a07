// SPDX-License-Identifier: Apache-2.0
// Small TorchScript programs in memory.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include "models/execute.h"
#include "models/programs.h"

namespace zsq::test {

// The body of forward(self, x), a statement per line, without indentation of its own; `constants`
// are CONSTANTS.c0, c1, ... `more` follows after the class.
inline formats::TorchScript script(const std::string& body,
                                   const std::vector<at::Tensor>& constants = {},
                                   const std::string& more = "") {
  formats::TorchScript file;
  file.objects.push_back({"__torch__.net.Net", "", {}});
  std::string code = "class Net(Module):\n  def forward(self: __torch__.net.Net, x: Tensor):\n    ";
  for (const char c : body) code += c == '\n' ? "\n    " : std::string(1, c);
  file.code["__torch__/net.py"] = code + "\n" + more;
  for (const auto& constant : constants) {
    const auto index = file.tensors.size();
    file.constants.push_back(index);
    file.tensors.emplace_back("CONSTANTS.c" + std::to_string(index), models::to_array(constant));
  }
  return file;
}

inline models::LoadOptions sized(std::int64_t image_size) {
  models::LoadOptions options;
  options.image_size = {image_size, image_size};
  return options;
}

inline at::Tensor run(formats::TorchScript file, const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  file.traced_shape = x.sizes().vec();
  const auto model = models::import_torchscript(file);
  return models::as_file_output(model.graph, models::execute(model.graph, model.parameters, x));
}

}  // namespace zsq::test
