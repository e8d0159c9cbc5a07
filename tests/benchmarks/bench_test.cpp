// SPDX-License-Identifier: Apache-2.0
// `zsq bench` as a program meets it. How long anything takes is not asserted.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/benchmarks/networks.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_network.h"

namespace zsq::benchmarks {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Bench : public ::testing::Test {
 protected:
  void SetUp() override { test::save_onnx(small_network(), folder_ / "small.onnx"); }

  int run(const std::string& arguments) const {
    const std::string command = std::string(ZSQ_BINARY " bench ") + arguments +
                                " --rounds 1 --quiet --threads 1 >" + out().string() + " 2>" +
                                (folder_ / "err").string() + " </dev/null";
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  fs::path out() const { return folder_ / "out"; }
  json result(const std::string& arguments) const {
    EXPECT_EQ(run(arguments + " --format json"), 0) << arguments << "\n"
                                                    << std::ifstream(folder_ / "err").rdbuf();
    return json::parse(std::ifstream(out()), nullptr, /*allow_exceptions=*/false);
  }
  std::string model() const { return (folder_ / "small.onnx").string(); }

  test::TempFolder folder_;
};

void expect_times(const json& seconds) {
  EXPECT_GT(seconds.at("min").get<double>(), 0);
  EXPECT_GE(seconds.at("median").get<double>(), seconds.at("min").get<double>());
}

void expect_machine(const json& report) {
  const json& machine = report.at("machine");
  EXPECT_EQ(machine.at("device"), "cpu");
  EXPECT_EQ(machine.at("threads"), 1);
  for (const char* size : {"cached", "large"})
    EXPECT_GT(machine.at("copy_bytes_per_second").at(size).get<double>(), 0);
  for (const char* type : {"fp32", "bf16"})
    EXPECT_GT(machine.at("gemm_flops_per_second").at(type).get<double>(), 0);
  // Twice the cache, if that is no more than 512 MiB and 1/64 of the memory.
  const std::int64_t memory = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  const auto most =
      std::max(std::min(memory / 64, std::int64_t{512} << 20), std::int64_t{64} << 20);
  EXPECT_GE(machine.at("tensor_bytes").at("large").get<std::int64_t>(),
            std::min(2 * machine.at("last_level_cache_bytes").get<std::int64_t>(), most));
}

TEST_F(Bench, AStepHasItsPartsAndTheirWork) {
  const json report = result(model() + " --phase train_step --batch 4");
  expect_machine(report);
  EXPECT_FALSE(report.contains("kernels"));
  EXPECT_EQ(report.at("model"), model());
  EXPECT_EQ(report.at("scheme"), "W4A4");
  EXPECT_EQ(report.at("batch"), 4);
  EXPECT_EQ(report.at("layers"), 3);
  EXPECT_GT(report.at("step_seconds").get<double>(), 0);
  EXPECT_FALSE(report.at("recorded").get<bool>());  // on a GPU alone
  EXPECT_GE(report.at("memory_peak_bytes"), report.at("memory_before_bytes"));

  constexpr double kImage = 2 * 4;  // FLOPs per multiply-accumulate, images
  constexpr double kNetwork = kConv1 + kConv2 + kFc;
  const std::vector<std::pair<std::string, double>> expected{
      {"generator_forward", kImage * kGenerator},
      {"teacher_forward", kImage * kNetwork},
      {"teacher_backward", kImage * kNetwork},
      {"generator_backward", kImage * 2 * kGenerator},
      {"generator_update", 0},
      {"student_forward", kImage * kNetwork},
      {"student_backward", kImage * (kNetwork + kConv2 + kFc)},
      {"student_update", 0}};
  double flops = 0, least = 0;
  ASSERT_EQ(report.at("parts").size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const json& part = report["parts"][i];
    EXPECT_EQ(part.at("name"), expected[i].first);
    EXPECT_EQ(part.at("flops"), expected[i].second) << expected[i].first;
    EXPECT_EQ(part.at("precision"), "fp32");
    expect_times(part.at("seconds"));
    flops += expected[i].second;
    least += part["seconds"]["min"].get<double>();
  }
  EXPECT_EQ(report.at("flops"), flops);
  // The parts are the step: in one round, all of it but what lies between them.
  EXPECT_LE(least, report.at("step_seconds_min").get<double>());
}

TEST_F(Bench, EveryKernelOnBothSizes) {
  const json report = result("--phase kernels");
  expect_machine(report);
  EXPECT_FALSE(report.contains("step_seconds"));
  std::map<std::string, int> times;
  for (const json& kernel : report.at("kernels")) {
    ++times[kernel.at("name").get<std::string>() + " " + kernel.at("pass").get<std::string>()];
    expect_times(kernel.at("seconds"));
    EXPECT_GT(kernel.at("share_of_copy").get<double>(), 0);
    EXPECT_GE(kernel.at("moved_bytes"), kernel.at("tensor_bytes"));
    EXPECT_EQ(kernel.at("over_fused_sgd").is_number(), kernel["name"] == "inundation");
    EXPECT_EQ(kernel.at("over_foreach_sgd").is_number(), kernel["name"] == "inundation");
  }
  const std::map<std::string, int> expected{
      {"bn_clip_fake_quant forward", 4}, {"bn_clip_fake_quant backward", 8},
      {"bn_clip_moments forward", 4},    {"bn_clip_moments backward", 4},
      {"bn_leaky_relu forward", 4},      {"bn_leaky_relu backward", 4},
      {"channel_moments forward", 4},    {"channel_moments backward", 4},
      {"fake_quant forward", 6},         {"fake_quant backward", 10},
      {"kl_divergence forward", 2},      {"kl_divergence backward", 2},
      {"fake_quant_layers forward", 4},  {"fake_quant_layers backward", 4},
      {"weight_range forward", 2},       {"inundation step", 4},
      {"sgd_nesterov step", 8}};
  EXPECT_EQ(times, expected);
}

TEST_F(Bench, ASweepGrowsWithItsValues) {
  const json report = result(model() + " --sweep batch --values 2,6");
  expect_machine(report);
  EXPECT_EQ(report.at("sweep"), "batch");
  ASSERT_EQ(report.at("rows").size(), 2u);
  EXPECT_EQ(report["rows"][1].at("value"), 6);
  EXPECT_EQ(report["rows"][1].at("batch"), 6);
  EXPECT_EQ(3 * report["rows"][0].at("flops").get<std::int64_t>(),
            report["rows"][1].at("flops").get<std::int64_t>());
  const json image = result(model() + " --sweep image --values 8,16 --batch 2");
  EXPECT_EQ(image["rows"][0].at("image_size"), 8);
  const json depth = result("--sweep depth --values 8,14 --image_size 8 --batch 2");
  EXPECT_EQ(depth["rows"][0].at("layers"), 8 + 2);  // and the projections
  EXPECT_EQ(depth["rows"][1].at("layers"), 14 + 2);
}

TEST_F(Bench, PrintsTables) {
  EXPECT_EQ(run(model() + " --batch 2 --phase train_step"), 0);
  std::stringstream text;
  text << std::ifstream(out()).rdbuf();
  for (const char* part : {"GFLOP/s in bf16", "teacher_backward", "peak memory"})
    EXPECT_NE(text.str().find(part), std::string::npos) << text.str();
}

TEST_F(Bench, RefusesWhatItCannotMeasure) {
  EXPECT_EQ(run("--phase everything"), 2);
  EXPECT_EQ(run("--sweep height"), 2);
  EXPECT_EQ(run("--values 2,4"), 2);
  EXPECT_EQ(run("--sweep batch --values 2,x"), 2);
  EXPECT_EQ(run("--sweep depth --values 9"), 2);
  EXPECT_EQ(run("--sweep width " + model()), 2);
  EXPECT_EQ(run("--arch resnet21"), 2);
  EXPECT_EQ(run((folder_ / "none.onnx").string()), 2);
}

}  // namespace
}  // namespace zsq::benchmarks
