// SPDX-License-Identifier: Apache-2.0
// An exported file takes and gives what the network's file did: names, layout, the last function in
// float and the shape of the output.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "exporters/registry.h"
#include "formats/onnx.h"
#include "models/execute.h"
#include "models/load.h"
#include "quant/qdq_chain.h"
#include "tests/exporters/networks.h"
#include "tests/exporters/python.h"
#include "tests/support/temp_folder.h"

namespace zsq::exporters {
namespace {

using models::NodeId;
using models::OutputFunction;

quant::Student student(const models::Signature& signature) {
  auto model = test::awkward_network();
  model.graph.signature = signature;
  return test::student_of(model, test::scheme(8, 8));
}

TEST(Signature, IsKeptByOnnxFiles) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  const test::TempFolder folder;
  std::vector<models::Signature> signatures(4);
  signatures[1] = {"image:0", "Identity", true, {}, OutputFunction::softmax};
  signatures[2] = {"data", "scores", false, {5, 1, 1}, OutputFunction::sigmoid};
  signatures[3] = {"conv", "end", false, {}, OutputFunction::log_softmax};
  std::vector<std::filesystem::path> paths;
  std::vector<quant::Student> students;
  for (std::size_t i = 0; i < signatures.size(); ++i) {
    students.push_back(student(signatures[i]));
    paths.push_back(folder / (std::to_string(i) + ".onnx"));
    export_onnx(students.back(), paths.back(), {});
  }
  const auto images = test::normal({4, 3, 16, 16}, 9);
  const auto ran = test::run_files(paths, images);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const auto& graph = students[i].graph;
    const auto logits = models::execute(graph, students[i].parameters, images);
    const auto expected = models::as_file_output(graph, logits);
    ASSERT_EQ(ran.outputs[i].sizes(), expected.sizes());
    EXPECT_LE((ran.outputs[i] - expected).abs().max().item<double>(),
              0.02 * expected.abs().max().item<double>());
    EXPECT_EQ(ran.lines[i].find(signatures[i].input + " " + signatures[i].output + " "), 0U)
        << ran.lines[i];
  }
  const auto file = formats::onnx::read(paths[1]).graph;
  EXPECT_EQ(file.nodes[0].op_type, "Transpose");
  EXPECT_EQ(file.inputs[0].shape.at(3).value, 3);
  EXPECT_EQ(file.nodes.back().op_type, "Softmax");
}

// Tokens go through a linear layer as rows of a matrix, in integers.
TEST(Signature, TokensRunInIntegerProducts) {
  ZSQ_SKIP_WITHOUT_PYTHON();
  const test::TempFolder folder;
  test::NetworkBuilder net({3, 4, 4}, test::varied_parameters(3));
  NodeId x = net.conv_bn_relu("stem", net.input(), 3, 8);
  x = net.op("tokens", models::Transpose{{0, 2, 1}},
             {net.op("places", models::Reshape{{8, 16}}, {x})});
  x = net.relu("relu", net.linear("wide", x, 8, 12));
  x = net.linear("back", x, 12, 8);
  x = net.op("mean", models::Reduce{models::ReduceKind::mean, {1}, false}, {x});
  const auto model = net.finish(net.linear("head", x, 8, 5), 5);
  const auto small = test::student_of(model, test::scheme(8, 8));
  const auto path = folder / "tokens.onnx";
  const auto report = export_onnx(small, path, {});
  const auto images = test::normal({4, 3, 4, 4}, 9);
  const auto ran = test::run_files({path}, images);
  const auto expected = models::execute(small.graph, small.parameters, images);
  EXPECT_LE((ran.outputs[0] - expected).abs().max().item<double>(),
            0.02 * expected.abs().max().item<double>());
  std::size_t products = 0;
  for (std::size_t at = 0; (at = ran.lines[0].find("QGemm", at)) != std::string::npos; ++at)
    ++products;
  EXPECT_EQ(products, 3U) << ran.lines[0];
  // The file is read back, too: by measures of a run, eval and check.
  models::LoadOptions options;
  options.make_quantize_chain = quant::quantize_chain_factory();
  const auto read = models::load(path, options);
  const auto again = models::execute(read.graph, read.parameters, images);
  EXPECT_LE((again - expected).abs().max().item<double>(),
            0.02 * expected.abs().max().item<double>());
}

}  // namespace
}  // namespace zsq::exporters
