// SPDX-License-Identifier: Apache-2.0
#include "formats/exported_program.h"

#include "core/error.h"
#include "formats/exported_json.h"
#include "formats/in_file.h"
#include "formats/json.h"
#include "formats/limits.h"
#include "formats/pickle.h"
#include "formats/pth_state.h"
#include "formats/torch_archive.h"

namespace zsq::formats {
namespace {

using namespace exported;
using nlohmann::json;
using ArgumentKind = ExportedProgram::Argument::Kind;

json parse(const std::string& text, const std::string& entry) {
  auto parsed = parse_json<json>(text);
  if (!parsed.is_object()) fail("its entry '" + entry + "' is damaged JSON");
  return parsed;
}

ExportedProgram::Node node_of(const json& given) {
  ExportedProgram::Node node;
  node.target = text_of(given, "target");
  for (const auto& input : list_of(given, "inputs")) {
    node.inputs.push_back(argument_of(member(input, "arg")));
    node.inputs.back().name = text_of(input, "name");
  }
  for (const auto& output : list_of(given, "outputs")) node.outputs.push_back(argument_of(output));
  if (given.contains("name") && given["name"].is_string()) node.name = given["name"];
  if (node.name.empty() && !node.outputs.empty()) node.name = node.outputs[0].text;
  return node;
}

void read_signature(const json& module, ExportedProgram& program) {
  const auto& signature = member(module, "signature");
  const auto& tensors = member(member(module, "graph"), "tensor_values");
  for (const auto& spec : list_of(signature, "input_specs")) {
    const auto [kind, value] = choice(spec);
    if (kind == "parameter") {
      program.parameters[text_of(member(value, "arg"), "name")] = text_of(value, "parameter_name");
    } else if (kind == "buffer") {
      program.parameters[text_of(member(value, "arg"), "name")] = text_of(value, "buffer_name");
    } else if (kind == "tensor_constant") {
      program.parameters[text_of(member(value, "arg"), "name")] =
          text_of(value, "tensor_constant_name");
    } else if (kind == "user_input") {
      const auto argument = argument_of(member(value, "arg"), 0);
      if (argument.kind != ArgumentKind::tensor) continue;
      ExportedProgram::Input input{argument.text, {}};
      for (const auto& size : list_of(member(tensors, argument.text.c_str()), "sizes"))
        input.shape.push_back(size_of_dimension(size));
      program.inputs.push_back(std::move(input));
    }
  }
  for (const auto& spec : list_of(signature, "output_specs")) {
    const auto [kind, value] = choice(spec);
    if (kind != "user_output") continue;
    const auto argument = argument_of(member(value, "arg"), 0);
    if (argument.kind == ArgumentKind::tensor) program.outputs.push_back(argument.text);
  }
}

void read_graph(const std::string& text, const std::string& entry, ExportedProgram& program) {
  const auto file = parse(text, entry);
  const auto& version = member(file, "schema_version");
  const auto major = version.is_object() ? version.value("major", json()) : version;
  if (!major.is_number_integer()) fail("its schema_version is no number");
  if (const auto number = major.get<std::int64_t>(); number < 5 || number > 8)
    throw Error(ErrorCode::unsupported_model,
                "is an exported program of schema version " + std::to_string(number) +
                    "; versions 5 to 8 are known: save it with PyTorch 2.3 to 2.11");
  if (file.contains("torch_version") && file["torch_version"].is_string())
    program.torch_version = file["torch_version"];
  const auto& module = member(file, "graph_module");
  for (const auto& node : list_of(member(module, "graph"), "nodes"))
    program.nodes.push_back(node_of(node));
  read_signature(module, program);
}

// ScalarType of torch/_export/serde/schema.py.
DType dtype_of(std::int64_t code) {
  constexpr std::pair<std::int64_t, DType> kTypes[] = {
      {1, DType::u8},  {2, DType::i8},  {3, DType::i16}, {4, DType::i32},      {5, DType::i64},
      {6, DType::f16}, {7, DType::f32}, {8, DType::f64}, {12, DType::boolean}, {13, DType::bf16}};
  for (const auto& [known, dtype] : kTypes)
    if (known == code) return dtype;
  throw Error(ErrorCode::unsupported_model,
              "holds a tensor of the data type " + std::to_string(code) + ", which is not known");
}

std::vector<std::int64_t> dimensions(const json& meta, const char* name) {
  std::vector<std::int64_t> sizes;
  for (const auto& size : list_of(meta, name)) sizes.push_back(size_of_dimension(size));
  return sizes;
}

StridedView stored_view(const TorchArchive& archive, const std::string& folder,
                        const json& payload) {
  const auto pickled = payload.find("use_pickle");
  if (pickled != payload.end() && *pickled == true)
    throw Error(ErrorCode::unsupported_model,
                "holds a pickled tensor of a class of its own; plain tensors were expected");
  const auto& meta = member(payload, "tensor_meta");
  const auto code = member(meta, "dtype"), layout = member(meta, "layout");
  if (!code.is_number_integer()) fail("its JSON holds no data type of a tensor");
  if (layout != 7)
    throw Error(ErrorCode::unsupported_model, "holds a tensor that is not dense and strided");
  StridedView view{text_of(payload, "path_name"),
                   dtype_of(code.get<std::int64_t>()),
                   0,
                   size_of_dimension(member(meta, "storage_offset")),
                   dimensions(meta, "sizes"),
                   dimensions(meta, "strides")};
  if (const auto* entry = archive.find(folder + view.storage))
    view.elements = static_cast<std::int64_t>(entry->size / size_of(view.dtype));
  return view;
}

// <folder>/<config> says what tensor each entry beside it is.
void read_tensors(const TorchArchive& archive, const std::string& folder, const std::string& config,
                  ExportedProgram& program) {
  const auto entry = folder + config;
  const auto file = parse(archive.read_text(entry, kMaxProgramJsonBytes), entry);
  NamedViews views;
  const auto& entries = member(file, "config");
  for (const auto& [name, payload] : entries.items()) {
    if (!payload.is_object()) fail("its entry '" + entry + "' is damaged");
    try {
      views.emplace_back(name, stored_view(archive, folder, payload));
    } catch (const Error& error) {
      throw Error(error.code(), "tensor '" + name + "': " + error.what());
    }
  }
  for (auto& one : make_dense(views, archive.storages(folder), archive.zip().file_size()))
    program.tensors.push_back(std::move(one));
}

// Before PyTorch 2.8 the tensors were a checkpoint of torch.save inside of the archive.
void read_checkpoint(const TorchArchive& archive, const std::string& entry,
                     ExportedProgram& program) {
  const TorchArchive inner(ZipArchive(archive.read(entry, archive.zip().file_size())));
  const auto bytes = inner.read("data.pkl", kMaxPickleBytes);
  PickleReader reader(bytes);
  const auto* dict = reader.next();
  NamedViews views;
  for (std::size_t i = 0; dict->is(PickleValue::Kind::dict) && i + 1 < dict->items.size(); i += 2) {
    const auto &name = *dict->items[i], &tensor = *dict->items[i + 1];
    if (!tensor.is(PickleValue::Kind::tensor)) continue;
    add_view(name.text, tensor, views);
  }
  for (auto& one : make_dense(views, inner.storages("data/"), inner.zip().file_size()))
    program.tensors.push_back(std::move(one));
}

// The one graph of a program, and its weights and constants, in the layouts since PyTorch 2.3.
ExportedProgram read(const std::filesystem::path& path) {
  const TorchArchive archive(path);
  if (archive.kind() != TorchArchive::Kind::exported_program) fail("is no exported program");
  std::string graph = "serialized_exported_program.json";
  for (const auto& entry : archive.zip().entries()) {
    const bool is_graph =
        entry.name.starts_with(archive.root() + "models/") && entry.name.ends_with(".json");
    if (!is_graph || archive.root().empty()) continue;
    if (graph.starts_with("models/"))
      throw Error(ErrorCode::unsupported_model, "holds several programs; one was expected");
    graph = entry.name.substr(archive.root().size());
  }
  ExportedProgram program;
  read_graph(archive.read_text(graph, kMaxProgramJsonBytes), graph, program);
  for (const std::string kind : {"weights", "constants"}) {
    const auto folder = "data/" + kind + "/", config = "model_" + kind + "_config.json";
    const std::string old =
        kind == "weights" ? "serialized_state_dict.pt" : "serialized_constants.pt";
    if (archive.find(folder + config)) read_tensors(archive, folder, config, program);
    for (const auto& entry : {folder + "model.pt", old})
      if (archive.find(entry)) read_checkpoint(archive, entry, program);
  }
  return program;
}

}  // namespace

ExportedProgram read_exported_program(const std::filesystem::path& path) {
  return in_file(path, [&] {
    try {
      return read(path);
    } catch (const json::exception& error) {
      throw Error(ErrorCode::bad_input, std::string("its JSON is damaged: ") + error.what());
    }
  });
}

}  // namespace zsq::formats
