// SPDX-License-Identifier: Apache-2.0
// The worst that a report can do is to call a ruined network good. Here students of networks with
// every kind of output are damaged as faults of importers, ranges, layouts and runtimes damage
// them; drawn images tell which of them are ruined, and none of these may be called good. Healthy
// students of the same networks must be.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>

#include "models/execute.h"
#include "pipeline/report/experience.h"
#include "pipeline/report/quality.h"
#include "pipeline/report/verdict.h"
#include "quant/calibration/bias_correction.h"
#include "quant/calibration/ranges.h"
#include "quant/rewrites/equalize.h"
#include "quant/student.h"
#include "quant/weight_layers.h"
#include "tests/support/quantized.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_network.h"

namespace zsq::pipeline {
namespace {

using models::OutputFunction;
using models::OutputKind;
using quant::Student;

struct Ending {
  std::string name, kind;
  OutputKind output;
  OutputFunction function;
  at::Tensor mix;  // f32 [K, 8] of the logits of the 8 shapes, or [K, 24] of their features
};

// Circle, ring | square, frame, triangle | plus, x, stripes: linear mixtures of a trained network's
// logits are trained networks for groups of its classes.
std::vector<Ending> endings() {
  const auto groups = [](std::vector<std::vector<float>> rows) {
    std::vector<at::Tensor> mixed;
    for (const auto& row : rows) mixed.push_back(at::tensor(row));
    return at::stack(mixed);
  };
  const auto round = std::vector<float>{.5, .5, -.5, -.5, -.5, -.5, .5, .5};
  auto angular = round;
  for (float& x : angular) x = -x;
  const auto draws = at::detail::createCPUGenerator(5);
  return {
      {"classes", "logits", OutputKind::logits, OutputFunction::none, at::eye(8)},
      {"softmax", "logits", OutputKind::logits, OutputFunction::softmax, at::eye(8)},
      {"two classes", "logits", OutputKind::logits, OutputFunction::none, groups({round, angular})},
      {"labels", "scores", OutputKind::scores, OutputFunction::sigmoid,
       groups({round, {.5, -.5, .5, -.5, .5, -.5, .5, -.5}, {.5, .5, .5, -.5, -.5, .5, -.5, -.5}})},
      {"one label", "scores", OutputKind::scores, OutputFunction::sigmoid, groups({round})},
      {"one value", "values", OutputKind::values, OutputFunction::none,
       groups({{-.4f, -.3f, -.2f, -.1f, .1f, .2f, .3f, .4f}})},
      {"embedding", "values", OutputKind::values, OutputFunction::none,
       at::randn({12, 24}, draws, at::kFloat)},
  };
}

models::Model with_ending(const models::Model& trained, const Ending& end) {
  models::Model model = trained;
  model.parameters = trained.parameters.clone();
  const auto weight = trained.parameters.at("fc.weight"), bias = trained.parameters.at("fc.bias");
  const bool of_features = end.mix.size(1) == weight.size(1);
  model.parameters.set("fc.weight", of_features ? end.mix : end.mix.matmul(weight));
  model.parameters.set("fc.bias",
                       of_features ? at::zeros({end.mix.size(0)}) : end.mix.matmul(bias));
  model.classes = end.mix.size(0);
  model.graph.signature.kind = end.output;
  model.graph.signature.function = end.function;
  return model;
}

Student quantized(const models::Model& teacher, const Recipe& recipe, const at::Tensor& images,
                  std::int64_t bits) {
  const at::NoGradGuard no_grad;
  QuantOptions options = recipe.quantize;
  options.weights.num_bits = options.activations.num_bits = bits;
  if (bits < 8) options.first_last_bits = 0;
  Student student = test::quantized(teacher, options);
  quant::calibrate(student, images, 16);
  quant::refresh_weight_grids(student);
  quant::correct_bias(student, quant::equalize(teacher, options));
  return student;
}

// The weight that the layer of this name has in the student.
at::Tensor& weight_of(Student& student, const std::string& layer) {
  for (const auto& site : quant::weight_sites(student))
    if (student.graph[site.layer].name == layer) return student.parameters.at(site.parameter);
  throw std::logic_error("no layer " + layer);
}
// The grid of the activation quantizer in the middle of the network.
std::pair<at::Tensor, at::Tensor> middle_grid(Student& student) {
  std::vector<const quant::ActivationQuantizer*> all;
  for (const auto& node : student.graph.nodes)
    if (const auto* op = quant::activation_quantizer(node)) all.push_back(op);
  const auto* op = all[all.size() / 2];
  return {student.parameters.at(op->scale_name()), student.parameters.at(op->zero_point_name())};
}

struct Fault {
  const char *kind, *name;
  std::function<void(Student&)> damage;
};
std::vector<Fault> faults() {
  return {
      {"range", "too narrow", [](Student& s) { middle_grid(s).first.div_(16); }},
      {"range", "too wide", [](Student& s) { middle_grid(s).first.mul_(60); }},
      {"range", "zero point off", [](Student& s) { middle_grid(s).second.add_(100); }},
      {"layout", "channels in another order",
       [](Student& s) {
         weight_of(s, "block1.conv2").copy_(weight_of(s, "block1.conv2").flip(1));
       }},
      {"layout", "kernel transposed and turned",
       [](Student& s) {
         weight_of(s, "stem").copy_(weight_of(s, "stem").flip(2).transpose(2, 3));
         weight_of(s, "block1.conv1").copy_(weight_of(s, "block1.conv1").flip(0));
       }},
      {"zeros", "a layer", [](Student& s) { weight_of(s, "block1.shortcut").zero_(); }},
      {"range", "scale four times",
       [](Student& s) {
         for (const auto& site : quant::weight_sites(s))
           if (s.graph[site.layer].name == "block2.conv1")
             s.parameters.at(site.op->scale_name()).mul_(4),
                 s.parameters.at(site.parameter).mul_(4);
       }},
      {"zeros", "last layer", [](Student& s) { weight_of(s, "fc").zero_(); }},
      {"saturated", "outputs that stop at one end",
       [](Student& s) {
         // As a range that ends at 0 before a sigmoid: nothing is above 0.5.
         auto& bias = s.parameters.at(s.graph[s.graph.id_of("fc")].params.at("bias"));
         bias.sub_(bias.abs().max().item<float>() + 4);
         weight_of(s, "fc").mul_(0.2);
       }},
  };
}

// What a student loses on drawn images, by plain arithmetic on its outputs: the share of images
// with another decision, or the squared error relative to the variance.
double lost(OutputKind kind, const at::Tensor& teacher, const at::Tensor& student) {
  if (kind == OutputKind::logits)
    return teacher.argmax(1).ne(student.argmax(1)).to(at::kDouble).mean().item<double>();
  if (kind == OutputKind::scores)
    return teacher.gt(0).ne(student.gt(0)).to(at::kDouble).mean().item<double>();
  return (student.sub(teacher).square().sum() / teacher.sub(teacher.mean(0)).square().sum())
      .item<double>();
}

class RuinedStudents : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { trained_ = new test::TinyNetwork(test::train_tiny_network(0)); }
  static void TearDownTestSuite() { delete trained_; }
  static inline test::TinyNetwork* trained_ = nullptr;
};

TEST_F(RuinedStudents, AreNeverCalledGood) {
  const test::TempFolder folder;
  setenv("ZSQ_CACHE", (folder / "cache").c_str(), 1);
  const Recipe recipe = load_recipe(
      "instant", {"data.preset=cifar10", "process.threads=1", "process.agreement_images=64"});
  Observer observer;
  std::map<std::string, int> ruined;  // by the kind of fault
  int telling = 0;
  for (const Ending& end : endings()) {
    const auto teacher = with_ending(trained_->model, end);
    const auto real = models::execute(teacher.graph, teacher.parameters, trained_->test.images);
    const auto held_out =
        held_out_images(teacher, end.name, recipe, HeldOutUse::choices, {}, observer);
    const auto judge = [&](const Student& student, double& loss) {
      const at::NoGradGuard no_grad;
      loss = lost(end.output, real,
                  models::execute(student.graph, student.parameters, trained_->test.images));
      return verdict_on(measure_on(held_out, student.graph, student.parameters), end.kind,
                        teacher.classes);
    };
    double loss = 0;
    const Student healthy = quantized(teacher, recipe, held_out[0].images, 8);
    const std::string fine = judge(healthy, loss);
    EXPECT_LT(loss, 0.03) << end.name;
    // Training differs in last bits from processor to processor, and with it whether the images of
    // a network of three labels show them evenly enough to tell.
    const auto results = measure_on(held_out, healthy.graph, healthy.parameters);
    const bool tell = std::ranges::all_of(results, [&](const SyntheticResult& result) {
      return result.largest_share <= can_tell_apart(result.kind, end.kind, teacher.classes);
    });
    telling += tell;
    if (tell && experience_with(end.kind, teacher.classes)) {
      EXPECT_EQ(mood_of(fine), "good") << end.name << ": " << fine;
    }
    const auto expect_not_good = [&](const Student& student, const char* kind, const char* fault) {
      const std::string verdict = judge(student, loss);
      if (loss < 0.05) return;  // it bears that
      ++ruined[kind];
      EXPECT_NE(mood_of(verdict), "good")
          << end.name << ", " << kind << ", " << fault << ", loses " << loss << ": " << verdict;
    };
    for (const Fault& fault : faults()) {
      Student student = healthy;
      student.parameters = healthy.parameters.clone();
      const at::NoGradGuard no_grad;
      fault.damage(student);
      expect_not_good(student, fault.kind, fault.name);
    }
    for (const std::int64_t bits : {2, 3})
      expect_not_good(quantized(teacher, recipe, held_out[0].images, bits), "few bits", "");
  }
  unsetenv("ZSQ_CACHE");
  int all = 0;
  for (const char* kind : {"range", "layout", "saturated", "few bits", "zeros"}) {
    EXPECT_GE(ruined[kind], 5) << kind;
    RecordProperty(kind, ruined[kind]);
    all += ruined[kind];
  }
  EXPECT_GE(all, 40);
  EXPECT_GE(telling, static_cast<int>(endings().size()) - 1);
}

}  // namespace
}  // namespace zsq::pipeline
