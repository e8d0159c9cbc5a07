// SPDX-License-Identifier: Apache-2.0
// Resize and Upsample. Enlarging by whole factors to the nearest value is a Resize, which only
// moves values; everything else is an Interpolate.
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <cmath>

#include "models/onnx/converters.h"
#include "models/onnx/signals.h"

namespace zsq::models::onnx {
namespace {

using Dims = std::vector<std::int64_t>;

struct Target {  // height and width
  Pair size;
  std::array<double, 2> scale;  // output / input, as the file gives it or as it follows
};

std::vector<double> numbers(const Call& call, std::size_t input) {
  const auto tensor = call.constant(input).to(at::kDouble).flatten().contiguous();
  return {tensor.data_ptr<double>(), tensor.data_ptr<double>() + tensor.numel()};
}

// Upsample of opset 7 and 8 has the scales as an attribute, later ones as input 1; in Resize they
// are input 2 from opset 11 on.
std::vector<double> given_scales(const Call& call) {
  if (call.node().op_type == "Upsample") {
    return call.has(1) ? numbers(call, 1) : call.numbers("scales").value_or(std::vector<double>{});
  }
  const std::size_t at = call.opset() < 11 ? 1 : 2;
  return call.has(at) ? numbers(call, at) : std::vector<double>{};
}

// The axes that scales and sizes speak of.
std::vector<std::size_t> resized_axes(const Call& call) {
  const auto axes = call.integers("axes").value_or(Dims{0, 1, 2, 3});
  std::vector<std::size_t> result;
  for (const auto axis : axes) {
    const auto at = axis < 0 ? axis + 4 : axis;
    if (at < 0 || at > 3) call.fail("an axis is out of range");
    if (std::count(result.begin(), result.end(), at) > 0) call.fail("an axis is named twice");
    result.push_back(static_cast<std::size_t>(at));
  }
  return result;
}

std::int64_t whole_size(const Call& call, double size) {
  if (!(size >= 1 && size <= static_cast<double>(kMaxExtent)))
    call.fail("a side becomes empty or implausibly large");
  return static_cast<std::int64_t>(size);
}

Target from_scales(const Call& call, const Shape& x, const std::vector<double>& scales) {
  const auto axes = resized_axes(call);
  if (scales.size() != axes.size()) call.fail("one scale per axis was expected");
  Target target{{x[2], x[3]}, {1, 1}};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < 2 && scales[i] != 1) call.fail("only height and width can be resized");
    if (axes[i] < 2) continue;
    target.scale[axes[i] - 2] = scales[i];
    // The factor is a float in the file: what it makes of the side is calculated in float, too.
    target.size[axes[i] - 2] = whole_size(
        call, std::floor(static_cast<float>(scales[i]) * static_cast<float>(x[axes[i]])));
  }
  return target;
}

Target from_sizes(const Call& call, const Shape& x, const Dims& sizes) {
  const auto axes = resized_axes(call);
  if (sizes.size() != axes.size()) call.fail("one size per axis was expected");
  const auto policy = call.text("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    call.fail("keep_aspect_ratio_policy '" + policy + "' is not known");
  Target target{{x[2], x[3]}, {1, 1}};
  double common = policy == "not_larger" ? 1e30 : 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const bool kept = axes[i] == 0 ? call.is_batch(sizes[i]) : sizes[i] == x[axes[i]];
    if (axes[i] < 2 && (!kept || policy != "stretch"))
      call.fail("only height and width can be resized");
    if (axes[i] < 2) continue;
    auto& size = target.size[axes[i] - 2];
    size = whole_size(call, static_cast<double>(sizes[i]));
    const double scale = static_cast<double>(size) / static_cast<double>(x[axes[i]]);
    target.scale[axes[i] - 2] = scale;
    common = policy == "not_larger" ? std::min(common, scale) : std::max(common, scale);
  }
  if (policy == "stretch") return target;
  for (const auto axis : axes) {
    target.scale[axis - 2] = common;
    target.size[axis - 2] =
        whole_size(call, std::floor(common * static_cast<double>(x[axis]) + 0.5));
  }
  return target;
}

Target read_target(const Call& call, const Shape& x) {
  if (const auto scales = given_scales(call); !scales.empty()) return from_scales(call, x, scales);
  if (call.node().op_type == "Upsample" || !call.has(3))
    call.fail("scales or sizes for height and width were expected");
  return from_sizes(call, x, call.integers(3));
}

void read_coordinates(const Call& call, Interpolate& op) {
  if (call.opset() < 11 || call.node().op_type == "Upsample") {
    op.coordinates = ResizeCoordinates::asymmetric;
    op.rounding = NearestRounding::floor;
    return;
  }
  static const std::map<std::string, ResizeCoordinates> kCoordinates{
      {"half_pixel", ResizeCoordinates::half_pixel},
      {"pytorch_half_pixel", ResizeCoordinates::pytorch_half_pixel},
      {"align_corners", ResizeCoordinates::align_corners},
      {"asymmetric", ResizeCoordinates::asymmetric},
      {"half_pixel_symmetric", ResizeCoordinates::half_pixel_symmetric},
      {"tf_half_pixel_for_nn", ResizeCoordinates::tf_half_pixel_for_nn}};
  static const std::map<std::string, NearestRounding> kRoundings{
      {"floor", NearestRounding::floor},
      {"ceil", NearestRounding::ceil},
      {"round_prefer_floor", NearestRounding::round_prefer_floor},
      {"round_prefer_ceil", NearestRounding::round_prefer_ceil}};
  const auto name = call.text("coordinate_transformation_mode", "half_pixel");
  const auto nearest = call.text("nearest_mode", "round_prefer_floor");
  const auto coordinates = kCoordinates.find(name);
  const auto rounding = kRoundings.find(nearest);
  if (coordinates == kCoordinates.end())
    call.fail("coordinate_transformation_mode '" + name + "' is not known");
  if (rounding == kRoundings.end()) call.fail("nearest_mode '" + nearest + "' is not known");
  op.coordinates = coordinates->second;
  op.rounding = rounding->second;
  // Half a pixel further than half_pixel: rounded down, it is that rounded to the nearest. Opsets
  // that exporters write do not have it.
  const bool rounds_down = op.mode == InterpolationMode::nearest && nearest == "floor";
  if (op.coordinates != ResizeCoordinates::tf_half_pixel_for_nn || !rounds_down) return;
  op.coordinates = ResizeCoordinates::half_pixel;
  op.rounding = NearestRounding::round_prefer_ceil;
}

// The map is as large as the scale says, to the pixel, so that no rest is shared between its ends.
void without_symmetry(const Shape& x, Interpolate& op) {
  const auto whole = [&](std::size_t i) {
    return static_cast<double>(x[i + 2]) * op.scale[i] == static_cast<double>(op.size[i]);
  };
  if (op.coordinates == ResizeCoordinates::half_pixel_symmetric && whole(0) && whole(1))
    op.coordinates = ResizeCoordinates::half_pixel;
}

Interpolate read_interpolation(const Call& call, const Shape& x) {
  Interpolate op;
  const auto target = read_target(call, x);
  op.size = target.size;
  op.scale = target.scale;
  const auto mode = call.text("mode", "nearest");
  if (mode == "nearest") {
    op.mode = InterpolationMode::nearest;
  } else if (mode == "linear" || mode == "bilinear") {
    op.mode = InterpolationMode::linear;
  } else if (mode == "cubic") {
    op.mode = InterpolationMode::cubic;
  } else {
    call.fail("mode '" + mode + "' is not known");
  }
  read_coordinates(call, op);
  without_symmetry(x, op);
  op.cubic_coefficient = call.number("cubic_coeff_a", -0.75);
  op.antialias = call.integer("antialias", 0) != 0;
  op.exclude_outside = call.integer("exclude_outside", 0) != 0;
  return op;
}

// Whether each value is repeated, a whole number of times: the place of output o is then
// floor(o / s) in all of these forms.
bool repeats(const Interpolate& op, const Shape& x) {
  if (op.mode != InterpolationMode::nearest) return false;
  for (std::size_t i = 0; i < 2; ++i) {
    const double scale = op.scale[i];
    if (scale < 1 || scale != std::floor(scale) ||
        op.size[i] != x[i + 2] * static_cast<std::int64_t>(scale))
      return false;
  }
  const bool rounds = op.rounding == NearestRounding::round_prefer_floor ||
                      op.rounding == NearestRounding::round_prefer_ceil;
  switch (op.coordinates) {
    case ResizeCoordinates::asymmetric:
      return op.rounding == NearestRounding::floor;
    case ResizeCoordinates::half_pixel:
    case ResizeCoordinates::pytorch_half_pixel:
      return rounds;
    default:
      return false;
  }
}

}  // namespace

namespace {

NodeId appended(Call& call, NodeId x, const Interpolate& op) {
  const auto& shape = call.shape(x);
  const bool same = op.size == Pair{shape[2], shape[3]} && op.scale == std::array<double, 2>{1, 1};
  if (same && (op.mode != InterpolationMode::nearest || repeats(op, shape))) return x;
  if (repeats(op, shape))
    return call.part(Resize{{op.size[0] / shape[2], op.size[1] / shape[3]}}, {x});
  return call.part(op, {x});
}

// [N, C, L] as a map of height 1.
void resize_signal(Call& call, NodeId x) {
  proto::Node node = call.node();
  std::map<std::size_t, Value> stand_ins;
  if (const auto axes = call.integers("axes")) {
    auto on_map = *axes;
    for (auto& axis : on_map)
      if (axis == 2) axis = 3;  // those from the end stay
    set_attribute(node, "axes", on_map);
  } else {
    if (auto scales = call.numbers("scales"); scales && scales->size() == 3) {
      scales->insert(scales->begin() + 2, 1);
      set_attribute(node, "scales", std::vector<float>(scales->begin(), scales->end()));
    }
    for (std::size_t i = 1; i < call.inputs(); ++i) {
      if (!call.has(i) || call.constant(i).numel() != 3) continue;
      const auto& numbers = call.constant(i);
      stand_ins[i] = {-1, at::cat({numbers.slice(0, 0, 2), at::ones({1}, numbers.options()),
                                   numbers.slice(0, 2)})};
    }
  }
  act_on_map(call, node, x, std::move(stand_ins));
}

}  // namespace

void convert_resize(Call& call) {
  auto x = call.activation(0);
  const Shape shape = call.shape(x);
  if (shape.size() == 3) return resize_signal(call, x);
  if (shape.size() != 4) call.fail("needs an input N x C x H x W");
  const auto op = read_interpolation(call, shape);
  if (call.opset() >= 11 || op.mode != InterpolationMode::nearest)
    return call.bind({appended(call, x, op), {}});
  // Before nearest_mode, onnxruntime rounds up where a side shrinks, and down where it grows.
  for (std::size_t i = 0; i < 2; ++i) {
    auto side = op;
    side.size[1 - i] = call.shape(x)[3 - i];
    side.scale[1 - i] = 1;
    if (op.scale[i] < 1) side.rounding = NearestRounding::ceil;
    x = appended(call, x, side);
  }
  call.bind({x, {}});
}

}  // namespace zsq::models::onnx
