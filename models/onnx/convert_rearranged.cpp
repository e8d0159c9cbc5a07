// SPDX-License-Identifier: Apache-2.0
// DepthToSpace and SpaceToDepth, and what is spread out of channels.
#include <algorithm>

#include "models/onnx/converters.h"
#include "models/onnx/rearrange.h"

namespace zsq::models::onnx {
namespace {

using Dims = std::vector<std::int64_t>;

const Dims kSpread{0, 1, 4, 2, 5, 3};  // [N, C, i, j, H, W] -> [N, C, H, i, W, j]

std::int64_t block_size(const Call& call) {
  const auto size = call.integer("blocksize", 0);
  if (size < 1 || size > kMaxExtent) call.fail("attribute 'blocksize' must be positive");
  return size;
}

bool channels_come_first(const Call& call) {
  const auto mode = call.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") call.fail("mode '" + mode + "' is not known");
  return mode == "CRD";
}

const Shape& map_shape(const Call& call, NodeId x) {
  const auto& shape = call.shape(x);
  if (shape.size() != 4) call.fail("needs an input N x C x H x W");
  return shape;
}

}  // namespace

NodeId spread_channels(Call& call, NodeId x, Pair block) {
  const auto shape = call.shape(x);
  const auto channels = shape[1] / (block[0] * block[1]);
  x = call.part(Reshape{{channels, block[0], block[1], shape[2], shape[3]}}, {x});
  x = call.part(Transpose{kSpread}, {x});
  return call.part(Reshape{{channels, shape[2] * block[0], shape[3] * block[1]}}, {x});
}

void convert_depth_to_space(Call& call) {
  auto x = call.activation(0);
  const auto shape = map_shape(call, x);
  const auto block = block_size(call);
  if (shape[1] % (block * block) != 0) call.contradict("the block does not divide the channels");
  if (channels_come_first(call)) return call.bind({spread_channels(call, x, {block, block}), {}});
  const auto channels = shape[1] / (block * block);
  x = call.part(Reshape{{block, block, channels, shape[2], shape[3]}}, {x});
  x = call.part(Transpose{{0, 3, 4, 1, 5, 2}}, {x});
  call.emit(Reshape{{channels, shape[2] * block, shape[3] * block}}, {x});
}

void convert_space_to_depth(Call& call) {
  auto x = call.activation(0);
  const auto shape = map_shape(call, x);
  const auto block = block_size(call);
  if (shape[2] % block != 0 || shape[3] % block != 0)
    call.contradict("the block does not divide height and width");
  const Dims perm = channels_come_first(call) ? Dims{0, 1, 3, 5, 2, 4} : Dims{0, 3, 5, 1, 2, 4};
  x = call.part(Reshape{{shape[1], shape[2] / block, block, shape[3] / block, block}}, {x});
  x = call.part(Transpose{perm}, {x});
  call.emit(Reshape{{shape[1] * block * block, shape[2] / block, shape[3] / block}}, {x});
}

bool normalize_before_spreading(Call& call, const std::string& name) {
  const auto& graph = call.model().graph;
  auto x = call.activation(0);
  std::vector<Slice> crops;
  for (; is<Slice>(graph[x]); x = graph[x].inputs[0]) crops.push_back(*get_if<Slice>(graph[x]));
  if (std::any_of(crops.begin(), crops.end(), [](const Slice& crop) { return crop.axis < 2; }))
    return false;
  const auto last = x;
  if (!is<Reshape>(graph[last])) return false;
  const auto moved = graph[last].inputs[0];
  const auto* transpose = get_if<Transpose>(graph[moved]);
  if (!transpose || transpose->perm != kSpread) return false;
  const auto split = graph[moved].inputs[0];
  if (!is<Reshape>(graph[split]) || !is<Conv2d>(graph[graph[split].inputs[0]])) return false;
  const auto parts = call.shape(split), spread = call.shape(last);
  if (spread != Shape{1, parts[1], parts[4] * parts[2], parts[5] * parts[3]}) return false;
  const auto repeats = parts[2] * parts[3];
  if (call.constant(1).numel() != parts[1]) return false;

  std::map<std::string, std::string> params;
  std::size_t input = 1;
  for (const auto* role : {"gamma", "beta", "mean", "variance"}) {
    const auto& value = call.constant(input);
    call.charge(static_cast<double>(value.numel() * repeats), value.scalar_type());
    params[role] =
        call.parameter(name, role, input, value.reshape({-1}).repeat_interleave(repeats));
    ++input;
  }
  x = call.append(name, BatchNorm{call.number("epsilon", 1e-5)}, {graph[split].inputs[0]}, params);
  x = spread_channels(call, x, {parts[2], parts[3]});
  for (auto crop = crops.rbegin(); crop != crops.rend(); ++crop) x = call.part(*crop, {x});
  call.bind({x, {}});
  return true;
}

}  // namespace zsq::models::onnx
