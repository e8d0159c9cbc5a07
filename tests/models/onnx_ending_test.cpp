// SPDX-License-Identifier: Apache-2.0
// The last function of a file leaves the graph, and as_file_output() brings it back.
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/softmax.h>

#include "tests/models/operators.h"

namespace zsq::models {
namespace {

// "p" [N, 5, 1, 1] and "f" [N, 5] of an image; the test adds what gives "logits".
class Ended : public OnnxFile {
 public:
  explicit Ended(std::int64_t opset = 13) : OnnxFile(opset, kImage) {
    initializer("w", wave({5, 4, 1, 1}))
        .node("Conv", {"x", "w"}, {"c"})
        .node("GlobalAveragePool", {"c"}, {"p"})
        .node("Flatten", {"p"}, {"f"});
  }
  Ended& ends(const std::string& type, Names inputs, Names outputs, Attributes attributes = {}) {
    node(type, std::move(inputs), std::move(outputs), std::move(attributes));
    return *this;
  }
  Model whole(const LoadOptions& options = {}) const { return import_onnx(file, options); }
};

at::Tensor logits() {
  const auto pooled = image().mean({2, 3});
  return pooled.matmul(wave({5, 4}).t());
}

struct Expected {
  OutputFunction function;
  OutputKind kind;
  Ints shape;
  at::Tensor output;
};

void expect_ending(const Model& model, const Expected& expected) {
  const at::NoGradGuard no_grad;
  const auto& signature = model.graph.signature;
  EXPECT_EQ(signature.function, expected.function);
  EXPECT_EQ(signature.kind, expected.kind);
  EXPECT_EQ(signature.output_shape, expected.shape);
  EXPECT_EQ(signature.input, "x");
  EXPECT_EQ(signature.output, "logits");
  EXPECT_EQ(model.classes, 5);
  const auto entered = execute(model.graph, model.parameters, image());
  EXPECT_TRUE(at::allclose(entered, logits(), 1e-4, 1e-5)) << "what enters the function";
  const auto output = as_file_output(model.graph, entered);
  ASSERT_EQ(output.sizes(), expected.output.sizes());
  EXPECT_TRUE(at::allclose(output, expected.output, 1e-4, 1e-5));
}

TEST(Ending, Softmax) {
  const auto softmax = at::softmax(logits(), 1);
  const Expected flat{OutputFunction::softmax, OutputKind::logits, {}, softmax};
  expect_ending(Ended().ends("Softmax", {"f"}, {"logits"}).whole(), flat);
  expect_ending(Ended(11).ends("Softmax", {"f"}, {"logits"}).whole(), flat);
  const Attributes one{{"axis", std::int64_t{1}}};
  expect_ending(
      Ended().ends("Softmax", {"p"}, {"s"}, one).ends("Flatten", {"s"}, {"logits"}).whole(), flat);
  expect_ending(Ended()
                    .ends("Softmax", {"p"}, {"s"}, one)
                    .ends("Squeeze", {"s"}, {"logits"}, {{"axes", Ints{2, 3}}})
                    .whole(),
                flat);
  const Expected map{
      OutputFunction::softmax, OutputKind::logits, {5, 1, 1}, softmax.reshape({2, 5, 1, 1})};
  expect_ending(Ended().ends("Softmax", {"p"}, {"logits"}, one).whole(), map);
  expect_ending(Ended(11).ends("Softmax", {"p"}, {"logits"}).whole(), map);
  const Expected last{
      OutputFunction::softmax, OutputKind::logits, {1, 1, 5}, softmax.reshape({2, 1, 1, 5})};
  expect_ending(Ended()
                    .ends("Transpose", {"p"}, {"t"}, {{"perm", Ints{0, 2, 3, 1}}})
                    .ends("Softmax", {"t"}, {"logits"})
                    .whole(),
                last);
}

TEST(Ending, LogSoftmaxWholeAndInParts) {
  const Expected expected{
      OutputFunction::log_softmax, OutputKind::logits, {}, at::log_softmax(logits(), 1)};
  expect_ending(Ended().ends("LogSoftmax", {"f"}, {"logits"}).whole(), expected);
  expect_ending(Ended().ends("Softmax", {"f"}, {"s"}).ends("Log", {"s"}, {"logits"}).whole(),
                expected);
}

TEST(Ending, SigmoidMeansLabels) {
  const Expected flat{OutputFunction::sigmoid, OutputKind::scores, {}, logits().sigmoid()};
  expect_ending(Ended().ends("Sigmoid", {"f"}, {"logits"}).whole(), flat);
  const Expected map{OutputFunction::sigmoid,
                     OutputKind::scores,
                     {5, 1, 1},
                     logits().sigmoid().reshape({2, 5, 1, 1})};
  expect_ending(Ended().ends("Sigmoid", {"p"}, {"logits"}).whole(), map);
}

TEST(Ending, WithoutAFunction) {
  const Expected flat{OutputFunction::none, OutputKind::logits, {}, logits()};
  expect_ending(Ended().ends("Identity", {"f"}, {"logits"}).whole(), flat);
  const Expected map{
      OutputFunction::none, OutputKind::logits, {5, 1, 1}, logits().reshape({2, 5, 1, 1})};
  expect_ending(Ended().ends("Identity", {"p"}, {"logits"}).whole(), map);
  LoadOptions options;
  options.outputs[""] = OutputKind::scores;
  EXPECT_EQ(Ended().ends("Identity", {"f"}, {"logits"}).whole(options).graph.signature.kind,
            OutputKind::scores);
}

TEST(Ending, OverSomethingElseThanTheClassesStays) {
  Ended file;
  file.initializer("s", ints({0, 5, 9, 7}));
  file.node("Softmax", {"c"}, {"a"}, {{"axis", std::int64_t{1}}})
      .node("GlobalAveragePool", {"a"}, {"g"})
      .node("Flatten", {"g"}, {"logits"});
  const auto model = file.whole();
  EXPECT_EQ(model.graph.signature.function, OutputFunction::none);
  EXPECT_EQ(count<Softmax>(model), 1);
}

TEST(Ending, EmbeddingsAndSingleNumbersAreValues) {
  const auto kind = [](const Ended& file) { return file.whole().graph.signature.kind; };
  Ended length;
  length.initializer("tiny", scalar(1e-12)).initializer("to", ints({1, 5}));
  length.node("ReduceL2", {"f"}, {"n"}, {{"axes", Ints{1}}})
      .node("Max", {"n", "tiny"}, {"m"})
      .node("Expand", {"m", "to"}, {"e"})
      .node("Div", {"f", "e"}, {"logits"});
  EXPECT_EQ(kind(length), OutputKind::values);
  EXPECT_EQ(kind(Ended().ends("LpNormalization", {"f"}, {"logits"})), OutputKind::values);
  Ended norm;
  norm.initializer("g", wave({5}).abs() + 1)
      .node("BatchNormalization", {"f", "g", "g", "g", "g"}, {"logits"});
  EXPECT_EQ(kind(norm), OutputKind::values);
  Ended one;
  one.node("ReduceSum", {"f"}, {"logits"}, {{"axes", Ints{1}}}).file.opset = 11;
  EXPECT_EQ(kind(one), OutputKind::values);
  // A softmax in parts is divided by a sum of its own, but not by its length.
  Ended parts;
  parts.node("Exp", {"f"}, {"e"})
      .node("ReduceSum", {"e"}, {"s"}, {{"axes", Ints{1}}})
      .node("Div", {"e", "s"}, {"logits"})
      .file.opset = 11;
  EXPECT_EQ(kind(parts), OutputKind::logits);
}

// "f" [N, 5] goes through `type` and is then a times that plus b.
Ended scaled(const std::string& type, Attributes attributes = {}) {
  Ended file;
  file.initializer("a", scalar(64)).initializer("b", wave({5}));
  file.node(type, {"f"}, {"u"}, std::move(attributes))
      .node("Mul", {"u", "a"}, {"v"})
      .node("Add", {"v", "b"}, {"logits"});
  return file;
}

TEST(Ending, BoundedFunctionsTimesConstantsAreValues) {
  const auto kind = [](const Ended& file) { return file.whole().graph.signature.kind; };
  EXPECT_EQ(kind(scaled("Tanh")), OutputKind::values);
  EXPECT_EQ(kind(scaled("Sigmoid")), OutputKind::values);
  EXPECT_EQ(kind(scaled("LpNormalization")), OutputKind::values);
  EXPECT_EQ(kind(scaled("Identity")), OutputKind::logits);  // a temperature
  EXPECT_EQ(kind(scaled("Relu")), OutputKind::logits);
  EXPECT_EQ(kind(Ended().ends("Tanh", {"f"}, {"logits"})), OutputKind::values);
  Ended clipped;
  clipped.initializer("a", scalar(-1)).initializer("b", scalar(1));
  EXPECT_EQ(kind(clipped.ends("Clip", {"f", "a", "b"}, {"logits"})), OutputKind::values);
}

// Parts that other functions end: boxes beside scores, angles beside expressions.
TEST(Ending, UnlikeThingsInOneRowAreValues) {
  const auto kind = [](const std::string& one, const std::string& other) {
    Ended file;
    file.initializer("a", scalar(640)).initializer("to", ints({2})).initializer("end", ints({5}));
    file.initializer("from", ints({0})).initializer("axis", ints({1}));
    file.node("Slice", {"f", "from", "to", "axis"}, {"first"})
        .node("Slice", {"f", "to", "end", "axis"}, {"second"});
    file.node(one, {"first"}, {"u"}).node(other, {"second"}, {"v"});
    if (one == "Neg") file.node("Mul", {"u", "a"}, {"s"});
    file.node("Concat", {one == "Neg" ? "s" : "u", "v"}, {"logits"}, {{"axis", std::int64_t{1}}});
    return file.whole().graph.signature.kind;
  };
  EXPECT_EQ(kind("Tanh", "Softmax"), OutputKind::values);
  EXPECT_EQ(kind("Identity", "Sigmoid"), OutputKind::values);
  EXPECT_EQ(kind("Sigmoid", "Sigmoid"), OutputKind::values);
  EXPECT_EQ(kind("LpNormalization", "Identity"), OutputKind::values);
  EXPECT_EQ(kind("Neg", "Neg"), OutputKind::values);  // of which one is times 640
  EXPECT_EQ(kind("Identity", "Identity"), OutputKind::logits);
}

}  // namespace
}  // namespace zsq::models
