// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "pipeline/run/plan.h"
#include "pipeline/run/prepare.h"
#include "pipeline/run/stages/calibrate.h"
#include "tests/support/quantized.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_network.h"

namespace zsq::pipeline {

// gtest has a Run of its own.
using TheRun = pipeline::Run;

// A run on a trained network whose student has 3 bits, so that there is something to gain.
class PlanTest : public testing::Test {
 protected:
  PlanTest() {
    static const models::Model network = test::train_tiny_network(0).model;
    test::save_onnx(network, folder_ / "shapes.onnx");
    options_.scheme = Scheme::parse("W3A3");
    options_.recipe = load_recipe("auto", {"data.preset=cifar10", "process.threads=1"});
  }

  TheRun make_run() {
    TheRun run = prepare(folder_ / "shapes.onnx", options_, folder_ / "out", silent_);
    run.output.open("tiny", true, silent_);
    run.held_out =
        held_out_images(run.teacher, run.sha256, run.recipe, HeldOutUse::choices, {}, silent_);
    return run;
  }

  static Stage calibration(const TheRun& run) {
    return {"calibration", {}, [&run](quant::Student& student, RunState&, const PartDone&) {
              calibrate(run, student);
            }};
  }
  // Multiplies all activation scales: by 1 nothing changes, by a lot the student is ruined.
  static Stage scaling(const char* name, double factor) {
    return {name, {}, [factor](quant::Student& student, RunState&, const PartDone&) {
              for (const auto id : quant::activation_sites(student.graph)) {
                const auto scale = quant::activation_quantizer(student.graph[id])->scale_name();
                student.parameters.set(scale, student.parameters.at(scale) * factor);
              }
            }};
  }
  static RunState fresh(const TheRun& run, const std::vector<Stage>& stages) {
    RunState state;
    state.stages = tell_plan(run, stages);
    return state;
  }
  // Runs until a stage throws Error(stopped): what is then on disk.
  static RunState stopped(const TheRun& run, const std::vector<Stage>& stages) {
    auto student = test::quantized(run.teacher, run.recipe.quantize);
    RunState state = fresh(run, stages);
    EXPECT_THROW(run_stages(run, stages, student, state, {}), Error);
    return load_run_state(run.output.file("checkpoint/student.safetensors"), {}, at::kCPU);
  }

  test::TempFolder folder_;
  QuantizeOptions options_;
  Observer silent_;
};

inline std::string image_scale(const quant::Student& student) {
  return quant::activation_quantizer(student.graph[quant::activation_sites(student.graph).front()])
      ->scale_name();
}

}  // namespace zsq::pipeline
