// SPDX-License-Identifier: Apache-2.0
// onnxruntime and the exact integer model, through compare_with_onnxruntime.py.
#pragma once
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "quant/student.h"

namespace zsq::test {

inline std::filesystem::path python_program() {
  return std::filesystem::path(ZSQ_SOURCE_DIR) / ".deps/python/bin/python";
}

struct RuntimeResult {
  at::Tensor logits, integer_logits;
  std::int64_t convs, integer_convs, gemms, integer_gemms, codes, codes_off, largest_off;
};

// Runs the file on f32 images [N, C, H, W]; throws with the program's output where it fails.
RuntimeResult run_in_onnxruntime(const std::filesystem::path& model, const at::Tensor& images);

// The files in onnxruntime with its default options (run_files.py): outputs, and a line for each
// with the names of input and output and the operators that it runs.
struct RunFiles {
  std::vector<at::Tensor> outputs;
  std::vector<std::string> lines;
};
RunFiles run_files(const std::vector<std::filesystem::path>& models, const at::Tensor& images);

// Logits of the student's file for onnxruntime, which is written to `path`: the same codes as in
// any target's file, in the form that onnx_test.cpp compares with an exact integer model. The
// student itself, in floats, rounds the other way where a value lies on a threshold.
at::Tensor logits_in_onnxruntime(const quant::Student& student, const std::filesystem::path& path,
                                 const at::Tensor& images);

// What check_target.py says of a file: faults against the target's rules, a line each, and what its
// runtime makes of it.
struct TargetResult {
  std::string faults;
  at::Tensor logits;
  std::int64_t layers = 0, integer_layers = 0;
};
TargetResult check_target(const std::string& target, const std::filesystem::path& model,
                          const at::Tensor& images);

// The same of check_ncnn.py, for a .param file; options are ncnn's, as "use_packing_layout=false".
// Nothing where ncnn is not installed.
std::optional<TargetResult> check_ncnn(const std::filesystem::path& param, const at::Tensor& images,
                                       const std::vector<std::string>& options = {});

// QONNX on the first image (qonnx_of_qcdq.py); nothing where it is not installed.
struct QonnxResult {
  std::vector<int> widths;    // of its Quant nodes
  double relative_error = 0;  // of the logits
};
std::optional<QonnxResult> run_in_qonnx(const std::filesystem::path& model,
                                        const at::Tensor& images);

// LiteRT (check_tflite.py); nothing where it is not installed.
struct LitertResult {
  std::string faults;                   // against its quantization specification, a line each
  at::Tensor logits, reference_logits;  // of its default, of its reference kernels
  std::int64_t layers = 0, integer_layers = 0;
};
std::optional<LitertResult> run_in_litert(const std::filesystem::path& model,
                                          const at::Tensor& images);

// What check_structure.py finds against the file: a line for each fault, empty if it is fast.
std::string structure_faults(const std::filesystem::path& model);

}  // namespace zsq::test

#define ZSQ_SKIP_WITHOUT_PYTHON()                                  \
  if (!std::filesystem::exists(zsq::test::python_program()))       \
  GTEST_SKIP() << "needs " << zsq::test::python_program().string() \
               << " with numpy, onnx and onnxruntime: run scripts/install_deps.sh"
