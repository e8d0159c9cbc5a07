// SPDX-License-Identifier: Apache-2.0
#include "exporters/tflite/builder.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "formats/atomic_file.h"

namespace zsq::exporters::tflite {
namespace {

constexpr std::uint32_t kSchemaVersion = 3;

// The first version of an operator that has what zsq writes of it: int8 codes with a scale per
// channel, and so on. LiteRT refuses a file whose version it does not know.
int version_of(BuiltinOperator code) {
  switch (code) {
    case BuiltinOperator::CONV_2D:
    case BuiltinOperator::DEPTHWISE_CONV_2D:
      return 3;
    case BuiltinOperator::FULLY_CONNECTED:
      return 4;
    case BuiltinOperator::QUANTIZE:
    case BuiltinOperator::DEQUANTIZE:
    case BuiltinOperator::ADD:
    case BuiltinOperator::MUL:
    case BuiltinOperator::CONCATENATION:
    case BuiltinOperator::AVERAGE_POOL_2D:
    case BuiltinOperator::MAX_POOL_2D:
    case BuiltinOperator::MEAN:
    case BuiltinOperator::MAXIMUM:
    case BuiltinOperator::MINIMUM:
    case BuiltinOperator::PAD:
    case BuiltinOperator::PADV2:
    case BuiltinOperator::RELU:
    case BuiltinOperator::RESIZE_NEAREST_NEIGHBOR:
    case BuiltinOperator::STRIDED_SLICE:
    case BuiltinOperator::TRANSPOSE:
      return 2;
    default:
      return 1;
  }
}

std::vector<int> small(const Sizes& sizes) { return {sizes.begin(), sizes.end()}; }

}  // namespace

Builder::Builder() {
  model_.version = kSchemaVersion;
  model_.description = "zsq " ZSQ_VERSION;
  model_.buffers.push_back(std::make_unique<BufferT>());  // the empty one of computed tensors
  model_.subgraphs.push_back(std::make_unique<SubGraphT>());
  graph_ = model_.subgraphs.back().get();
  graph_->name = "main";
}

std::string Builder::unique(const std::string& name) {
  const int before = names_[name]++;
  return before == 0 ? name : unique(name + "_" + std::to_string(before + 1));
}

std::uint32_t Builder::buffer(std::span<const std::byte> bytes) {
  auto result = std::make_unique<BufferT>();
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  result->data.assign(first, first + bytes.size());
  model_.buffers.push_back(std::move(result));
  return static_cast<std::uint32_t>(model_.buffers.size() - 1);
}

TensorId Builder::tensor(const std::string& name, Sizes shape, const Kind& kind,
                         std::uint32_t buffer) {
  auto result = std::make_unique<TensorT>();
  result->name = unique(name);
  result->shape = small(shape);
  result->type = kind.type;
  result->buffer = buffer;
  if (!kind.scale.empty()) {
    result->quantization = std::make_unique<QuantizationParametersT>();
    result->quantization->scale = kind.scale;
    result->quantization->zero_point = kind.zero_point;
    result->quantization->quantized_dimension = kind.dimension;
  }
  graph_->tensors.push_back(std::move(result));
  shapes_.push_back(std::move(shape));
  kinds_.push_back(kind);
  return static_cast<TensorId>(shapes_.size() - 1);
}

TensorId Builder::input(const std::string& name, Sizes shape) {
  graph_->inputs.push_back(tensor(name, std::move(shape), {}, 0));
  return graph_->inputs.back();
}

std::uint32_t Builder::code_index(BuiltinOperator code) {
  const auto [found, is_new] =
      codes_.emplace(code, static_cast<std::uint32_t>(model_.operator_codes.size()));
  if (!is_new) return found->second;
  auto entry = std::make_unique<OperatorCodeT>();
  entry->builtin_code = code;
  entry->deprecated_builtin_code = static_cast<std::int8_t>(std::min(static_cast<int>(code), 127));
  entry->version = version_of(code);
  model_.operator_codes.push_back(std::move(entry));
  return found->second;
}

TensorId Builder::node(BuiltinOperator code, BuiltinOptionsUnion options,
                       const std::vector<TensorId>& inputs, const std::string& name, Sizes shape,
                       const Kind& kind) {
  auto result = std::make_unique<OperatorT>();
  result->opcode_index = code_index(code);
  result->builtin_options = std::move(options);
  result->inputs = inputs;
  result->outputs = {tensor(name, std::move(shape), kind, 0)};
  graph_->operators.push_back(std::move(result));
  return graph_->operators.back()->outputs[0];
}

TensorId Builder::constant(const std::string& name, const formats::Array& array, const Kind& kind) {
  return tensor(name, array.shape, kind, buffer(array.data));
}

TensorId Builder::integers(const std::string& name, const Sizes& values) {
  const std::vector<std::int32_t> numbers(values.begin(), values.end());
  return constant(name,
                  formats::Array::from<std::int32_t>(
                      formats::DType::i32, {static_cast<std::int64_t>(values.size())}, numbers),
                  {.type = TensorType::INT32});
}

TensorId Builder::scalar(const std::string& name, float value) {
  return constant(name, formats::Array::from<float>(formats::DType::f32, {}, {{value}}));
}

void Builder::sign(TensorId output, const std::string& output_name) {
  graph_->outputs = {output};
  graph_->tensors[static_cast<std::size_t>(output)]->name = output_name;
  auto signature = std::make_unique<SignatureDefT>();
  signature->signature_key = "serving_default";
  const auto map = [&](TensorId id) {
    TensorT& end = *graph_->tensors[static_cast<std::size_t>(id)];
    end.shape_signature = end.shape;
    end.shape_signature[0] = -1;
    auto entry = std::make_unique<TensorMapT>();
    entry->name = end.name;
    entry->tensor_index = static_cast<std::uint32_t>(id);
    return entry;
  };
  signature->inputs.push_back(map(graph_->inputs[0]));
  signature->outputs.push_back(map(output));
  model_.signature_defs.push_back(std::move(signature));
}

void Builder::write(const std::filesystem::path& path, TensorId output,
                    const std::string& output_name, const exporters::Metadata& metadata) && {
  sign(output, output_name);
  for (const auto& [key, value] : metadata) {
    auto entry = std::make_unique<MetadataT>();
    entry->name = key;
    entry->buffer = buffer(std::as_bytes(std::span(value)));
    model_.metadata.push_back(std::move(entry));
  }
  std::size_t bytes = 0;
  for (const auto& one : model_.buffers) bytes += one->data.size();
  if (bytes > std::numeric_limits<std::int32_t>::max() / 2)
    throw Error(ErrorCode::unsupported_model,
                "'" + path.string() + "' would be larger than the 1 GB that zsq writes to .tflite");
  flatbuffers::FlatBufferBuilder file(bytes + (std::size_t{1} << 20));
  FinishModelBuffer(file, Model::Pack(file, &model_));
  formats::write_atomically(path,
                            std::as_bytes(std::span(file.GetBufferPointer(), file.GetSize())));
}

}  // namespace zsq::exporters::tflite
