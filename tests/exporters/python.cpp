// SPDX-License-Identifier: Apache-2.0
#include "tests/exporters/python.h"

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>

#include "formats/npy.h"
#include "models/load.h"

namespace zsq::test {

RuntimeResult run_in_onnxruntime(const std::filesystem::path& model, const at::Tensor& images) {
  const auto beside = [&](const char* suffix) { return model.string() + suffix; };
  const std::string input = beside(".in.npz"), output = beside(".out.npz"), log = beside(".log");
  formats::write_npz(input, {{"images", models::to_array(images)}});
  const std::string script =
      std::string(ZSQ_SOURCE_DIR) + "/tests/exporters/compare_with_onnxruntime.py";
  const std::string command = "'" + python_program().string() + "' -B '" + script + "' '" +
                              model.string() + "' '" + input + "' '" + output + "' > '" + log +
                              "' 2>&1";
  const int status = std::system(command.c_str());
  std::ifstream stream(log);
  const std::string said(std::istreambuf_iterator<char>(stream), {});
  if (status != 0) throw std::runtime_error(said);
  std::cout << said;
  const formats::NamedArrays arrays = formats::read_npz(output);
  const auto tensor = [&](const char* name) {
    return models::to_tensor(*formats::find(arrays, name));
  };
  const at::Tensor counts = tensor("counts");
  const auto* n = counts.const_data_ptr<std::int64_t>();
  return {tensor("logits"), tensor("integer_logits"), n[0], n[1], n[2], n[3], n[4], n[5], n[6]};
}

}  // namespace zsq::test
