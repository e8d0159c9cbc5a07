// SPDX-License-Identifier: Apache-2.0
#include "pipeline/bench.h"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <sstream>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "core/choice.h"

namespace zsq::cli {
namespace {

std::string megabytes(std::int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

void print_machine(const MachinePeaks& m) {
  std::printf("machine  %s, %lld threads", m.device.c_str(), static_cast<long long>(m.threads));
  if (m.cache_bytes > 0) std::printf(", last-level cache %s", megabytes(m.cache_bytes).c_str());
  std::printf("\ncopy     %.1f GB/s of a tensor of %s, %.1f GB/s of one of %s (read and written)\n",
              m.copy_large / 1e9, megabytes(m.large_bytes).c_str(), m.copy_cached / 1e9,
              megabytes(m.cached_bytes).c_str());
  std::printf("matrix   %.1f GFLOP/s in fp32, %.1f GFLOP/s in bf16\n", m.gemm_fp32 / 1e9,
              m.gemm_bf16 / 1e9);
}

void print_kernels(const std::vector<KernelTime>& kernels) {
  std::printf("\n%-20s %-16s %-9s %-9s %10s %10s %10s %10s %8s %8s\n", "kernel", "variant", "pass",
              "precision", "tensor", "moved", "min ms", "median ms", "GB/s", "of copy");
  for (const KernelTime& k : kernels)
    std::printf("%-20s %-16s %-9s %-9s %10s %10s %10.3f %10.3f %8.1f %6.0f %%\n", k.name.c_str(),
                k.variant.c_str(), k.pass.c_str(), k.precision.c_str(),
                megabytes(k.tensor_bytes).c_str(), megabytes(k.moved_bytes).c_str(),
                1e3 * k.seconds.min, 1e3 * k.seconds.median,
                static_cast<double>(k.moved_bytes) / k.seconds.min / 1e9, 100 * k.share_of_copy);
  for (const KernelTime& k : kernels)
    if (k.over_fused_sgd && k.over_foreach_sgd)
      std::printf(
          "inundation of %s%s%s takes %.2f times a fused SGD-Nesterov step, %.2f times an "
          "elementwise one\n",
          megabytes(k.tensor_bytes).c_str(), k.variant.empty() ? "" : " of ", k.variant.c_str(),
          *k.over_fused_sgd, *k.over_foreach_sgd);
}

void print_step(const StepReport& s, const MachinePeaks& machine) {
  std::printf("\ntraining step of %s: %s, batch %lld, %lld x %lld pixels\n", s.model.c_str(),
              s.scheme.c_str(), static_cast<long long>(s.batch),
              static_cast<long long>(s.image_size), static_cast<long long>(s.image_size));
  std::printf("%-20s %-9s %10s %10s %10s %10s %8s\n", "part", "precision", "min ms", "median ms",
              "GFLOP", "GFLOP/s", "of peak");
  for (const PartTime& part : s.parts) {
    std::printf("%-20s %-9s %10.2f %10.2f", part.name.c_str(), part.precision.c_str(),
                1e3 * part.seconds.min, 1e3 * part.seconds.median);
    if (part.flops > 0)
      std::printf(" %10.3f %10.1f %6.0f %%", part.flops / 1e9, part.flops / part.seconds.min / 1e9,
                  100 * part.share_of_peak);
    std::printf("\n");
  }
  std::printf("%-20s %-9s %10.2f %10.2f %10.3f %10.1f\n", s.recorded ? "step, recorded" : "step",
              "", 1e3 * s.seconds.min, 1e3 * s.seconds.median, s.flops / 1e9,
              s.flops / s.seconds.min / 1e9);
  std::printf("peak memory %s, %s before (%s)\n", megabytes(s.memory_peak).c_str(),
              megabytes(s.memory_before).c_str(),
              machine.device == "cpu" ? "resident, whole process" : "tensors on the device");
}

void print_growth(const BenchReport& report, Growth sweep) {
  const std::string over(enum_name(sweep));
  const StepReport& first = report.growth.front().step;
  std::printf(
      "\ntraining step of %s, %s%s\n",
      sweep == Growth::width || sweep == Growth::depth ? "CIFAR ResNets" : first.model.c_str(),
      first.scheme.c_str(),
      sweep == Growth::batch ? "" : (", batch " + std::to_string(first.batch)).c_str());
  std::printf("%8s %8s %12s %10s %10s %10s %10s %12s %12s\n", over.c_str(), "layers", "parameters",
              "min ms", "median ms", "GFLOP", "GFLOP/s", "ms per image", "peak memory");
  for (const GrowthRow& row : report.growth) {
    const StepReport& s = row.step;
    std::printf("%8lld %8lld %12lld %10.2f %10.2f %10.3f %10.1f %12.3f %12s\n",
                static_cast<long long>(row.value), static_cast<long long>(s.layers),
                static_cast<long long>(s.parameters), 1e3 * s.seconds.min, 1e3 * s.seconds.median,
                s.flops / 1e9, s.flops / s.seconds.min / 1e9,
                1e3 * s.seconds.min / static_cast<double>(s.batch),
                megabytes(s.memory_peak).c_str());
  }
}

std::vector<std::int64_t> parse_values(const std::string& text) {
  std::vector<std::int64_t> values;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) {
    if (word.empty() || word.size() > 9 ||
        word.find_first_not_of("0123456789") != std::string::npos)
      throw Error(ErrorCode::usage, "--values: '" + word +
                                        "' is not a whole number; expected "
                                        "something like 16,32,64");
    values.push_back(std::stoll(word));
  }
  return values;
}

void choose_phase(const std::string& phase, BenchOptions& options) {
  const std::vector<std::string> known{"all", "machine", "kernels", "train_step"};
  if (std::find(known.begin(), known.end(), phase) == known.end())
    throw Error(ErrorCode::usage, "--phase: " + unknown_name_message("phase", phase, known));
  options.kernels = phase == "all" || phase == "kernels";
  options.train_step = phase == "all" || phase == "train_step";
}

}  // namespace

int bench(const Arguments& arguments) {
  Flags flags("zsq bench [MODEL]",
              "Measures copy bandwidth and matrix product of this machine, then every kernel and "
              "the parts\n"
              "of a training step of MODEL against them; or, with --sweep, how a step grows. "
              "Without MODEL\n"
              "the network is built in (--arch, default resnet20_cifar10), with random weights.");
  flags.positional("model", 1);
  flags.text("phase", "PHASE", "all (default), machine, kernels or train_step");
  flags.setting("batch", "N", "images per training step", "finetune.batch_size");
  flags.text("rounds", "N", "times that each thing is timed, interleaved (default: 5)");
  flags.text("sweep", "WHAT",
             "time and memory of a step against batch, image, width or depth; the last two build "
             "CIFAR ResNets");
  flags.text("values", "N,N,...", "what the sweep goes through");
  flags.text("scheme", "WxAy", "bits of weights and activations (W4A4, 4w4a)");
  flags.text("recipe", "NAME|FILE", "recipe of the student (default: deploy)");
  flags.texts("set", "KEY=VALUE", "one recipe setting; may be given many times");
  flags.setting("seed", "N", "fixes weights and draws", "process.seed");
  flags.common();
  if (!flags.parse(arguments)) return 0;

  const bool json = flags.json();
  BenchOptions options;
  if (flags.has("model")) options.model = flags.required("model", "MODEL");
  options.recipe = flags.recipe();
  const double rounds = flags.number("rounds", 5);
  if (!(rounds >= 1 && rounds <= 1e6))
    throw Error(ErrorCode::usage, "--rounds: expected 1 to 1e6, not " + flags.get("rounds"));
  options.rounds = static_cast<std::int64_t>(rounds);
  choose_phase(flags.has("phase") ? flags.get("phase") : "all", options);
  if (flags.has("sweep"))
    options.sweep = choice<Growth>("quantity", flags.get("sweep"), "--sweep: ");
  if (flags.has("values")) options.values = parse_values(flags.get("values"));
  Console console(flags);
  const BenchReport report = zsq::bench(options, &console);
  if (json) {
    std::cout << to_json(report);
    return 0;
  }
  print_machine(report.machine);
  if (!report.kernels.empty()) print_kernels(report.kernels);
  if (report.step) print_step(*report.step, report.machine);
  if (report.sweep) print_growth(report, *report.sweep);
  return 0;
}

}  // namespace zsq::cli
