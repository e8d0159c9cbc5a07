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

namespace {

// Runs a program of this folder; throws with what it said where it fails.
std::string run_python(const std::string& program, const std::vector<std::string>& arguments,
                       const std::string& log) {
  const std::string script = std::string(ZSQ_SOURCE_DIR) + "/tests/exporters/" + program;
  std::string command = "'" + python_program().string() + "' -B '" + script + "'";
  for (const std::string& argument : arguments) command += " '" + argument + "'";
  const int status = std::system((command + " > '" + log + "' 2>&1").c_str());
  std::ifstream stream(log);
  const std::string said(std::istreambuf_iterator<char>(stream), {});
  if (status != 0) throw std::runtime_error(said);
  return said;
}

}  // namespace

std::string structure_faults(const std::filesystem::path& model) {
  return run_python("check_structure.py", {model.string()}, model.string() + ".log");
}

RuntimeResult run_in_onnxruntime(const std::filesystem::path& model, const at::Tensor& images) {
  const auto beside = [&](const char* suffix) { return model.string() + suffix; };
  const std::string input = beside(".in.npz"), output = beside(".out.npz");
  formats::write_npz(input, {{"images", models::to_array(images)}});
  std::cout << run_python("compare_with_onnxruntime.py", {model.string(), input, output},
                          beside(".log"));
  const formats::NamedArrays arrays = formats::read_npz(output);
  const auto tensor = [&](const char* name) {
    return models::to_tensor(*formats::find(arrays, name));
  };
  const at::Tensor counts = tensor("counts");
  const auto* n = counts.const_data_ptr<std::int64_t>();
  return {tensor("logits"), tensor("integer_logits"), n[0], n[1], n[2], n[3], n[4], n[5], n[6]};
}

}  // namespace zsq::test
