// SPDX-License-Identifier: Apache-2.0
#include "pipeline/images/memory_need.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/blocks.h"
#include "models/execute.h"
#include "pipeline/session/process_memory.h"
#include "train/teacher_pass.h"

namespace zsq::pipeline {
namespace {

constexpr double kLibraries = 300e6;
constexpr double kNetworkCopies = 10;
constexpr double kAllKept = 2.4;  // of the outputs of all nodes, by a step that keeps them
// Beside the values that a step on pixels keeps, in largest outputs of an image: gradients, and
// what oneDNN computes with.
constexpr double kGradients = 3;
constexpr double kHalf = 0.5;  // of the bytes of f32, in bf16
// Without a limit. 32 images of EfficientNet-Lite0 would keep 2 GB. Computing the first blocks
// again costs a twentieth of the time; with half as many bytes, a tenth.
constexpr double kBytesOfPass = 1024e6;
constexpr double kShareOfPass = 0.4;  // of what a limit leaves

double count(const models::Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), 1.0, [](double product, std::int64_t side) {
    return product * static_cast<double>(side);
  });
}

}  // namespace

NetworkSizes sizes_of(const models::Model& teacher) {
  NetworkSizes sizes;
  const auto shapes = models::infer_shapes(teacher.graph, teacher.parameters);
  for (const auto& name : teacher.parameters.names())
    sizes.parameters += kFloat * static_cast<double>(teacher.parameters.at(name).numel());
  for (const auto& shape : shapes) {
    sizes.outputs += kFloat * count(shape);
    sizes.largest = std::max(sizes.largest, kFloat * count(shape));
  }
  for (const auto& block : models::find_blocks(teacher.graph, teacher.parameters))
    for (const auto end : {block.entry, block.exit})
      sizes.ends = std::max(sizes.ends, 2 * kFloat * count(shapes[end]));
  const auto blocks = train::TeacherPass(teacher.graph, teacher.parameters).bytes_of_blocks();
  sizes.optimised =
      train::bytes_held(blocks, train::blocks_to_recompute(blocks, 0)) + kGradients * sizes.largest;
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

GeneratorNeed generator_need(const NetworkSizes& sizes) {
  constexpr double kCopies = 4;    // of a weight: itself, its gradient, two of Adam
  constexpr double kMaps = 321;    // floats per pixel
  constexpr double kLatent = 800;  // its largest weight: 100 x 128 x H/4 x W/4
  return {kCopies * kFloat * kLatent * sizes.pixels, kFloat * kMaps * sizes.pixels};
}

MemoryNeed of_optimised_images(const NetworkSizes& sizes, const Recipe& recipe,
                               std::int64_t* batch_size) {
  double each =
      recipe.images.precision == Precision::bf16 ? kHalf * sizes.outputs : sizes.optimised;
  double fixed = sizes.alone();
  if (recipe.images.source == ImageSource::genie) {  // a generator for each batch
    const GeneratorNeed generator = generator_need(sizes);
    fixed += generator.fixed;
    each += generator.each;
  }
  return {"optimised images", fixed, each, "generate.images.batch_size", batch_size, 2};
}

double bytes_of_pass(const models::Model& teacher, const Recipe& recipe) {
  const double limit = bytes_of(recipe.process.memory_limit);
  if (limit <= 0) return kBytesOfPass;
  const double left = limit - sizes_of(teacher).alone();
  return std::clamp(kShareOfPass * left, 1.0, kBytesOfPass);
}

// `bytes` bound batches by what they would take if every value were kept: the images of a batch
// depend on its size, which is to stay.
std::int64_t optimised_at_once(const models::Model& teacher, const Recipe& recipe,
                               std::int64_t wanted, double bytes) {
  const NetworkSizes sizes = sizes_of(teacher);
  const MemoryNeed need = of_optimised_images(sizes, recipe, &wanted);
  const double limit = bytes_of(recipe.process.memory_limit);
  const auto kept = static_cast<std::int64_t>(std::min(1e12, bytes / (kAllKept * sizes.outputs)));
  const auto most = limit > 0 ? std::min(kept, need.fitting(limit)) : kept;
  return std::clamp(most, need.least, std::max(need.least, wanted));
}

}  // namespace zsq::pipeline
