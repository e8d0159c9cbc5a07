// SPDX-License-Identifier: Apache-2.0
// A finished run in the runtimes of a Python, and what is said where that fails.
#include "pipeline/check.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "formats/onnx.h"
#include "pipeline/quantize.h"
#include "pipeline/report/json.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_network.h"

namespace zsq {
namespace {

namespace fs = std::filesystem;

const fs::path kPython = fs::path(ZSQ_SOURCE_DIR) / ".deps/python/bin/python";

class Check : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::TempFolder;
    setenv("ZSQ_CACHE", (*folder_ / "cache").c_str(), 1);
    fs::create_directory(temporary());
    setenv("TMPDIR", temporary().c_str(), 1);
    const auto network = test::train_tiny_network(0);
    test::save_onnx(network.model, *folder_ / "tiny.onnx");
    test::save_npz(network.test, *folder_ / "tiny.npz");
    QuantizeOptions options;
    options.scheme = Scheme::parse("W4A4");
    options.recipe = load_recipe(
        "instant", {"data.preset=cifar10", "process.threads=1", "process.agreement_images=16"});
    quantize(*folder_ / "tiny.onnx", options, run());
  }
  static void TearDownTestSuite() {
    unsetenv("ZSQ_CACHE");
    unsetenv("TMPDIR");
    delete folder_;
  }
  // Whatever happened, nothing is left behind.
  void TearDown() override { EXPECT_TRUE(fs::is_empty(temporary())); }

  static fs::path run() { return *folder_ / "run"; }
  static fs::path temporary() { return *folder_ / "temporary"; }
  static fs::path copy_of_run(const std::string& name) {
    fs::copy(run(), *folder_ / name, fs::copy_options::recursive);
    return *folder_ / name;
  }
  static CheckOptions options(const fs::path& python = kPython) {
    CheckOptions options;
    options.images = 20;
    options.python = python;
    options.latency = false;
    return options;
  }
  // A shell script in the place of Python.
  static CheckOptions with_program(const std::string& name, const std::string& lines) {
    const fs::path path = folder_->file(name, "#!/bin/sh\n" + lines + "\n");
    ::chmod(path.c_str(), 0755);
    return options(path);
  }
  static void expect_error(ErrorCode code, const CheckOptions& options,
                           std::initializer_list<std::string> parts) {
    try {
      check_run(run(), options);
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      for (const std::string& part : parts)
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
  static const RuntimeCheck& row(const CheckReport& report, const std::string& runtime) {
    for (const RuntimeCheck& row : report.rows)
      if (row.runtime == runtime) return row;
    throw std::runtime_error("no row of " + runtime);
  }

  static test::TempFolder* folder_;
};
test::TempFolder* Check::folder_ = nullptr;

#define SKIP_WITHOUT_PYTHON() \
  if (!fs::exists(kPython)) GTEST_SKIP() << kPython << ": run scripts/install_deps.sh"

// One byte: the largest weight of the first convolution becomes 0, so that no sum saturates.
void change_a_weight(const fs::path& file) {
  formats::onnx::Model model = formats::onnx::read(file);
  for (auto& [name, array] : model.graph.initializers)
    if (array.dtype == formats::DType::i8 && array.shape.size() == 4) {
      *std::ranges::max_element(array.data, {}, [](std::byte code) {
        return std::abs(std::to_integer<int>(code) - (code < std::byte{128} ? 0 : 256));
      }) = std::byte{0};
      return formats::onnx::write(file, model);
    }
  FAIL() << "no weights in " << file;
}

TEST_F(Check, TheRuntimeComputesWhatTheRunMeasured) {
  SKIP_WITHOUT_PYTHON();
  CheckOptions with_latency = options();
  with_latency.latency = true;
  const CheckReport report = check_run(run(), with_latency);
  std::cout << to_json(report) << "\n";
  EXPECT_TRUE(report.equal);
  EXPECT_EQ(report.images, 20);
  EXPECT_EQ(report.images_kind, "synthetic");
  EXPECT_EQ(report.compared_with, "model.safetensors");
  EXPECT_TRUE(report.unchanged);
  EXPECT_GT(report.step, 0);
  const RuntimeCheck& own = row(report, "onnxruntime");
  EXPECT_TRUE(own.decides);
  EXPECT_TRUE(own.equal);
  EXPECT_EQ(own.agreement, 1);
  EXPECT_FALSE(own.version.empty());
  EXPECT_GT(own.ms, 0);
  EXPECT_GT(own.float_ms, 0);
  ASSERT_EQ(report.verdict.size(), 1u);
  EXPECT_EQ(report.verdict[0].find("onnxruntime " + own.version + " on this processor ("), 0u);
  EXPECT_NE(report.verdict[0].find(
                " computes what zsq measured of model.onnx: the same class on 20 of 20 images"),
            std::string::npos)
      << report.verdict[0];
  EXPECT_NE(report.fastest.find(" is the fastest here"), std::string::npos);
  const auto json = pipeline::Json::parse(to_json(report));
  EXPECT_EQ(json["equal"], true);
  EXPECT_EQ(json["rows"][0]["file"], "model.onnx");
}

TEST_F(Check, RealImagesArePreparedAsTheRunRecords) {
  SKIP_WITHOUT_PYTHON();
  CheckOptions real = options();
  real.data.eval_data = *folder_ / "tiny.npz";
  const CheckReport report = check_run(run(), real);
  EXPECT_TRUE(report.equal) << to_json(report);
  EXPECT_EQ(report.images_kind, "real");
  EXPECT_EQ(report.rows[0].ms, 0);
  EXPECT_EQ(report.fastest, "");
}

TEST_F(Check, AChangedWeightIsFound) {
  SKIP_WITHOUT_PYTHON();
  const fs::path copy = copy_of_run("changed");
  change_a_weight(copy / "model.onnx");
  const CheckReport report = check_run(copy, options());
  std::cout << report.verdict.at(0) << "\n";
  EXPECT_FALSE(report.equal) << to_json(report);
  EXPECT_FALSE(report.unchanged);
  EXPECT_FALSE(row(report, "onnxruntime").equal);
  EXPECT_NE(report.verdict.at(0).find(" does not compute what zsq measured of model.onnx"),
            std::string::npos);
}

struct Warnings : Observer {
  void on_message(LogLevel level, const std::string& message) override {
    if (level == LogLevel::warning) all += message + "\n";
  }
  std::string all;
};

// Its structure is needed to know what the file should hold.
TEST_F(Check, WithoutTheFloatNetworkTheFileIsComparedWithItself) {
  SKIP_WITHOUT_PYTHON();
  const fs::path copy = copy_of_run("alone"), moved = *folder_ / "moved.onnx";
  fs::rename(*folder_ / "tiny.onnx", moved);
  Warnings warnings;
  const CheckReport alone = check_run(copy, options(), &warnings);
  CheckOptions named = options();
  named.model = moved;
  const CheckReport found = check_run(copy, named);
  fs::rename(moved, *folder_ / "tiny.onnx");
  EXPECT_EQ(alone.compared_with, "model.onnx");
  EXPECT_FALSE(alone.unchanged);
  EXPECT_TRUE(alone.equal) << to_json(alone);
  EXPECT_NE(warnings.all.find("does not show whether that file has changed"), std::string::npos)
      << warnings.all;
  EXPECT_EQ(found.compared_with, "model.safetensors");
  EXPECT_TRUE(found.equal) << to_json(found);
}

// The file ends in an operator that zsq does not compute.
fs::path add_top_k(const fs::path& file, const fs::path& to) {
  formats::onnx::Model model = formats::onnx::read(file);
  model.graph.initializers.emplace_back(
      "k",
      formats::Array::from<std::int64_t>(formats::DType::i64, {1}, std::vector<std::int64_t>{3}));
  model.graph.nodes.push_back({"top", "TopK", "", {"logits", "k"}, {"scores", "classes"}, {}});
  const auto shape = std::vector<formats::onnx::Dimension>{{-1, "N"}, {3, ""}};
  model.graph.outputs = {{"scores", 1, shape}, {"classes", 7, shape}};
  formats::onnx::write(to, model);
  return to;
}

TEST_F(Check, WhatTheEndOfTheNetworkReadsIsCompared) {
  SKIP_WITHOUT_PYTHON();
  QuantizeOptions quantizing;
  quantizing.scheme = Scheme::parse("W8A8");
  quantizing.recipe = load_recipe(
      "instant", {"data.preset=cifar10", "process.threads=1", "process.agreement_images=16"});
  const fs::path top_k = *folder_ / "top_k";
  quantize(add_top_k(*folder_ / "tiny.onnx", *folder_ / "top_k.onnx"), quantizing, top_k);
  const CheckReport report = check_run(top_k, options());
  EXPECT_EQ(report.not_compared, "TopK");
  EXPECT_EQ(report.outputs, test::kShapeClasses);
  EXPECT_TRUE(report.unchanged);
  EXPECT_TRUE(report.equal) << to_json(report);
  change_a_weight(top_k / "model.onnx");
  EXPECT_FALSE(check_run(top_k, options()).equal);
}

TEST_F(Check, AFileThatARuntimeRefusesIsNamedWithItsWords) {
  SKIP_WITHOUT_PYTHON();
  const fs::path copy = copy_of_run("damaged");
  fs::resize_file(copy / "model.onnx", fs::file_size(copy / "model.onnx") / 2);
  const CheckReport report = check_run(copy, options());
  EXPECT_FALSE(report.equal);
  EXPECT_NE(report.verdict.at(0).find(" does not run model.onnx: "), std::string::npos);
  EXPECT_NE(row(report, "onnxruntime").error.find("exit code 1"), std::string::npos);
}

TEST_F(Check, APythonThatFailsIsQuoted) {
  expect_error(ErrorCode::bad_input,
               with_program("fails", "echo first >&2; echo 'no such module' >&2; exit 7"),
               {"fails' ended with exit code 7:", "first\nno such module"});
  expect_error(
      ErrorCode::bad_input,
      with_program("talks",
                   "i=0; while [ $i -lt 999 ]; do echo line $i >&2; i=$((i+1)); done; exit 1"),
      {"exit code 1:\n...\n", "line 998"});
  expect_error(ErrorCode::bad_input, with_program("garbage", "echo '{]'"),
               {"garbage' ended with exit code 0 and without a result"});
  expect_error(ErrorCode::bad_input,
               with_program("half", R"(echo '{"python"' > "${3%job.json}result.json")"),
               {"without a result"});
  CheckOptions hangs = with_program("hangs", "exec sleep 60");
  hangs.timeout = 0.2;
  expect_error(ErrorCode::bad_input, hangs, {"gave no result within 0.2 s", "--timeout"});
}

TEST_F(Check, WithoutARuntimeItSaysWhatToInstall) {
  const CheckOptions bare = with_program(
      "bare", R"(echo '{"python": "3", "runtimes": {"ncnn": "1"}}' > "${3%job.json}result.json")");
  expect_error(ErrorCode::usage, bare,
               {"no runtime is found that can run model.onnx", "looked for onnxruntime, openvino",
                bare.python.string() + " -m pip install onnxruntime", "--python", "ZSQ_PYTHON"});
  expect_error(ErrorCode::usage, options("/no/such/python"),
               {"--python: '/no/such/python' is no program"});
  setenv("ZSQ_PYTHON", bare.python.c_str(), 1);
  expect_error(ErrorCode::usage, options(""), {"in " + bare.python.string() + "."});
  unsetenv("ZSQ_PYTHON");
}

// Files of other targets, of which no runtime is there, do not stop the others.
TEST_F(Check, EachFileNeedsItsRuntime) {
  SKIP_WITHOUT_PYTHON();
  const fs::path copy = copy_of_run("files");
  fs::copy(copy / "model.onnx", copy / "model.openvino.onnx");
  const CheckReport report = check_run(copy, options());
  std::size_t files = 0;
  for (const RuntimeCheck& row : report.rows) files += row.file == "model.openvino.onnx";
  EXPECT_LE(files, 1u);
  fs::remove(copy / "model.onnx");
  fs::remove(copy / "model.openvino.onnx");
  EXPECT_THROW(check_run(copy, options()), Error);
}

TEST_F(Check, StopsWhenAsked) {
  struct Stops : Observer {
    bool stop_requested() override { return true; }
  } stops;
  const CheckOptions hangs = with_program("waits", "exec sleep 60");
  try {
    check_run(run(), hangs, &stops);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::stopped);
  }
}

}  // namespace
}  // namespace zsq
