// SPDX-License-Identifier: Apache-2.0
#include "formats/exported_program.h"

#include <gtest/gtest.h>

#include "tests/formats/pickle_bytes.h"

namespace zsq::formats::exported_program_test {
namespace {

using Kind = ExportedProgram::Argument::Kind;

using Entries = std::vector<std::pair<std::string, std::string>>;

std::string zip_of(const Entries& texts) {
  std::vector<std::pair<std::string, std::vector<std::byte>>> entries;
  for (const auto& [name, text] : texts) {
    const auto view = std::as_bytes(std::span(text));
    entries.emplace_back(name, std::vector(view.begin(), view.end()));
  }
  const auto zip = make_zip(entries);
  return {reinterpret_cast<const char*>(zip.data()), zip.size()};
}

// A file of one convolution. Parts of it can be replaced.
struct Parts {
  std::string version = R"({"major": 8, "minor": 17})";
  std::string arguments = R"(
    {"name": "input", "arg": {"as_tensor": {"name": "x"}}, "kind": 1},
    {"name": "weight", "arg": {"as_tensor": {"name": "p_conv_weight"}}, "kind": 1},
    {"name": "bias", "arg": {"as_none": true}, "kind": 1},
    {"name": "stride", "arg": {"as_ints": [2, 1]}, "kind": 1},
    {"name": "sizes", "arg": {"as_sym_ints": [{"as_name": "s0"}, {"as_int": -1}]}, "kind": 1},
    {"name": "tensors", "arg": {"as_tensors": [{"name": "x"}, {"name": "y"}]}, "kind": 1},
    {"name": "flag", "arg": {"as_bool": true}, "kind": 1},
    {"name": "low", "arg": {"as_float": "-Infinity"}, "kind": 1},
    {"name": "high", "arg": {"as_float": 6.5}, "kind": 1},
    {"name": "mode", "arg": {"as_string": "same"}, "kind": 1},
    {"name": "dim", "arg": {"as_sym_int": {"as_int": 3}}, "kind": 1},
    {"name": "dtype", "arg": {"as_scalar_type": 7}, "kind": 1},
    {"name": "format", "arg": {"as_memory_format": 1}, "kind": 1})";
  std::string meta = R"({"dtype": 7, "sizes": [{"as_int": 2}, {"as_int": 2}],
    "strides": [{"as_int": 1}, {"as_int": 2}], "storage_offset": {"as_int": 1}, "layout": 7})";
  std::string pickled = "false";
  std::string storage = raw(0.f) + raw(1.f) + raw(2.f) + raw(3.f) + raw(4.f);
  std::string graph_entry = "models/model.json";

  std::string graph() const {
    return R"({"schema_version": )" + version + R"(, "torch_version": "2.11.0",
      "graph_module": {"graph": {"nodes": [{"target": "torch.ops.aten.conv2d.default",
          "name": "conv", "inputs": [)" +
           arguments + R"(], "outputs": [{"as_tensor": {"name": "y"}}]}],
        "tensor_values": {"x": {"sizes": [{"as_expr": {"expr_str": "s0"}}, {"as_int": 3}]}}},
      "signature": {"input_specs": [
          {"parameter": {"arg": {"name": "p_conv_weight"}, "parameter_name": "conv.weight"}},
          {"buffer": {"arg": {"name": "b_mean"}, "buffer_name": "bn.mean", "persistent": true}},
          {"tensor_constant": {"arg": {"name": "c_two"}, "tensor_constant_name": "two"}},
          {"user_input": {"arg": {"as_tensor": {"name": "x"}}}}],
        "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "y"}}}}]}}})";
  }
  std::string bytes() const {
    const auto config = R"({"config": {"conv.weight": {"path_name": "weight_0", "is_param": true,
      "use_pickle": )" + pickled +
                        R"(, "tensor_meta": )" + meta + "}}}";
    return zip_of({{"net/" + graph_entry, graph()},
                   {"net/data/weights/model_weights_config.json", config},
                   {"net/data/weights/weight_0", storage},
                   {"net/data/constants/model_constants_config.json", R"({"config": {}})"},
                   {"net/byteorder", "little"}});
  }
};

ExportedProgram read(const Parts& parts) {
  const TempFolder folder;
  return read_exported_program(folder.file("x.pt2", parts.bytes()));
}

TEST(ExportedProgramFile, GraphSignatureAndWeights) {
  const auto program = read({});
  EXPECT_EQ(program.torch_version, "2.11.0");
  ASSERT_EQ(program.inputs.size(), 1u);
  EXPECT_EQ(program.inputs[0].name, "x");
  EXPECT_EQ(program.inputs[0].shape, (std::vector<std::int64_t>{-1, 3}));
  EXPECT_EQ(program.outputs, std::vector<std::string>{"y"});
  EXPECT_EQ(program.parameters,
            (std::map<std::string, std::string>{
                {"p_conv_weight", "conv.weight"}, {"b_mean", "bn.mean"}, {"c_two", "two"}}));
  expect_same(program.tensors,
              {{"conv.weight", make_array<float>(DType::f32, {2, 2}, {1, 3, 2, 4})}});
  ASSERT_EQ(program.nodes.size(), 1u);
  EXPECT_EQ(program.nodes[0].target, "torch.ops.aten.conv2d.default");
  EXPECT_EQ(program.nodes[0].name, "conv");
  EXPECT_EQ(program.nodes[0].outputs[0].text, "y");
}

TEST(ExportedProgramFile, EveryKindOfArgument) {
  const auto inputs = read({}).nodes[0].inputs;
  const std::vector<Kind> kinds{Kind::tensor,  Kind::tensor,  Kind::none, Kind::list, Kind::list,
                                Kind::list,    Kind::boolean, Kind::real, Kind::real, Kind::text,
                                Kind::integer, Kind::dtype,   Kind::other};
  ASSERT_EQ(inputs.size(), kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) EXPECT_EQ(inputs[i].kind, kinds[i]) << i;
  EXPECT_EQ(inputs[0].name, "input");
  EXPECT_EQ(inputs[0].text, "x");
  EXPECT_EQ(inputs[3].items[0].integer, 2);
  EXPECT_EQ(inputs[4].items[0].kind, Kind::symbol);
  EXPECT_EQ(inputs[4].items[0].text, "s0");
  EXPECT_EQ(inputs[4].items[1].integer, -1);
  EXPECT_EQ(inputs[5].items[1].text, "y");
  EXPECT_EQ(inputs[7].real, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(inputs[8].real, 6.5);
  EXPECT_EQ(inputs[10].integer, 3);
  EXPECT_EQ(inputs[11].integer, 6);  // c10::ScalarType::Float
  EXPECT_EQ(inputs[12].text, "as_memory_format");
}

TEST(ExportedProgramFile, RefusalsSayWhatWasFound) {
  const auto refused = [](const Parts& parts, ErrorCode code, std::string_view part) {
    expect_error([&] { read(parts); }, code, part);
  };
  using enum ErrorCode;
  refused({.version = R"({"major": 9, "minor": 0})"}, unsupported_model, "versions 5 to 8");
  refused({.version = "\"x\""}, bad_input, "schema_version");
  refused({.arguments = "}"}, bad_input, "damaged JSON");
  refused({.arguments = R"({"name": "x"})"}, bad_input, "lacks 'arg'");
  refused({.pickled = "true"}, unsupported_model, "tensor 'conv.weight': holds a pickled tensor");
  refused({.storage = "12"}, bad_input, "tensor 'conv.weight'");
  refused({.storage = raw(0.f)}, bad_input, "outside of its storage");
  refused({.graph_entry = "serialized.json"}, bad_input, "no exported program");
  constexpr std::size_t kDepth = 50;
  std::string deep;
  for (std::size_t i = 0; i < kDepth; ++i) deep += R"({"as_sym_int": )";
  deep += "1" + std::string(kDepth, '}');
  refused({.arguments = R"({"name": "x", "arg": )" + deep + "}"}, bad_input, "nested too deeply");
}

TEST(ExportedProgramFile, DamageIsAnErrorOrHarmless) {
  const TempFolder folder;
  const auto bytes = Parts{.arguments = R"({"name": "a", "arg": {"as_ints": [2, 1]}})"}.bytes();
  expect_every_prefix_fails(folder, bytes, read_exported_program);
  expect_survives_changed_bytes(folder, bytes, read_exported_program);
}

// Before PyTorch 2.8 the weights were a checkpoint inside of the archive.
TEST(ExportedProgramFile, WeightsInACheckpoint) {
  const auto weights = pickled::zip_file(
      pickled::dict({{"conv.weight", pickled::tensor(pickled::storage("FloatStorage", "0", 5), 1,
                                                     {2, 2}, {1, 2})}}),
      {{"0", Parts{}.storage}});
  const auto constants = pickled::zip_file(pickled::dict({}), {});
  const TempFolder folder;
  const auto file = [&](const Entries& entries) { return folder.file("x.pt2", zip_of(entries)); };
  const NamedArrays wanted{{"conv.weight", make_array<float>(DType::f32, {2, 2}, {1, 3, 2, 4})}};
  const auto old =
      read_exported_program(file({{"serialized_exported_program.json", Parts{}.graph()},
                                  {"serialized_state_dict.pt", weights},
                                  {"serialized_constants.pt", constants}}));
  EXPECT_EQ(old.nodes.size(), 1u);
  expect_same(old.tensors, wanted);
  const auto newer = read_exported_program(
      file({{"net/models/model.json", Parts{}.graph()}, {"net/data/weights/model.pt", weights}}));
  expect_same(newer.tensors, wanted);
  const Entries damaged{{"net/models/model.json", Parts{}.graph()},
                        {"net/data/weights/model.pt", weights.substr(0, 100)}};
  expect_error([&] { read_exported_program(file(damaged)); }, ErrorCode::bad_input,
               "holds no zip archive");
}

// The zip archive notices most damage, so the JSON is damaged before it is packed.
TEST(ExportedProgramFile, DamagedJsonIsAnErrorOrHarmless) {
  for (std::size_t i = 0; i < Parts{}.arguments.size(); ++i) {
    Parts parts;
    parts.arguments[i] ^= "\x01\x10\x02"[i % 3];
    try {
      read(parts);
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace zsq::formats::exported_program_test
