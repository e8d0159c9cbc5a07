// SPDX-License-Identifier: Apache-2.0
// Many small networks in one process, for scripts that draw them at random: of each file with an
// .npz of the same name (`input`, `output`: what another program computes) a line is printed,
//
//   equal RELATIVE_ERROR FILE | different RELATIVE_ERROR FILE | refused FILE: MESSAGE
//   fault FILE: MESSAGE         libtorch's words, an internal error, or another exception
//
// by name. The relative error is max |y - output| / max |output|; NaN and infinity have to be in
// the same places. A line "open FILE" before each tells which one ended the process, if one does.
//
//   compare_folder FOLDER [FIRST]     FIRST: the files from that name on
#include <ATen/core/grad_mode.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "formats/npy.h"
#include "models/execute.h"
#include "models/file_layout.h"
#include "models/load.h"
#include "tests/models/arrays.h"

namespace zsq::models {
namespace {

namespace fs = std::filesystem;

constexpr double kTolerance = 1e-4, kSmall = 1e-30;

// The same value, or both NaN: these places count as no difference.
double relative_error(const at::Tensor& y, const at::Tensor& expected) {
  if (y.numel() == 0) return 0;
  const auto same = y.eq(expected).logical_or(y.isnan().logical_and(expected.isnan()));
  const auto difference = at::where(same, at::zeros_like(y), y - expected).abs();
  const auto finite = at::where(expected.isfinite(), expected, at::zeros_like(expected));
  const double largest = difference.max().item<double>();
  if (!(largest < 1e30)) return 1e30;  // NaN or infinity in one of them alone
  return largest / std::max(finite.abs().max().item<double>(), kSmall);
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

void compare(const fs::path& path) {
  const auto name = path.filename().string();
  try {
    const auto arrays = formats::read_npz(fs::path(path).replace_extension(".npz"));
    const auto file_input = array(arrays, "input").to(at::kFloat);
    const auto expected = array(arrays, "output").to(at::kFloat);
    const auto model = load(path);
    if (model.graph.signature.tail)
      throw Error(ErrorCode::unsupported_model, model.warnings.back());
    const auto input = from_file_input(model.graph, file_input);
    const auto y = as_file_output(model.graph, execute(model.graph, model.parameters, input));
    if (y.sizes() != expected.sizes()) {
      std::printf("different shape %s: %s, expected %s\n", name.c_str(),
                  c10::str(y.sizes()).c_str(), c10::str(expected.sizes()).c_str());
      return;
    }
    const double error = relative_error(y, expected);
    std::printf("%s %.1e %s%s\n", error <= kTolerance ? "equal" : "different", error, name.c_str(),
                model.warnings.empty() ? "" : (": " + first_line(model.warnings[0])).c_str());
  } catch (const Error& error) {
    const bool fault = error.code() == ErrorCode::internal;
    std::printf("%s %s: %s\n", fault ? "fault" : "refused", name.c_str(),
                first_line(error.what()).c_str());
  } catch (const c10::Error& error) {
    std::printf("fault %s: libtorch: %s\n", name.c_str(),
                first_line(error.what_without_backtrace()).c_str());
  } catch (const std::exception& error) {
    std::printf("fault %s: exception: %s\n", name.c_str(), first_line(error.what()).c_str());
  }
}

int compare_all(const fs::path& folder, const std::string& first) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto& path = entry.path();
    const bool has_truth = fs::exists(fs::path(path).replace_extension(".npz"));
    if (path.extension() != ".npz" && has_truth && path.filename().string() >= first)
      files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  const at::NoGradGuard no_grad;
  for (const auto& path : files) {
    std::printf("open %s\n", path.filename().string().c_str());
    std::fflush(stdout);
    compare(path);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace zsq::models

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "compare_folder FOLDER [FIRST]\n");
    return 2;
  }
  return zsq::models::compare_all(argv[1], argc > 2 ? argv[2] : "");
}
