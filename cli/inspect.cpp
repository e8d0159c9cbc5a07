// SPDX-License-Identifier: Apache-2.0
#include "pipeline/inspect.h"

#include <cstdio>
#include <iostream>

#include "cli/console.h"
#include "cli/doctor.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "pipeline/report/output_words.h"
#include "pipeline/scheme.h"
#include "pipeline/sensitivity.h"

namespace zsq::cli {
namespace {

std::string shape_text(const std::vector<std::int64_t>& shape, std::size_t first) {
  std::string text;
  for (std::size_t i = first; i < shape.size(); ++i) {
    if (i > first) text += 'x';
    text += std::to_string(shape[i]);
  }
  return text;
}

std::string bits_text(const InspectLayer& layer) {
  if (layer.weight_bits == 0) return "";
  if (layer.activation_bits > 0) return Scheme{layer.weight_bits, layer.activation_bits}.name();
  return std::to_string(layer.weight_bits) + "-bit weights, float input";
}

void print_report(const InspectReport& r) {
  std::printf("%-36s %-20s %14s %10s %12s  %s\n", "layer", "operator", "output", "parameters",
              "MACs", "quantized to");
  for (const InspectLayer& layer : r.layers)
    std::printf("%-36s %-20s %14s %10lld %12lld  %s\n", layer.name.c_str(), layer.op.c_str(),
                shape_text(layer.shape, 1).c_str(), static_cast<long long>(layer.parameters),
                static_cast<long long>(layer.macs), bits_text(layer).c_str());
  std::printf("\nmodel       %s (%s%s%s)\n", r.model.c_str(), r.format.c_str(),
              r.producer.empty() ? "" : ", by ", r.producer.c_str());
  std::printf("input       %s, %s\n", shape_text(r.input_shape, 0).c_str(),
              pipeline::outputs_in_words(r.output_kind, r.classes).c_str());
  std::printf("parameters  %lld, %.1f million MACs per image\n",
              static_cast<long long>(r.parameters), static_cast<double>(r.macs) / 1e6);
  std::printf("BatchNorm   %s: %s\n", r.batch_norm.c_str(), r.explanation.c_str());
  for (const std::string& note : r.notes) std::printf("note        %s\n", note.c_str());
  if (r.quantizable) {
    std::string floats;
    for (const std::string& name : r.float_tensors) floats += (floats.empty() ? "" : ", ") + name;
    std::printf("stays float %s\n", floats.empty() ? "nothing" : floats.c_str());
  }
}

void print_sensitivities(const std::map<std::int64_t, double>& sensitivities) {
  for (const auto& [bits, sensitivity] : sensitivities) std::printf(" %9.3g", sensitivity);
}

void print_sensitivity(const SensitivityReport& r) {
  if (r.layers.empty()) return;
  const auto& columns = r.layers.front().weight_sensitivity;
  std::printf(
      "KL to the float model's predictions, nats per image, with one layer's weights (W) or input "
      "(A) "
      "quantized alone;\n%lld synthetic images, by falling sensitivity at W%lldA%lld\n\n",
      static_cast<long long>(r.images), static_cast<long long>(r.weight_bits),
      static_cast<long long>(r.activation_bits));
  std::printf("%-36s %10s %12s", "layer", "weights", "MACs");
  for (const char* what : {"W", "A"})
    for (const auto& [bits, sensitivity] : columns)
      std::printf(" %9s", (what + std::to_string(bits)).c_str());
  std::printf("\n");
  for (const SensitivityRow& row : r.layers) {
    std::printf("%-36s %10lld %12lld", row.name.c_str(), static_cast<long long>(row.weights),
                static_cast<long long>(row.macs));
    print_sensitivities(row.weight_sensitivity);
    print_sensitivities(row.input_sensitivity);
    std::printf("\n");
  }
}

void print_architectures() {
  std::printf("%-26s %-22s %11s %6s  %-34s %s\n", "name", "also", "parameters", "pixels", "paper",
              "state dicts of");
  for (const ArchitectureRow& row : architectures())
    std::printf("%-26s %-22s %11lld %6lld  %-34s %s\n", row.name.c_str(), row.also.c_str(),
                static_cast<long long>(row.parameters), static_cast<long long>(row.image_size),
                row.paper.c_str(), row.implementations.c_str());
}

void print_operators() {
  const Operators lists = operators();
  std::printf("ONNX, opsets %lld to %lld\n", static_cast<long long>(lists.first_opset),
              static_cast<long long>(lists.last_opset));
  const auto print = [](const std::vector<std::string>& names) {
    for (const std::string& name : names) std::printf("  %s\n", name.c_str());
  };
  print(lists.onnx);
  std::printf("ONNX, on constants and sizes\n");
  print(lists.onnx_constants);
  std::printf("TorchScript and .pt2\n");
  print(lists.aten);
}

}  // namespace

int inspect(const Arguments& arguments) {
  Flags flags(
      "zsq inspect MODEL",
      "Layers, shapes, parameters, MACs, what BatchNorm allows, and the bits that each layer\n"
      "would have in a student by the recipe.");
  flags.positional("model", 1);
  flags.toggle("doctor", "what became of BatchNorm on export, and the line that keeps it");
  flags.toggle(
      "list_archs",
      "the built-in architectures that --arch names, with parameters, image size and sources");
  flags.toggle("list_operators", "the operators that are read of networks in files");
  flags.text("scheme", "WxAy", "bits of weights and activations (W4A4, 4w4a)");
  flags.text("recipe", "NAME|FILE", "recipe of the student (default: deploy)");
  flags.toggle("sensitivity",
               "per-layer bit-width sensitivity: KL with one layer quantized, layers ranked");
  flags.preprocessing();
  flags.common();
  if (!flags.parse(arguments)) return 0;

  const bool json = flags.json();
  if (flags.on("sensitivity")) {
    Console console(flags);
    const SensitivityReport report =
        sensitivity(flags.required("model", "MODEL"), flags.recipe(), &console);
    json ? void(std::cout << to_json(report) << "\n") : print_sensitivity(report);
    return 0;
  }
  if (flags.on("list_archs")) {
    json ? void(std::cout << to_json(architectures()) << "\n") : print_architectures();
    return 0;
  }
  if (flags.on("list_operators")) {
    json ? void(std::cout << to_json(operators()) << "\n") : print_operators();
    return 0;
  }
  if (flags.on("doctor")) {
    const DoctorReport found = examine(flags.required("model", "MODEL"), flags.recipe().model);
    json ? void(std::cout << to_json(found) << "\n") : print_doctor(found);
    return 0;
  }
  const InspectReport report = zsq::inspect(flags.required("model", "MODEL"), flags.recipe());
  if (json)
    std::cout << to_json(report) << "\n";
  else
    print_report(report);
  return 0;
}

}  // namespace zsq::cli
