// SPDX-License-Identifier: Apache-2.0
#include "tests/exporters/python.h"

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "exporters/registry.h"
#include "formats/atomic_file.h"
#include "formats/npy.h"
#include "models/load.h"
#include "tests/exporters/networks.h"

namespace zsq::test {

namespace {

constexpr int kNotInstalled = 77;  // exit code of a program that lacks a package

struct Said {
  int status;
  std::string text;
};

Said run(const std::string& program, const std::vector<std::string>& arguments,
         const std::string& log) {
  const std::string script = std::string(ZSQ_SOURCE_DIR) + "/tests/exporters/" + program;
  std::string command = "'" + python_program().string() + "' -B '" + script + "'";
  for (const std::string& argument : arguments) command += " '" + argument + "'";
  const int status = std::system((command + " > '" + log + "' 2>&1").c_str());
  std::ifstream stream(log);
  const std::string said(std::istreambuf_iterator<char>(stream), {});
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, said};
}

// Runs a program of this folder; throws with what it said where it fails.
std::string run_python(const std::string& program, const std::vector<std::string>& arguments,
                       const std::string& log) {
  const Said said = run(program, arguments, log);
  if (said.status != 0) throw std::runtime_error(said.text);
  return said.text;
}

// The same; nothing where what it needs is not installed.
std::optional<std::string> run_if_installed(const std::string& program,
                                            const std::vector<std::string>& arguments,
                                            const std::string& log) {
  const Said said = run(program, arguments, log);
  if (said.status == kNotInstalled) return std::nullopt;
  if (said.status != 0) throw std::runtime_error(said.text);
  return said.text;
}

std::string store_images(const std::filesystem::path& model, const at::Tensor& images) {
  const std::string path = model.string() + ".in.npz";
  formats::write_npz(path, {{"images", models::to_array(images)}});
  return path;
}

TargetResult read_result(const std::string& faults, const std::string& output) {
  const formats::NamedArrays arrays = formats::read_npz(output);
  const auto counts = formats::find(arrays, "counts")->as<std::int64_t>();
  return {faults, models::to_tensor(*formats::find(arrays, "logits")), counts[0], counts[1]};
}

}  // namespace

std::string structure_faults(const std::filesystem::path& model) {
  return run_python("check_structure.py", {model.string()}, model.string() + ".log");
}

at::Tensor logits_in_onnxruntime(const quant::Student& student, const std::filesystem::path& path,
                                 const at::Tensor& images) {
  exporters::export_onnx(for_target(student, Target::onnxruntime), path, {});
  return check_target("onnxruntime", path, images).logits;
}

RunFiles run_files(const std::vector<std::filesystem::path>& models, const at::Tensor& images) {
  const std::string output = models.at(0).string() + ".all.npz";
  std::vector<std::string> arguments{output, store_images(models[0], images)};
  for (const auto& model : models) arguments.push_back(model.string());
  std::istringstream said(run_python("run_files.py", arguments, output + ".log"));
  const formats::NamedArrays arrays = formats::read_npz(output);
  RunFiles result;
  for (std::size_t i = 0; i < models.size(); ++i) {
    result.outputs.push_back(models::to_tensor(*formats::find(arrays, std::to_string(i))));
    std::getline(said, result.lines.emplace_back());
  }
  return result;
}

TargetResult check_target(const std::string& target, const std::filesystem::path& model,
                          const at::Tensor& images) {
  const std::string input = store_images(model, images), output = model.string() + ".out.npz";
  return read_result(run_python("check_target.py", {target, model.string(), input, output},
                                model.string() + ".log"),
                     output);
}

std::optional<TargetResult> check_ncnn(const std::filesystem::path& param, const at::Tensor& images,
                                       const std::vector<std::string>& options) {
  const std::string output = param.string() + ".out.npz";
  std::vector<std::string> arguments{param.string(), store_images(param, images), output};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const auto faults = run_if_installed("check_ncnn.py", arguments, param.string() + ".log");
  if (!faults) return std::nullopt;
  return read_result(*faults, output);
}

std::optional<QonnxResult> run_in_qonnx(const std::filesystem::path& model,
                                        const at::Tensor& images) {
  const auto said = run_if_installed(
      "qonnx_of_qcdq.py", {model.string(), store_images(model, images)}, model.string() + ".log");
  if (!said) return std::nullopt;
  std::istringstream lines(*said);
  std::string widths;
  std::getline(lines, widths);
  QonnxResult result;
  std::istringstream words(widths);
  for (int width = 0; words >> width;) result.widths.push_back(width);
  lines >> result.relative_error;
  return result;
}

std::optional<LitertResult> run_in_litert(const std::filesystem::path& model,
                                          const at::Tensor& images) {
  const std::string output = model.string() + ".out.npz";
  if (!run_if_installed("check_tflite.py", {model.string(), store_images(model, images), output},
                        model.string() + ".log"))
    return std::nullopt;
  const formats::NamedArrays arrays = formats::read_npz(output);
  const auto counts = formats::find(arrays, "counts")->as<std::int64_t>();
  return LitertResult{
      formats::read_text(output + ".faults"), models::to_tensor(*formats::find(arrays, "logits")),
      models::to_tensor(*formats::find(arrays, "reference_logits")), counts[0], counts[1]};
}

RuntimeResult run_in_onnxruntime(const std::filesystem::path& model, const at::Tensor& images) {
  const auto beside = [&](const char* suffix) { return model.string() + suffix; };
  const std::string input = store_images(model, images), output = beside(".out.npz");
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
