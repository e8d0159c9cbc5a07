// SPDX-License-Identifier: Apache-2.0
#include "quant/paired_blocks.h"

#include <ATen/ops/aminmax.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace zsq::quant {
namespace {

std::int64_t values_of(const models::Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

// Steps of f16 are 2^-11 of a value, far below those of any grid. What is too large for it stays.
at::Tensor kept(const at::Tensor& values, at::ScalarType type) {
  if (type != at::kHalf) return values;
  constexpr double kLargest = 65504;
  const auto [least, most] = at::aminmax(values);
  const bool fits = least.item<double>() >= -kLargest && most.item<double>() <= kLargest;
  return fits ? values.to(at::kHalf) : values;
}

}  // namespace

PairedBlocks::PairedBlocks(const models::Model& teacher, const Student& student)
    : student_(student),
      teacher_(teacher),
      blocks_(models::find_blocks(teacher_.graph, teacher_.parameters)),
      shapes_(models::infer_shapes(teacher_.graph, teacher_.parameters)) {}

models::Graph PairedBlocks::teachers_part(models::NodeId entry, models::NodeId exit) const {
  return models::cut_out(teacher_.graph, entry, exit, shapes_[entry]);
}

models::Graph PairedBlocks::students_part(models::NodeId entry,
                                          models::NodeId students_exit) const {
  return models::cut_out(student_.graph, students_node(entry), students_exit, shapes_[entry]);
}

models::NodeId PairedBlocks::students_node(models::NodeId teachers) const {
  return student_.graph.id_of(teacher_.graph[teachers].name);
}

std::int64_t PairedBlocks::bytes(const models::Block& block, at::ScalarType type) const {
  return 2 * (values_of(shapes_[block.entry]) + values_of(shapes_[block.exit])) *
         static_cast<std::int64_t>(at::elementSize(type));
}

std::int64_t PairedBlocks::room(std::int64_t memory, at::ScalarType type) const {
  std::int64_t largest = 1;
  for (const auto& block : blocks_) largest = std::max(largest, bytes(block, type));
  return std::max<std::int64_t>(1, (memory << 20) / largest);
}

double PairedBlocks::widest() const {
  std::int64_t widest = 1;
  for (const auto& block : blocks_)
    for (const auto end : {block.entry, block.exit})
      widest = std::max(widest, 2 * values_of(shapes_[end]));
  return static_cast<double>(widest);
}

at::ScalarType PairedBlocks::type_of_values(std::int64_t images) const {
  constexpr double kMostInF32 = 256 << 20;
  const double bytes = widest() * sizeof(float) * static_cast<double>(images);
  return bytes > kMostInF32 ? at::kHalf : at::kFloat;
}

std::int64_t PairedBlocks::affordable(std::int64_t images, std::int64_t memory,
                                      Observer& observer) const {
  const auto size = static_cast<double>(at::elementSize(type_of_values(images)));
  const auto fits = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(static_cast<double>(memory << 20) / (widest() * size)));
  if (fits < images)
    observer.on_message(LogLevel::warning, "reconstruct.memory holds the values of " +
                                               std::to_string(fits) + " images; the other " +
                                               std::to_string(images - fits) + " are not used");
  return std::min(fits, images);
}

PairedValues::PairedValues(const PairedBlocks& blocks, const Student& student,
                           const at::Tensor& images, std::int64_t batch_size, at::ScalarType type)
    : blocks_(blocks),
      student_(student),
      type_(type),
      of_float_(images.split(batch_size)),
      of_student_(of_float_) {}

void PairedValues::hand_on(const models::Block& block) {
  hand_on_float(block);
  const auto part =
      fuse_activations(blocks_.students_part(block.entry, blocks_.students_node(block.exit)));
  for (auto& values : of_student_)
    values = kept(run_part(part, student_.parameters, values), type_);
}

void PairedValues::hand_on_float(const models::Block& block) {
  const auto part = blocks_.teachers_part(block.entry, block.exit);
  for (auto& values : of_float_)
    values = kept(run_part(part, blocks_.teacher().parameters, values), type_);
}

at::Tensor run_part(const models::Graph& part, const models::ParameterStore& parameters,
                    const at::Tensor& input, Precision precision) {
  const auto values = input.scalar_type() == at::kHalf ? input.to(at::kFloat) : input;
  const auto images = models::as_images(values).contiguous(at::MemoryFormat::ChannelsLast);
  return models::execute(part, parameters, images, nullptr, precision);
}

}  // namespace zsq::quant
