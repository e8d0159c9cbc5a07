// SPDX-License-Identifier: Apache-2.0
// How fast this machine runs the engine: its copy bandwidth and matrix product, every operator of
// cuda_kernels/, the parts of a training step, and how a step grows with the size of the problem.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/report.h"
#include "core/error.h"
#include "core/observer.h"
#include "recipes/recipe.h"

namespace zsq {

// What a sweep varies. Width and depth are those of the CIFAR form of ResNet, of which the depth is
// 6 n + 2 layers.
enum class Growth { batch, image, width, depth };
template <>
struct EnumNames<Growth> {
  static constexpr std::array<std::string_view, 4> names{"batch", "image", "width", "depth"};
};

struct BenchOptions {
  // Empty: the built-in recipe.model.arch (default resnet20_cifar10) with random weights.
  std::filesystem::path model;
  Recipe recipe = load_recipe();  // which student; finetune.batch_size images a step
  std::int64_t rounds = 5;        // at least 1
  bool kernels = true, train_step = true;
  std::optional<Growth> sweep;       // instead of kernels and one step
  std::vector<std::int64_t> values;  // of the sweep, ascending; empty: a range that suits it
};

struct BenchReport {
  std::string tool_version;
  std::int64_t rounds = 0;
  MachinePeaks machine;
  std::vector<KernelTime> kernels;
  std::optional<StepReport> step;
  std::optional<Growth> sweep;
  std::vector<GrowthRow> growth;
};

BenchReport bench(const BenchOptions& options, Observer* observer = nullptr);

std::string to_json(const BenchReport& report);

}  // namespace zsq
