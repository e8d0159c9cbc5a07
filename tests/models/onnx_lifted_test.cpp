// SPDX-License-Identifier: Apache-2.0
// Attention in files of one image that moves the batch, or merges it with another dimension,
// against plain ATen: as networks write it for a batch, and each operator on one image after the
// other.
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/full.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>

#include "models/tail.h"
#include "tests/models/operators.h"

namespace zsq::models {
namespace {

Attributes axis(std::int64_t value) { return {{"axis", value}}; }
Attributes order(const Ints& perm) { return {{"perm", perm}}; }

// Images of 8 channels and 4 x 6 places, which are tokens "t" [1, 24, 8]; a convolution ends it.
class OneImage : public OnnxFile {
 public:
  explicit OneImage(std::int64_t opset = 17, std::int64_t batch = 1) : OnnxFile(opset, {8, 4, 6}) {
    file.graph.inputs[0].shape[0].value = batch;
    reshape("x", {batch, 8, 24}, "flat").node("Transpose", {"flat"}, {"t"}, order({0, 2, 1}));
  }
  OneImage& add(const std::string& type, Names inputs, Names outputs, Attributes attributes = {}) {
    node(type, std::move(inputs), std::move(outputs), std::move(attributes));
    return *this;
  }
  OneImage& constant(const std::string& name, const at::Tensor& value) {
    initializer(name, value);
    return *this;
  }
  OneImage& reshape(const std::string& x, const Ints& shape, const std::string& y) {
    return constant(y + ".shape", ints(shape)).add("Reshape", {x, y + ".shape"}, {y});
  }
  // From tokens "o" [1, 24, 8] to "y".
  OneImage& end() {
    add("Transpose", {"o"}, {"turned"}, order({0, 2, 1}));
    reshape("turned", {1, 8, 4, 6}, "map").constant("last", wave({8, 8, 1, 1}));
    return add("Conv", {"map", "last"}, {"y"});
  }
};

at::Tensor images() { return wave({3, 8, 4, 6}).cos(); }
at::Tensor tokens() { return images().flatten(2).transpose(1, 2); }
at::Tensor ended(const at::Tensor& tokens) {
  return at::conv2d(tokens.transpose(1, 2).reshape({-1, 8, 4, 6}), wave({8, 8, 1, 1}));
}

// In four areas that stand beside the images, as YOLO12's.
TEST(Lifted, AttentionOfAreasBesideTheBatch) {
  OneImage file;
  const auto w = wave({8, 24}).cos() / 4;
  file.constant("w", w).constant("thirds", ints({4, 4, 4}));
  file.add("MatMul", {"t", "w"}, {"qkv"})
      .reshape("qkv", {4, 6, 24}, "areas")
      .reshape("areas", {4, 6, 2, 12}, "heads")
      .add("Transpose", {"heads"}, {"h"}, order({0, 2, 3, 1}))
      .add("Split", {"h", "thirds"}, {"q", "k", "v"}, axis(2))
      .add("Transpose", {"q"}, {"rows"}, order({0, 1, 3, 2}))
      .add("MatMul", {"rows", "k"}, {"a"})
      .add("Softmax", {"a"}, {"p"}, axis(-1))
      .add("Transpose", {"p"}, {"columns"}, order({0, 1, 3, 2}))
      .add("MatMul", {"v", "columns"}, {"m"})
      .add("Transpose", {"m"}, {"n"}, order({0, 3, 1, 2}))
      .reshape("n", {1, 24, 8}, "o")
      .end();
  const auto h = at::matmul(tokens(), w).reshape({12, 6, 2, 12}).permute({0, 2, 3, 1});
  const auto parts = h.split(4, 2);
  const auto p = at::softmax(at::matmul(parts[0].transpose(2, 3), parts[1]), -1);
  const auto m = at::matmul(parts[2], p.transpose(2, 3)).permute({0, 3, 1, 2});
  expect_near(file.run(images()), ended(m.reshape({3, 24, 8})));
}

// In windows, whose queries, keys and values come first and are split off.
TEST(Lifted, AttentionOfWindows) {
  OneImage file;
  const auto w = wave({8, 24}).cos();
  file.constant("w", w).constant("first", ints({0})).add("MatMul", {"t", "w"}, {"m"});
  file.reshape("m", {6, 4, 3, 2, 4}, "qkv")
      .add("Transpose", {"qkv"}, {"split"}, order({2, 0, 3, 1, 4}))
      .add("Split", {"split"}, {"q1", "k1", "v1"}, axis(0));
  for (const std::string name : {"q", "k", "v"}) file.add("Squeeze", {name + "1", "first"}, {name});
  file.add("Transpose", {"k"}, {"kt"}, order({0, 1, 3, 2}))
      .add("MatMul", {"q", "kt"}, {"a"})
      .add("Softmax", {"a"}, {"p"}, axis(-1))
      .add("MatMul", {"p", "v"}, {"n"})
      .add("Transpose", {"n"}, {"places"}, order({0, 2, 1, 3}))
      .reshape("places", {1, 24, 8}, "o")
      .end();
  const auto qkv = at::matmul(tokens(), w).reshape({18, 4, 3, 2, 4}).permute({2, 0, 3, 1, 4});
  const auto p = at::softmax(at::matmul(qkv[0], qkv[1].transpose(2, 3)), -1);
  expect_near(file.run(images()), ended(at::matmul(p, qkv[2]).transpose(1, 2).reshape({3, 24, 8})));
}

// torch.nn.MultiheadAttention takes tokens before images, and merges these with the heads.
at::Tensor attended(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const auto of_heads = [](const at::Tensor& x) {
    return x.transpose(0, 1).reshape({24, -1, 4}).transpose(0, 1);
  };
  const auto p = at::softmax(at::bmm(of_heads(q * 0.5), of_heads(k).transpose(1, 2)), -1);
  const auto merged = at::bmm(p, of_heads(v)).transpose(0, 1).reshape({-1, 8});
  const auto out = at::linear(merged, wave({8, 8}).sin(), wave({8}));
  return out.view({24, -1, 8}).transpose(0, 1);
}

// From "q", "k" and "v" [24, 1, 8].
OneImage& attend(OneImage& file) {
  const auto swapped = order({1, 0, 2});
  for (const std::string name : {"q", "k", "v"})
    file.reshape(name, {24, 2, 4}, name + "h")
        .add("Transpose", {name + "h"}, {name + "t"}, name == "k" ? order({1, 2, 0}) : swapped);
  return file.constant("half", scalar(0.5))
      .add("Mul", {"qt", "half"}, {"scaled"})
      .add("MatMul", {"scaled", "kt"}, {"a"})
      .add("Softmax", {"a"}, {"p"}, axis(-1))
      .add("MatMul", {"p", "vt"}, {"m"})
      .add("Transpose", {"m"}, {"n"}, swapped)
      .reshape("n", {24, 8}, "rows")
      .constant("out_w", wave({8, 8}).sin().t().contiguous())
      .constant("out_b", wave({8}))
      .add("Gemm", {"rows", "out_w", "out_b"}, {"g"})
      .reshape("g", {24, 1, 8}, "s")
      .add("Transpose", {"s"}, {"o"}, swapped)
      .end();
}

TEST(Lifted, MultiheadAttentionPutsTheBatchAfterTheTokens) {
  OneImage file;
  file.add("Transpose", {"t"}, {"first"}, order({1, 0, 2}))
      .add("Transpose", {"flat"}, {"values"}, order({2, 0, 1}));
  at::Tensor parts[3];
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string name(1, "qkv"[i]);
    const auto w = (wave({8, 8}) + int(i)).cos(), b = wave({8}) + int(i);
    parts[i] = at::matmul(tokens(), w) + b;
    file.constant(name + "_w", w).constant(name + "_b", b);
    file.add("MatMul", {i < 2 ? "first" : "values", name + "_w"}, {name + "_m"})
        .add("Add", {name + "_b", name + "_m"}, {name});
  }
  attend(file);
  expect_near(file.run(images()), ended(attended(parts[0], parts[1], parts[2])));
  const auto model = file.import();
  std::vector<Node> layers;
  for (const auto& node : model.graph.nodes)
    if (is<Linear>(node)) layers.push_back(node);
  ASSERT_EQ(layers.size(), 4U) << "constants along the last dimension are layers";
  EXPECT_EQ(count<Add>(model), 0) << "their biases are the layers' own";
  EXPECT_EQ(layers[0].inputs, layers[1].inputs) << "queries and keys read the same node";
}

TEST(Lifted, MultiheadAttentionWithOneProjection) {
  OneImage file;
  const auto w = wave({8, 24}).cos();
  file.constant("w", w).constant("zero", ints({0})).constant("third", ints({-2}));
  file.add("Transpose", {"t"}, {"first"}, order({1, 0, 2}))
      .add("MatMul", {"first", "w"}, {"m0"})
      .reshape("m0", {24, 1, 3, 8}, "split")
      .add("Unsqueeze", {"split", "zero"}, {"wide"})
      .add("Transpose", {"wide"}, {"moved"}, order({3, 1, 2, 0, 4}))
      .add("Squeeze", {"moved", "third"}, {"qkv"});
  for (std::int64_t i = 0; i < 3; ++i) {
    const std::string name(1, "qkv"[i]);
    file.constant(name + "_i", at::scalar_tensor(i, at::kLong));
    file.add("Gather", {"qkv", name + "_i"}, {name});
  }
  attend(file);
  const auto parts = at::matmul(tokens(), w).split(8, 2);
  expect_near(file.run(images()), ended(attended(parts[0], parts[1], parts[2])));
}

// `nodes` read "a" [4, 6, 8] and give "b"; `value`: what they compute of one image.
template <class Nodes, class Value>
void expect_one_by_one(const Nodes& nodes, const Value& value, std::int64_t opset = 17) {
  OneImage file(opset);
  nodes(file.reshape("t", {4, 6, 8}, "a"));
  std::vector<at::Tensor> rows;
  for (const auto& image : tokens().unbind())
    rows.push_back(value(image.reshape({4, 6, 8})).flatten());
  const auto expected = at::stack(rows);
  const auto size = expected.size(1);
  file.reshape("b", {1, size, 1, 1}, "map").constant("twice", at::full({size, 1, 1, 1}, 2.0F));
  file.add("Conv", {"map", "twice"}, {"y"}, {{"group", size}});
  expect_near(file.run(images()), 2 * expected);
}

using T = const at::Tensor&;
using File = OneImage&;

// Of one node that reads "a" and constants.
template <class Value>
void expect_operator(const std::string& type, const std::vector<at::Tensor>& constants,
                     const Attributes& attributes, const Value& value, std::int64_t opset = 17) {
  SCOPED_TRACE(type);
  const auto nodes = [&](File file) {
    Names inputs{"a"};
    for (const auto& constant : constants) {
      inputs.push_back("c" + std::to_string(inputs.size()));
      file.constant(inputs.back(), constant);
    }
    file.add(type, inputs, {"b"}, attributes);
  };
  expect_one_by_one(nodes, value, opset);
}

TEST(Lifted, AxesCountTheBatchThatTheFileDoesNotSee) {
  const auto g = wave({6, 8});
  expect_operator("Softmax", {}, axis(0), [](T a) { return at::softmax(a, 0); });
  const auto rows = [](T a) { return at::softmax(a.flatten(1), 1); };
  expect_operator("Softmax", {}, {}, rows, 12);
  const auto gathered = [](T a) { return at::cat({a.slice(0, 2, 3), a.slice(0, 0, 1)}); };
  expect_operator("Gather", {ints({2, -4})}, {}, gathered);
  const auto normalized = [&](T a) { return at::layer_norm(a, g.sizes(), g); };
  expect_operator("LayerNormalization", {g}, axis(1), normalized);
  const Attributes axes{{"axes", Ints{0, -1}}};
  expect_operator("ReduceMean", {}, axes, [](T a) { return a.mean(Ints{0, 2}); });
  expect_operator("ReduceSum", {ints({1})}, {}, [](T a) { return a.sum(1); });
  const auto sliced = [](T a) { return a.slice(0, 1, 3).slice(2, 5); };
  expect_operator("Slice", {ints({1, -3}), ints({3, 100}), ints({0, -1})}, {}, sliced);
  const Attributes bounds{{"axes", Ints{1}}, {"starts", Ints{2}}, {"ends", Ints{-1}}};
  expect_operator(
      "Slice", {}, bounds, [](T a) { return a.slice(1, 2, 5); }, 9);
}

TEST(Lifted, DimensionsThatAreMadeAndDropped) {
  const auto c = wave({4, 3, 1, 8});
  const auto wider = [&](File f) {
    f.constant("i", ints({1})).constant("two", ints({2})).constant("j", ints({-3}));
    f.constant("c", c).add("Unsqueeze", {"a", "i"}, {"u"}).add("Add", {"u", "c"}, {"v"});
    f.add("Slice", {"v", "i", "two", "i"}, {"s"}).add("Squeeze", {"s", "j"}, {"b"});
  };
  expect_one_by_one(wider, [&](T a) { return a + c.select(1, 1); });
  const auto shaped = [](File f) {
    f.constant("one", ints({-1})).add("Shape", {"a"}, {"n"}, {{"end", std::int64_t{-1}}});
    f.add("Concat", {"one", "n"}, {"sizes"}, axis(0)).add("Reshape", {"a", "sizes"}, {"r"});
    f.add("ReduceMean", {"r"}, {"b"}, {{"axes", Ints{1}}});
  };
  expect_one_by_one(shaped, [](T a) { return a.reshape({8, 4, 6}).mean(1); });
}

TEST(Lifted, OperandsOfOtherDimensions) {
  const auto c = wave({4, 6, 8}).cos(), w = wave({8, 5}), wide = wave({2, 1, 6, 8});
  expect_operator("MatMul", {w}, {}, [&](T a) { return at::matmul(a, w); });
  expect_operator("Mul", {wide}, {}, [&](T a) { return a * wide; });
  expect_operator("Concat", {c}, axis(0), [&](T a) { return at::cat({a, c}); });
  const auto left = [&](File f) { f.constant("w", c).add("MatMul", {"w", "k"}, {"b"}); };
  const auto turned = [&](File f) { left(f.add("Transpose", {"a"}, {"k"}, order({0, 2, 1}))); };
  expect_one_by_one(turned, [&](T a) { return at::matmul(c, a.transpose(1, 2)); });
  const auto several = [](File f) {
    f.reshape("t", {24, 8}, "r").constant("i", ints({5, 6, 7, 8, 9, 10}));
    f.add("Gather", {"r", "i"}, {"six"}).add("Sub", {"a", "six"}, {"d"});
    f.add("Gather", {"t", "i"}, {"of_image"}, axis(1)).add("Max", {"of_image", "d"}, {"b"});
  };
  const auto six = [](T a) { return a.reshape({24, 8}).slice(0, 5, 11); };
  expect_one_by_one(several, [&](T a) { return at::maximum(a - six(a), six(a)); });
  const auto matrix = [](File f) {
    f.reshape("t", {-1, 8}, "r").constant("c", wave({24, 8})).add("Add", {"r", "c"}, {"s"});
    f.add("Sigmoid", {"s"}, {"b"});
  };
  expect_one_by_one(matrix, [](T a) { return (a.reshape({24, 8}) + wave({24, 8})).sigmoid(); });
}

// Other sizes of the batch do not stand for one image.
TEST(Lifted, OtherBatchesAndUnknownOperatorsAreRefused) {
  for (const std::int64_t batch : {-1, 2}) {
    OneImage file(17, batch);
    file.reshape("t", {8, 6, 8}, "a").reshape("a", {batch, 24, 8}, "o").end();
    EXPECT_NE(refusal(file).find("batch of 1"), std::string::npos);
  }
  OneImage file;
  file.reshape("t", {4, 8, 2, 3}, "a").constant("w", wave({8, 8, 1, 1}));
  file.add("Conv", {"a", "w"}, {"y"});
  EXPECT_NE(refusal(file).find("batch is in another dimension"), std::string::npos);
}

// What no convolution follows may stay as it is.
TEST(Lifted, TheEndOfANetworkIsNot) {
  OneImage file;
  file.add("Identity", {"t"}, {"o"}).end().reshape("y", {2, 4, 24}, "parts");
  file.add("Softmax", {"parts"}, {"p"}, axis(-1));
  file.file.graph.outputs[0].name = "p";
  const auto model = import_onnx(file.file, {});
  ASSERT_TRUE(model.graph.signature.tail);
  EXPECT_EQ(model.graph.signature.tail->nodes.size(), 2U);
}

}  // namespace
}  // namespace zsq::models
