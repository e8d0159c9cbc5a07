// SPDX-License-Identifier: Apache-2.0
#include "models/architectures/inverted_residual.h"

namespace zsq::models {
namespace {

std::string text(std::int64_t number) { return std::to_string(number); }

// Where a unit stands; each number from 0.
struct Place {
  std::int64_t stage = 0, unit = 0, index = 0, halvings = 0, after_halving = 0;
};

std::string name_of(const std::string& pattern, const Place& place) {
  return fill(pattern, {{'s', text(place.stage)},
                        {'S', text(place.stage + 1)},
                        {'u', text(place.unit)},
                        {'i', text(place.index)},
                        {'I', text(place.index + 1)},
                        {'p', text(place.halvings + 1)},
                        {'q', text(place.after_halving + 1)}});
}

NodeId build_unit(Builder& net, NodeId x, const InvertedResidual& unit, const std::string& name,
                  const InvertedResidualDesign& design, const InvertedResidualNames& names) {
  const NodeId input = x;
  const bool expands = unit.hidden != net.channels(x) || names.as_conv;
  int part = 0, conv = 0;
  const auto part_names = [&](const Names& pattern) {
    return fill(pattern, name, {{'k', text(part++)}, {'n', text(++conv)}});
  };
  if (expands) x = net.conv_bn(x, part_names(names.expand), {unit.hidden}, unit.activation);
  x = net.conv_bn(x, part_names(names.depthwise),
                  {unit.hidden, unit.kernel, unit.stride, unit.hidden}, unit.activation);
  if (unit.squeezed > 0) {
    const auto place = text(part++);
    x = net.gate(
        x, {name + fill(names.reduce, {{'k', place}}), name + fill(names.restore, {{'k', place}}),
            unit.squeezed, design.gate, design.hard_gate});
  }
  Names project = names.project;
  if (!expands && names.project_of_two) project.conv = names.project_of_two;
  x = net.conv_bn(x, part_names(project), {unit.out});
  const bool residual = unit.stride == 1 && net.channels(input) == unit.out;
  return residual ? net.add(name + ".add", Add{}, {x, input}) : x;
}

}  // namespace

NodeId inverted_residual_network(Builder& net, const InvertedResidualDesign& design,
                                 const InvertedResidualNames& names) {
  auto x = net.conv_bn(net.input(), names.stem, {design.stem, 3, 2}, design.activation);
  Place place;
  for (std::size_t i = 0; i < design.units.size(); ++i) {
    const auto& unit = design.units[i];
    if (i > 0) {
      const bool same_stage = unit.out == design.units[i - 1].out, halves = unit.stride > 1;
      place.unit = same_stage ? place.unit + 1 : 0;
      place.stage += same_stage ? 0 : 1;
      place.after_halving = halves ? 0 : place.after_halving + 1;
      place.halvings += halves ? 1 : 0;
      ++place.index;
    }
    x = build_unit(net, x, unit, name_of(names.unit, place), design, names);
  }
  ++place.stage;
  ++place.index;
  const Names head{name_of(names.head.conv, place), name_of(names.head.norm, place)};
  x = net.conv_bn(x, head, {design.head}, design.activation);
  x = net.add("avgpool", GlobalAvgPool{}, {x});
  if (design.hidden > 0)
    x = net.activate(net.linear(x, names.hidden, design.hidden), design.activation);
  return net.classifier(x, names.classifier, 1000, names.as_conv);
}

InvertedResidualNames timm_names(bool tensorflow) {
  return {{"timm", "classifier", tensorflow ? 1e-3 : 1e-5, tensorflow},
          {"conv_stem", "bn1"},
          {"conv_head", "bn2"},
          "blocks.#s.#u",
          {".conv_pw", ".bn#n"},
          {".conv_dw", ".bn#n"},
          {".conv_pwl", ".bn#n"},
          ".se.conv_reduce",
          ".se.conv_expand",
          "conv_head",
          ".conv_pw"};
}

}  // namespace zsq::models
