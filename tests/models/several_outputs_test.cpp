// SPDX-License-Identifier: Apache-2.0
// Files of several outputs, of outputs with places, and with an end that stays as it is.
#include <ATen/ops/conv1d.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>

#include "models/file_layout.h"
#include "models/outputs.h"
#include "models/tail.h"
#include "tests/models/operators.h"
#include "tests/support/error_message.h"

namespace zsq::models {
namespace {

// A map "m" [N, 6, H, W] of the image; the test adds the rest.
class Headed : public OnnxFile {
 public:
  explicit Headed(Names outputs, std::int64_t opset = 13) : OnnxFile(opset, kImage) {
    initializer("w", wave({6, 4, 1, 1})).node("Conv", {"x", "w"}, {"m"});
    file.graph.outputs.clear();
    for (const auto& name : outputs) file.graph.outputs.push_back({name, 1, {}});
  }
  Headed& ends(const std::string& type, Names inputs, Names outputs, Attributes attributes = {}) {
    node(type, std::move(inputs), std::move(outputs), std::move(attributes));
    return *this;
  }
  Headed& constant(const std::string& name, std::int64_t value) {
    initializer(name, at::tensor({value}));
    return *this;
  }
  Headed& initializer_of(const std::string& name, const Ints& values) {
    initializer(name, at::tensor(values));
    return *this;
  }
  Model whole(const LoadOptions& options = {}) const { return import_onnx(file, options); }
};

at::Tensor map() {
  return image().movedim(1, -1).matmul(wave({6, 4}).t()).movedim(-1, 1).contiguous();
}

std::vector<FileTensor> outputs_of(const Model& model) {
  const at::NoGradGuard no_grad;
  return as_file_outputs(model.graph, execute(model.graph, model.parameters, image()));
}

void expect_close(const at::Tensor& found, const at::Tensor& expected) {
  ASSERT_EQ(found.sizes(), expected.sizes());
  EXPECT_TRUE(at::allclose(found, expected, 1e-4, 1e-5));
}

TEST(SeveralOutputs, AreOneRowAndComeBackAsTheFileHasThem) {
  const auto model = Headed({"boxes", "conf", "on", "raw"})
                         .ends("Transpose", {"m"}, {"boxes"}, {{"perm", Ints{0, 2, 3, 1}}})
                         .ends("Softmax", {"m"}, {"conf"}, {{"axis", std::int64_t{1}}})
                         .ends("Sigmoid", {"m"}, {"s"})
                         .ends("Flatten", {"s"}, {"on"})
                         .ends("GlobalAveragePool", {"m"}, {"raw"})
                         .whole();
  const auto& row = model.graph.signature.kind;
  EXPECT_EQ(row, OutputKind::several);
  ASSERT_EQ(row.outputs().size(), 4U);
  const std::vector<OutputKind> kinds{OutputKind::values, OutputKind::map, OutputKind::scores,
                                      OutputKind::values};
  for (std::size_t i = 0; i < kinds.size(); ++i)
    EXPECT_EQ(row.outputs()[i].kind, kinds[i]) << row.outputs()[i].name;
  EXPECT_EQ(row.outputs()[1].function, OutputFunction::softmax);
  EXPECT_EQ(row.outputs()[2].function, OutputFunction::sigmoid);
  EXPECT_EQ(model.classes, 3 * map()[0].numel() + 6);
  const auto found = outputs_of(model);
  EXPECT_EQ(found[3].name, "raw");
  expect_close(found[0].value, map().permute({0, 2, 3, 1}));
  expect_close(found[1].value, at::softmax(map(), 1));
  expect_close(found[2].value, at::sigmoid(map()).flatten(1));
  expect_close(found[3].value, map().mean({2, 3}, true));
}

TEST(SeveralOutputs, ARowWithoutAFunctionIsLogitsUnlessAnotherRowIsProbabilities) {
  const auto kind_beside = [](const std::string& type, const std::string& of) {
    const auto model = Headed({"raw", "beside"})
                           .ends("GlobalAveragePool", {"m"}, {"pooled"})
                           .ends("Flatten", {"pooled"}, {"raw"})
                           .ends(type, {of}, {"beside"})
                           .whole();
    return model.graph.signature.kind.outputs()[0].kind;
  };
  EXPECT_EQ(kind_beside("Relu", "raw"), OutputKind::logits);
  EXPECT_EQ(kind_beside("Softmax", "raw"), OutputKind::values);
  EXPECT_EQ(kind_beside("Sigmoid", "raw"), OutputKind::values);
  EXPECT_EQ(kind_beside("Sigmoid", "m"), OutputKind::logits);  // of a map
}

TEST(SeveralOutputs, AMapOfTheImagesSizeIsOfClasses) {
  const auto kind = [](const Model& model) {
    return model.graph.signature.kind.outputs().at(0).kind;
  };
  EXPECT_EQ(kind(Headed({"m"}).whole()), OutputKind::map);
  EXPECT_EQ(kind(Headed({"m"}).whole({.outputs = {{"", OutputKind::values}}})), OutputKind::values);
  EXPECT_EQ(kind(Headed({"m"}).whole({.outputs = {{"m", OutputKind::scores}}})),
            OutputKind::scores);
  const auto half = Headed({"p"}).ends("MaxPool", {"m"}, {"p"},
                                       {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  EXPECT_EQ(kind(half.whole()), OutputKind::values);
}

TEST(SeveralOutputs, AMeaningOfAnUnknownOutputIsRefused) {
  try {
    Headed({"m"}).whole({.outputs = {{"boxes", OutputKind::values}}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find("its outputs: m"), std::string::npos);
  }
}

// Classes of which there is one, or places of which there are none, decide nothing.
TEST(SeveralOutputs, AMeaningThatAnOutputCannotHaveIsRefused) {
  const Headed file = Headed({"m", "row", "one", "first"})
                          .ends("GlobalAveragePool", {"m"}, {"p"})
                          .ends("Flatten", {"p"}, {"row"})
                          .ends("ReduceMean", {"row"}, {"one"}, {{"axes", Ints{1}}})
                          .ends("ReduceMean", {"m"}, {"first"}, {{"axes", Ints{1}}});
  const auto refused = [&](const std::string& output, OutputKind kind) {
    return test::error_message(ErrorCode::usage, [&] {
      file.whole({.outputs = {{output, kind}}});
    });
  };
  const std::string row = refused("row", OutputKind::map);
  EXPECT_NE(row.find("'row' has shape [6] for each image"), std::string::npos) << row;
  EXPECT_NE(row.find("[classes, height, width]"), std::string::npos) << row;
  EXPECT_TRUE(row.ends_with("it can be logits, scores (labels, each on or off) or values")) << row;
  for (const auto kind : {OutputKind::map, OutputKind::logits}) {
    EXPECT_NE(refused("one", kind).find("two classes or more"), std::string::npos);
    EXPECT_NE(refused("first", kind).find("cannot be a map"), std::string::npos);
  }
  refused("", OutputKind::map);
  const auto kinds = [&](OutputKind kind) {
    const auto model = file.whole({.outputs = {{"m", kind}, {"row", OutputKind::logits}}});
    return model.graph.signature.kind.outputs();
  };
  for (const auto kind : {OutputKind::map, OutputKind::logits}) {
    EXPECT_EQ(kinds(kind)[0].kind, OutputKind::map);
    EXPECT_EQ(kinds(kind)[1].kind, OutputKind::logits);
  }
  // So is that of an only row.
  const Headed alone =
      Headed({"row"}).ends("GlobalAveragePool", {"m"}, {"p"}).ends("Flatten", {"p"}, {"row"});
  EXPECT_NE(test::error_message(ErrorCode::usage,
                                [&] {
                                  alone.whole({.outputs = {{"", OutputKind::map}}});
                                })
                .find("'row' has shape [6]"),
            std::string::npos);
}

TEST(Tail, ArgMaxStaysAndWhatItReadsIsAMapOfClasses) {
  const auto model = Headed({"class"})
                         .ends("Softmax", {"m"}, {"p"}, {{"axis", std::int64_t{1}}})
                         .ends("ArgMax", {"p"}, {"class"}, {{"axis", std::int64_t{1}}})
                         .whole();
  const auto& signature = model.graph.signature;
  ASSERT_TRUE(signature.tail);
  EXPECT_EQ(operators_of(*signature.tail), "ArgMax");
  EXPECT_EQ(signature.tail->outputs.at(0).name, "class");
  ASSERT_EQ(signature.kind.outputs().size(), 1U);
  EXPECT_EQ(signature.kind.outputs()[0].name, "p");
  EXPECT_EQ(signature.kind.outputs()[0].kind, OutputKind::map);
  expect_close(outputs_of(model)[0].value, at::softmax(map(), 1));
  ASSERT_FALSE(model.warnings.empty());
  EXPECT_NE(model.warnings.back().find("ArgMax"), std::string::npos);
}

// The constants of the tail, sizes with the open batch, and an output beside it.
TEST(Tail, HoldsAllThatItReads) {
  const auto model = Headed({"top", "index", "m"})
                         .constant("k", 3)
                         .ends("Shape", {"m"}, {"size"})
                         .constant("zero", 0)
                         .ends("Gather", {"size", "zero"}, {"n"})
                         .constant("rest", -1)
                         .ends("Concat", {"n", "rest"}, {"flat"}, {{"axis", std::int64_t{0}}})
                         .ends("Trilu", {"m"}, {"e"})
                         .ends("Reshape", {"e", "flat"}, {"r"})
                         .ends("TopK", {"r", "k"}, {"top", "index"})
                         .whole();
  const Tail& tail = *model.graph.signature.tail;
  EXPECT_EQ(operators_of(tail), "Concat, Gather, Reshape, Shape, TopK, Trilu");
  EXPECT_EQ(tail.nodes.front().op_type, "Shape");
  EXPECT_EQ(tail.outputs.size(), 3U);
  std::vector<std::string> constants;
  for (const auto& [name, array] : tail.constants) constants.push_back(name);
  std::ranges::sort(constants);
  EXPECT_EQ(constants, (std::vector<std::string>{"k", "rest", "zero"}));
  ASSERT_EQ(model.graph.signature.kind.outputs().size(), 1U);
  EXPECT_EQ(model.graph.signature.kind.outputs()[0].name, "m");
}

std::string refusal_of(const Headed& file, const LoadOptions& options = {}) {
  try {
    file.whole(options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported_model);
    return error.what();
  }
  return "accepted";
}

TEST(Tail, NothingStaysBeforeAConvolution) {
  const auto before =
      refusal_of(Headed({"y"}).ends("Trilu", {"m"}, {"t"}).ends("Conv", {"t", "w"}, {"y"}));
  EXPECT_NE(before.find("operator Trilu"), std::string::npos) << before;
  EXPECT_NE(before.find("Conv"), std::string::npos) << before;
}

// Also one of an operator that no list here has, and of a vendor, with that operator set alone.
TEST(Tail, HoldsAnyOperator) {
  EXPECT_EQ(operators_of(*Headed({"y"}).ends("Newest", {"m"}, {"y"}).whole().graph.signature.tail),
            "Newest");
  Headed file({"y"});
  file.ends("Conv", {"m", "m"}, {"y"}).file.graph.nodes.back().domain = "com.example";
  file.file.domains = {{"com.example", 3}, {"com.other", 1}};
  const auto model = file.whole();
  const Tail& tail = *model.graph.signature.tail;
  EXPECT_EQ(operators_of(tail), "Conv");
  EXPECT_EQ(tail.domains, (std::map<std::string, std::int64_t>{{"com.example", 3}}));
}

// Seven columns of six features through an LSTM of four, both ways, and to three classes.
TEST(Tail, CountsWhatItMultiplies) {
  Headed file({"y"});
  file.initializer("lw", wave({2, 16, 6})).initializer("lr", wave({2, 16, 4}));
  file.initializer("v", wave({8, 3})).initializer("rows", ints({0, 0, -1}));
  file.ends("ReduceMean", {"m"}, {"columns"}, {{"axes", Ints{2}}, {"keepdims", std::int64_t{0}}});
  file.ends("Transpose", {"columns"}, {"steps"}, {{"perm", Ints{2, 0, 1}}});
  file.ends("LSTM", {"steps", "lw", "lr"}, {"both"},
            {{"hidden_size", std::int64_t{4}}, {"direction", std::string("bidirectional")}});
  file.ends("Transpose", {"both"}, {"images"}, {{"perm", Ints{2, 0, 1, 3}}});
  file.ends("Reshape", {"images", "rows"}, {"joined"}).ends("MatMul", {"joined", "v"}, {"y"});
  const Tail& tail = *file.whole().graph.signature.tail;
  EXPECT_EQ(tail.multiplications, 7 * 2 * 16 * (6 + 4) + 7 * 8 * 3);
  // Queries, keys and values of two heads of three features at 9 x 7 places.
  Headed attention({"y"}, 23);
  attention.initializer_of("flat", {0, 6, -1}).ends("Reshape", {"m", "flat"}, {"f"});
  attention.ends("Transpose", {"f"}, {"t"}, {{"perm", Ints{0, 2, 1}}});
  attention.ends("Attention", {"t", "t", "t"}, {"a"},
                 {{"q_num_heads", std::int64_t{2}}, {"kv_num_heads", std::int64_t{2}}});
  attention.initializer("p", wave({6, 5})).node("MatMul", {"a", "p"}, {"y"});
  EXPECT_EQ(attention.whole().graph.signature.tail->multiplications, 2 * 63 * 63 * 6 + 63 * 6 * 5);
  // Operators whose result is as large as that of a known one, and one of which nothing is known.
  Headed pooled({"y", "z"});
  pooled.ends("GlobalLpPool", {"m"}, {"p"}).ends("Flatten", {"p"}, {"row"});
  pooled.initializer("q", wave({6, 5})).node("Gemm", {"row", "q"}, {"y"});
  pooled.ends("Newest", {"m"}, {"n"}).ends("MatMul", {"n", "q"}, {"z"});
  EXPECT_EQ(pooled.whole().graph.signature.tail->multiplications, 6 * 5);
}

// Sizes that cannot be are no end that a runtime would compute: 6 x 9 x 7 elements for 6 x 8 x 7.
TEST(Tail, ShapesThatContradictEachOtherAreRefused) {
  const auto with_rows = [](const Ints& rows) {
    Headed file({"y"});
    file.initializer_of("rows", rows).ends("Reshape", {"m", "rows"}, {"r"});
    file.initializer("v", wave({6 * 8 * 7, 5}));
    return file.ends("MatMul", {"r", "v"}, {"y"});
  };
  const auto refused = [&](Headed file) {
    file.file.graph.inputs[0].shape[2].value = -1;
    return refusal_of(file, {.image_size = {kImage[1], kImage[2]}});
  };
  for (const auto& rows : {Ints{0, -1}, Ints{-1, 6 * 8 * 7}}) {
    const auto text = refused(with_rows(rows));
    EXPECT_NE(text.find("9x7"), std::string::npos) << text;
    EXPECT_NE(text.find("--image_size"), std::string::npos) << text;
  }
  // Rows that go through the images of a batch may stay as they are.
  const auto many = refusal_of(
      Headed({"y"}).initializer_of("rows", {-1, 6 * 9}).ends("Reshape", {"m", "rows"}, {"y"}));
  EXPECT_EQ(many, "accepted");
}

}  // namespace
}  // namespace zsq::models
