// SPDX-License-Identifier: Apache-2.0
#include "models/architectures/residual.h"

#include <algorithm>
#include <limits>

namespace zsq::models {
namespace {

// One unit: its names so far, and what it is made of.
struct Unit {
  std::string name;
  ResidualStage stage;
  std::int64_t stride;
};

class UnitBuilder {
 public:
  UnitBuilder(Builder& net, const ResidualDesign& design, const ResidualNames& names, Unit unit)
      : net_(net), design_(design), names_(names), unit_(std::move(unit)) {}

  NodeId build(NodeId x) {
    const NodeId y = design_.bottleneck ? bottleneck(x) : basic(x);
    const NodeId sum = net_.add(unit_.name + ".add", Add{}, {y, shortcut(x)});
    return net_.activate(sum, Activation::relu);
  }

 private:
  NodeId basic(NodeId x) {
    const auto width = unit_.stage.width;
    x = net_.conv_bn(x, body(1), {width, 3, unit_.stride}, Activation::relu);
    return net_.conv_bn(x, body(2), {width, 3});
  }

  NodeId bottleneck(NodeId x) {
    const auto& [units, width, out, group_width] = unit_.stage;
    const auto groups = group_width > 0 ? width / std::min(group_width, width) : 1;
    const auto first = names_.stride_in_first ? unit_.stride : 1;
    const auto squeezed = net_.channels(x) / 4;
    x = net_.conv_bn(x, body(1), {width, 1, first}, Activation::relu);
    x = net_.conv_bn(x, body(2), {width, 3, unit_.stride / first, groups}, Activation::relu);
    if (design_.excites)
      x = net_.gate(x, {unit_.name + names_.reduce, unit_.name + names_.restore, squeezed});
    return net_.conv_bn(x, body(3), {out, 1});
  }

  NodeId shortcut(NodeId x) {
    const auto out = unit_.stage.out, stride = unit_.stride;
    if (stride == 1 && net_.channels(x) == out) return x;
    const std::string& name = unit_.name;
    if (!names_.padded_shortcut)
      return net_.conv_bn(x, fill(names_.projection, name, {}), {out, 1, stride});
    constexpr auto kEnd = std::numeric_limits<std::int64_t>::max();
    const auto added = (out - net_.channels(x)) / 2;
    x = net_.add(name + ".shortcut.rows", Slice{2, 0, kEnd, stride}, {x});
    x = net_.add(name + ".shortcut.columns", Slice{3, 0, kEnd, stride}, {x});
    return net_.add(name + ".shortcut.channels", Pad{{0, added, 0, 0}, {0, added, 0, 0}}, {x});
  }

  Names body(int n) const {
    const int place = n - 1 + (design_.excites && n == 3 ? 1 : 0);
    return fill(names_.body, unit_.name,
                {{'n', std::to_string(n)},
                 {'l', std::string(1, "abc"[n - 1])},
                 {'k', std::to_string(place)}});
  }

  Builder& net_;
  const ResidualDesign& design_;
  const ResidualNames& names_;
  Unit unit_;
};

}  // namespace

NodeId residual_network(Builder& net, const ResidualDesign& design, const ResidualNames& names) {
  const ConvSpec stem = design.imagenet_stem ? ConvSpec{design.stem, 7, 2}
                                             : ConvSpec{design.stem, 3, design.stem_stride};
  auto x = net.conv_bn(net.input(), names.stem, stem, Activation::relu);
  if (design.imagenet_stem) x = net.max_pool(x, "maxpool");
  for (std::size_t s = 0; s < design.stages.size(); ++s) {
    for (int u = 0; u < design.stages[s].units; ++u) {
      const auto name = fill(names.unit, {{'s', std::to_string(s)},
                                          {'S', std::to_string(s + 1)},
                                          {'u', std::to_string(u)},
                                          {'U', std::to_string(u + 1)}});
      const std::int64_t stride = u > 0 ? 1 : s > 0 ? 2 : design.first_stride;
      x = UnitBuilder(net, design, names, {name, design.stages[s], stride}).build(x);
    }
  }
  return net.classifier(net.add("avgpool", GlobalAvgPool{}, {x}), names.classifier, design.classes);
}

}  // namespace zsq::models
