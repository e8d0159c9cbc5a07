// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/searchsorted.h>

#include <nlohmann/json.hpp>
#include <set>

#include "exporters/plan.h"
#include "models/load.h"
#include "quant/level_table.h"
#include "quant/pair_bound.h"

namespace zsq::exporters {
namespace {

constexpr const char* kHowToRead =
    "weight = (code + qmin - zero_point) * scale, per output channel where scale has one entry per "
    "channel; codes are u8 in row-major order, two per byte with the low nibble first where bits "
    "<= "
    "4; see 'layers' for shape, bits and qmin, 'quantizers' for bits, qmin and qmax of activations";
constexpr const char* kHowToReadLevels =
    "; where there is a tensor '<layer>.weight.levels' [tables, 2^bits] weight = "
    "levels[level_index[channel]][code] * scale with '<layer>.weight.level_index' u8 [channels], "
    "and there are no zero points";

// Codes from 0 in row-major order, packed as kHowToRead says.
formats::Array pack(const at::Tensor& codes, std::int64_t bits) {
  const at::Tensor counted = codes.to(at::kByte).contiguous();
  const auto* from = counted.const_data_ptr<std::uint8_t>();
  const std::int64_t n = counted.numel();
  if (bits > 4)
    return formats::Array::from<std::uint8_t>(formats::DType::u8, {n},
                                              {from, static_cast<std::size_t>(n)});
  auto bytes = formats::pack_u4({n}, {from, static_cast<std::size_t>(n)}).data;
  return {formats::DType::u8, {std::ssize(bytes)}, std::move(bytes)};
}

class StudentFile {
 public:
  explicit StudentFile(const quant::Student& student) : student_(student) {}

  void add_layer(const quant::WeightSite& site) {
    const models::Node& layer = student_.graph[site.layer];
    const at::Tensor weight = student_.parameters.at(site.parameter).detach();
    const quant::QuantizerSpec& spec = site.op->spec();
    const cuda_kernels::Grid grid = site.op->grid(weight, student_.parameters);
    const std::string prefix = layer.name + ".weight";
    at::Tensor codes = cuda_kernels::quantize(quant::keep_pairs(weight, grid, spec), grid.scale,
                                              grid.zero_point, spec.qmin, spec.qmax);
    const at::Tensor levels = quant::level_grids(*site.op, student_.parameters).levels;
    if (levels.defined()) {
      codes = at::searchsorted(levels, codes.flatten(1).to(at::kFloat)).view(weight.sizes());
      const quant::DistinctLevels tables = quant::distinct_levels(levels);
      add(prefix + ".levels", models::to_array(tables.levels.to(at::kChar)));
      add(prefix + ".level_index", models::to_array(tables.index.to(at::kByte)));
      written_.insert(site.op->levels_name());
      has_levels_ = true;
    } else {
      codes = codes - spec.qmin;
    }
    add(prefix + ".codes", pack(codes, spec.num_bits));
    add(prefix + ".scale", models::to_array(grid.scale));
    if (!levels.defined())
      add(prefix + ".zero_point", models::to_array(grid.zero_point.to(at::kInt)));
    written_.insert({site.parameter, site.op->scale_name(), site.op->zero_point_name()});
    if (const auto bias = layer.params.find("bias"); bias != layer.params.end()) {
      add(layer.name + ".bias", models::to_array(student_.parameters.at(bias->second).detach()));
      written_.insert(bias->second);
    }
    layers_[layer.name] = {{"shape", weight.sizes().vec()},
                           {"bits", spec.num_bits},
                           {"qmin", levels.defined() ? 0 : spec.qmin}};
  }

  void add_quantizer(const quant::ActivationQuantizer& op) {
    if (!written_.insert(op.scale_name()).second) return;  // one grid after several nodes
    written_.insert(op.zero_point_name());
    add(op.scale_name(), models::to_array(student_.parameters.at(op.scale_name())));
    add(op.zero_point_name(),
        models::to_array(student_.parameters.at(op.zero_point_name()).to(at::kInt)));
    constexpr std::string_view suffix = ".scale";
    const std::string name = op.scale_name();
    quantizers_[name.substr(0, name.size() - suffix.size())] = {
        {"bits", op.spec().num_bits}, {"qmin", op.spec().qmin}, {"qmax", op.spec().qmax}};
  }

  void add_the_rest() {
    for (const std::string& name : student_.parameters.names())
      if (!written_.contains(name))
        add(name, models::to_array(student_.parameters.at(name).detach()));
  }

  formats::SafetensorsFile finish(const Metadata& metadata) && {
    file_.metadata = metadata;
    file_.metadata["format"] =
        std::string("zsq quantized student, version ") + (has_levels_ ? "2" : "1");
    file_.metadata["how_to_read"] = std::string(kHowToRead) + (has_levels_ ? kHowToReadLevels : "");
    file_.metadata["layers"] = layers_.dump();
    file_.metadata["quantizers"] = quantizers_.dump();
    return std::move(file_);
  }

 private:
  void add(const std::string& name, formats::Array array) {
    file_.tensors.emplace_back(name, std::move(array));
  }

  const quant::Student& student_;
  formats::SafetensorsFile file_;
  std::set<std::string> written_;  // names of the store
  bool has_levels_ = false;
  nlohmann::json layers_ = nlohmann::json::object(), quantizers_ = nlohmann::json::object();
};

}  // namespace

ExportReport export_safetensors(const quant::Student& student, const std::filesystem::path& path,
                                const Metadata& metadata, const ExportOptions&) {
  const std::vector<quant::WeightSite> sites = quant::weight_sites(student);
  StudentFile file(student);
  for (const quant::WeightSite& site : sites) file.add_layer(site);
  for (std::size_t i = 0; i < student.graph.nodes.size(); ++i)
    if (const auto* op = calibrated_quantizer(student, static_cast<models::NodeId>(i)))
      file.add_quantizer(*op);
  file.add_the_rest();
  formats::write_safetensors(path, std::move(file).finish(metadata));
  return {static_cast<std::int64_t>(std::filesystem::file_size(path)),
          make_plan(student, sites).layers};
}

}  // namespace zsq::exporters
