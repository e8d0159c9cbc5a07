// SPDX-License-Identifier: Apache-2.0
#include "exporters/restore_student.h"

#include <ATen/TensorOperators.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "formats/json.h"
#include "models/load.h"
#include "quant/calibration/bias_correction.h"
#include "quant/fold_batch_norm.h"

namespace zsq::exporters {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::bad_input,
              what + "; expected the model.safetensors that `zsq quantize` wrote of this network");
}

class Restorer {
 public:
  Restorer(const formats::SafetensorsFile& file, quant::Student& student)
      : file_(file), student_(student) {
    const auto found = file.metadata.find("layers");
    if (found != file.metadata.end()) layers_ = formats::parse_json<Json>(found->second);
    if (!layers_.is_object()) refuse("the metadata does not say how layers are stored");
  }

  void run() {
    for (const quant::WeightSite& site : quant::weight_sites(student_)) restore_layer(site);
    for (const models::NodeId id : quant::activation_sites(student_.graph))
      restore_quantizer(*quant::activation_quantizer(student_.graph[id]));
    restore_the_rest();
    quant::adopt_corrected_biases(student_);
  }

 private:
  at::Tensor tensor(const std::string& name) {
    const formats::Array* array = formats::find(file_.tensors, name);
    if (!array) refuse("there is no tensor '" + name + "'");
    read_.insert(name);
    return models::to_tensor(*array);
  }
  bool holds(const std::string& name) const { return formats::find(file_.tensors, name); }

  void set(const std::string& name, const at::Tensor& value) {
    restored_.insert(name);
    student_.parameters.set(name, value.to(at::kFloat).contiguous());
  }

  void replace(const std::string& name, const at::Tensor& value, const std::string& stored) {
    if (value.sizes() != student_.parameters.at(name).sizes())
      refuse("tensor '" + stored + "' has another shape than the network's");
    set(name, value);
  }

  void require_same_grid(const models::Node& layer, const quant::WeightSite& site) const {
    const auto entry = layers_.find(layer.name);
    if (entry == layers_.end() || !entry->is_object())
      refuse("layer '" + layer.name + "' is not among those of the file");
    const auto bits = entry->value("bits", Json());
    if (!bits.is_number_integer() || bits != site.op->spec().num_bits)
      refuse("layer '" + layer.name + "' has " + bits.dump() + " bits in the file and " +
             std::to_string(site.op->spec().num_bits) + " by the recipe");
  }

  // u8 of the weight's shape, from two codes per byte where they have 4 bits or fewer.
  at::Tensor codes(const std::string& name, at::IntArrayRef shape, std::int64_t bits) {
    const at::Tensor stored = tensor(name);
    const auto count = c10::multiply_integers(shape);
    if (stored.scalar_type() != at::kByte || stored.numel() != (bits > 4 ? count : (count + 1) / 2))
      refuse("tensor '" + name + "' has " + std::to_string(stored.numel()) + " bytes for " +
             std::to_string(count) + " codes of " + std::to_string(bits) + " bits");
    formats::Array array = *formats::find(file_.tensors, name);
    if (bits <= 4) array.dtype = formats::DType::u4;
    array.shape = shape.vec();
    at::Tensor all = models::to_tensor(array);
    if (count > 0 && all.max().item<int>() >= 1 << bits)
      refuse("tensor '" + name + "' holds a code beyond " + std::to_string(bits) + " bits");
    return all;
  }

  void restore_layer(const quant::WeightSite& site) {
    models::Node& layer = student_.graph[site.layer];
    require_same_grid(layer, site);
    const std::string prefix = layer.name + ".weight";
    const at::Tensor weight = student_.parameters.at(site.parameter);
    const quant::QuantizerSpec& spec = site.op->spec();
    const at::Tensor q = codes(prefix + ".codes", weight.sizes(), spec.num_bits).to(at::kLong);
    const std::string& scale_name = site.op->scale_name();
    replace(scale_name, tensor(prefix + ".scale"), prefix + ".scale");
    at::Tensor steps;
    if (holds(prefix + ".levels")) {
      const at::Tensor levels = level_rows(prefix).to(at::kFloat);
      replace(site.op->levels_name(), levels, prefix + ".levels");
      restored_.insert(site.op->zero_point_name());
      steps = levels.gather(1, q.flatten(1)).view(weight.sizes());
    } else {
      replace(site.op->zero_point_name(), tensor(prefix + ".zero_point"), prefix + ".zero_point");
      const at::Tensor zero = student_.parameters.at(site.op->zero_point_name());
      steps =
          (q + spec.qmin).to(at::kFloat) - (zero.dim() ? quant::per_channel(zero, weight) : zero);
    }
    const at::Tensor scale = student_.parameters.at(scale_name);
    set(site.parameter, steps * (scale.dim() ? quant::per_channel(scale, weight) : scale));
    restore_bias(layer);
  }

  at::Tensor level_rows(const std::string& prefix) {
    const at::Tensor tables = tensor(prefix + ".levels");
    const at::Tensor index = tensor(prefix + ".level_index").to(at::kLong);
    if (tables.dim() != 2 || index.dim() != 1 ||
        (index.numel() && (index.min().item<std::int64_t>() < 0 ||
                           index.max().item<std::int64_t>() >= tables.size(0))))
      refuse("'" + prefix + ".level_index' names a table that '" + prefix + ".levels' lacks");
    return tables.index_select(0, index);
  }

  // Bias correction can give a layer a bias that the network has not.
  void restore_bias(models::Node& layer) {
    const std::string stored = layer.name + ".bias";
    const auto bias = layer.params.find("bias");
    if (bias == layer.params.end() && !holds(stored)) return;
    if (bias != layer.params.end()) restored_.insert(bias->second);
    layer.params["bias"] = stored;
    set(stored, tensor(stored));
  }

  void restore_quantizer(const quant::ActivationQuantizer& op) {
    if (!holds(op.scale_name())) return;
    for (const std::string& name : {op.scale_name(), op.zero_point_name()}) {
      const at::Tensor value = tensor(name);
      if (value.numel() != 1) refuse("tensor '" + name + "' is not a single number");
      set(name, value.reshape(at::IntArrayRef()));
    }
  }

  void restore_the_rest() {
    for (const std::string& name : student_.parameters.names())
      if (!restored_.contains(name)) replace(name, tensor(name), name);
    for (const auto& [name, array] : file_.tensors)
      if (!read_.contains(name)) set(name, models::to_tensor(array));
  }

  const formats::SafetensorsFile& file_;
  quant::Student& student_;
  Json layers_;
  std::set<std::string> read_, restored_;  // names in the file; of the store
};

}  // namespace

void restore_student(const formats::SafetensorsFile& file, quant::Student& student) {
  Restorer(file, student).run();
}

}  // namespace zsq::exporters
