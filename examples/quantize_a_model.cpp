// SPDX-License-Identifier: Apache-2.0
// The library in one page: a trained CNN file in, a quantized model out, with progress and errors.
//   quantize_a_model MODEL.onnx OUTPUT_FOLDER [SCHEME [SETTING=VALUE...]]
// For example: quantize_a_model resnet18.onnx out W4A4 finetune.iterations=500 process.seed=1
#include <zsq/pipeline/quantize.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

// Watches the job: zsq never prints.
class Printer : public zsq::Observer {
 public:
  void on_progress(const zsq::Progress& progress) override {
    if (progress.step != progress.total) return;
    std::printf("%s: %lld steps", progress.phase.c_str(), static_cast<long long>(progress.total));
    for (const auto& [name, value] : progress.metrics)
      std::printf(", %s %.3g", name.c_str(), value);
    std::printf("\n");
  }
  void on_message(zsq::LogLevel, const std::string& message) override {
    std::printf("%s\n", message.c_str());
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::printf("usage: quantize_a_model MODEL.onnx OUTPUT_FOLDER [SCHEME [SETTING=VALUE...]]\n");
    return 2;
  }
  try {
    zsq::QuantizeOptions options;
    if (argc > 3) options.scheme = zsq::Scheme::parse(argv[3]);
    options.recipe = zsq::load_recipe(
        "deploy_cpu", std::vector<std::string>(argv + std::min(argc, 4), argv + argc));
    Printer printer;
    const zsq::QuantizeReport report = zsq::quantize(argv[1], options, argv[2], &printer);

    std::printf("%s: %lld kB -> %lld kB\n", report.scheme.c_str(),
                static_cast<long long>(report.fp32_bytes / 1000),
                static_cast<long long>(report.quantized_bytes / 1000));
    if (report.agreement)
      std::printf("agrees with the original on %.1f %% of synthetic images\n",
                  100 * *report.agreement);
    for (const auto& file : report.files) std::printf("%s\n", file.c_str());
    return 0;
  } catch (const zsq::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return zsq::exit_code(error.code());
  }
}
