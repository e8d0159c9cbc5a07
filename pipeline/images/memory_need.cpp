// SPDX-License-Identifier: Apache-2.0
#include "pipeline/images/memory_need.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/execute.h"
#include "pipeline/session/process_memory.h"

namespace zsq::pipeline {
namespace {

constexpr double kLibraries = 200e6;
constexpr double kNetworkCopies = 10;
constexpr double kOptimised = 2.4;  // of the outputs of all nodes

double count(const models::Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), 1.0, [](double product, std::int64_t side) {
    return product * static_cast<double>(side);
  });
}

}  // namespace

NetworkSizes sizes_of(const models::Model& teacher) {
  NetworkSizes sizes;
  for (const auto& name : teacher.parameters.names())
    sizes.parameters += kFloat * static_cast<double>(teacher.parameters.at(name).numel());
  for (const auto& shape : models::infer_shapes(teacher.graph, teacher.parameters)) {
    sizes.outputs += kFloat * count(shape);
    sizes.largest = std::max(sizes.largest, kFloat * count(shape));
  }
  const auto& input = teacher.graph.input_shape;
  sizes.pixels = static_cast<double>(input[1] * input[2]);
  sizes.image = kFloat * static_cast<double>(input[0]) * sizes.pixels;
  return sizes;
}

double NetworkSizes::alone() const { return kLibraries + kNetworkCopies * parameters; }

std::int64_t MemoryNeed::fitting(double limit) const {
  const double units = std::floor((limit - fixed) / each);
  return units < static_cast<double>(least) ? least - 1
                                            : static_cast<std::int64_t>(std::min(units, 1e12));
}

MemoryNeed of_optimised_images(const NetworkSizes& sizes, std::int64_t* batch_size) {
  return {"optimised images",           sizes.alone(), kOptimised * sizes.outputs,
          "generate.images.batch_size", batch_size,    2};
}

std::int64_t optimised_at_once(const models::Model& teacher, const Recipe& recipe,
                               std::int64_t wanted, double bytes) {
  const MemoryNeed need = of_optimised_images(sizes_of(teacher), &wanted);
  const double given = bytes_of(recipe.process.memory_limit), most = need.fixed + bytes;
  return std::clamp(need.fitting(given > 0 ? std::min(given, most) : most), need.least,
                    std::max(need.least, wanted));
}

}  // namespace zsq::pipeline
