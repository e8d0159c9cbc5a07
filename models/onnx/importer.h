// SPDX-License-Identifier: Apache-2.0
// State of one import, and the view of one node that every converter works through.
//
// A name in the file stands for an activation (a node of the graph), for a constant known at
// import, for an activation in integers between QuantizeLinear and DequantizeLinear, or for a
// sequence. The batch size is opaque: in constants it is the number kBatch, which may be moved
// about but not calculated with. That is enough to fold all shape arithmetic that exporters write.
#pragma once
#include <map>
#include <optional>
#include <set>

#include "models/execute.h"
#include "models/load.h"
#include "models/tail.h"

namespace zsq::models::onnx {

namespace proto = zsq::formats::onnx;

// Exact in float32 too, because some exporters cast shapes to float and back.
inline constexpr std::int64_t kBatch = std::int64_t{1} << 40;
// What to do about a network that calculates with it.
inline constexpr const char* kExportWithFixedBatch =
    ", which is open: export the network with a batch of fixed size (no dynamic_shapes, no "
    "dynamic_axes), which zsq opens again";

// No size of a real image, window or pad comes near; products of a few stay far from overflow.
inline constexpr std::int64_t kMaxExtent = 1 << 16;

// One node can split a map into as many parts as it has channels, and names are compared with all
// others.
inline constexpr std::size_t kMaxGraphNodes = 20'000;

// Each use of a weight is a copy, and folding makes more constants: a node of twenty bytes may ask
// for as much memory as the largest weight has. So all of these together are bounded by the bytes
// of the initializers.
inline constexpr double kFreeConstantBytes = 256 << 20, kMaxConstantCopies = 16;

struct QuantizedActivation {
  std::string name;  // wanted for the node to be
  QuantizeChain chain;
};

// A LogSoftmax is several nodes; at the end of a network they are one function (ending.h).
struct LogSoftmaxPart {
  NodeId x;
  std::int64_t axis;
};

struct Value {
  NodeId node = -1;     // an activation
  at::Tensor constant;  // defined: a constant
  std::optional<QuantizedActivation> quantized = {};
  std::vector<NodeId> sequence = {};
  std::optional<NodeId> flattened = {};  // all elements of a node in one row, the batch included
  // The file sees [N x tokens, features] of a node [N, tokens, features]: a matrix for Gemm.
  bool is_matrix = false;
  // The node's dimensions in another order, in which the batch is not first (permuted.h).
  std::optional<std::vector<std::int64_t>> permuted = {};
  bool lifted = false;  // the file sees the node's dimensions without the batch (lifted.h)

  // The file sees the dimensions of the node.
  bool is_plain() const {
    return node >= 0 && !quantized && !flattened && !is_matrix && !permuted && !lifted;
  }
};

enum class InputLayout { channels_first, channels_last, one_image };

struct FileOutput {
  std::string value, name;  // name: for users
  // The dimension over which the file then looks for the largest: that of the classes.
  std::optional<std::int64_t> classes = {};
};

// Takes initializers, the input and then node after node, in topological order.
class Importer {
 public:
  Importer(std::int64_t opset, const LoadOptions& options);

  // has_four_bits: its type is UINT4, although the tensor holds bytes.
  void add_initializer(const std::string& name, at::Tensor value, bool has_four_bits = false);
  // N x C x H x W, N x H x W x C if the channels are last, C x H x W of one image, or N x C x L; -1
  // leaves a dimension open. Error if that is no batch of images or signals.
  void add_input(const std::string& name, Shape shape,
                 InputLayout layout = InputLayout::channels_first);
  void count_use(const std::string& name) { ++uses_[name]; }
  void charge(double bytes);  // for a constant to be made; Error(bad_input) beyond the bound above
  // before_convolution: of the file, so that the node cannot stay as it is.
  void convert(const proto::Node& node, bool before_convolution = false);
  // What has this shape, of a batch of one, for a value that no node of the graph gives; `order`:
  // Value::permuted.
  void stand_in(const std::string& name, Shape shape,
                std::optional<std::vector<std::int64_t>> order = {});
  const Value* find(const std::string& name) const;  // null if nothing has that name
  const Graph& graph() const { return model_.graph; }
  const std::string& input_name() const { return input_name_; }
  std::int64_t fixed_batch() const { return fixed_batch_; }  // -1: the file leaves it open
  const Shape& shape(NodeId node) const { return shapes_[static_cast<std::size_t>(node)]; }
  std::vector<std::string>& warnings() { return model_.warnings; }
  // What the file gives, or what its tail reads.
  Model finish(const std::vector<FileOutput>& outputs, std::shared_ptr<const Tail> tail = {});

 private:
  friend class Call;

  std::string describe_inputs(const proto::Node& node) const;
  NodeId output_node(const FileOutput& output) const;
  void set_output(const FileOutput& output);
  void set_outputs(const std::vector<FileOutput>& outputs);
  NodeId add_node(const std::string& name, Op op, std::vector<NodeId> inputs);
  NodeId as_row(NodeId output, const std::string& name);  // [N, K]
  NodeId row_of(const std::vector<NodeId>& nodes, const std::vector<FileOutput>& outputs);
  std::string unique_name(const std::string& wanted);

  const std::int64_t opset_;
  const LoadOptions& options_;
  Model model_;
  std::map<std::string, Value> values_;
  std::set<std::string> initializers_, four_bit_initializers_, node_names_;
  std::map<std::string, int> uses_;                 // of each name, by live nodes and as the output
  std::vector<Shape> shapes_;                       // index = NodeId, for a batch of one
  std::map<NodeId, LogSoftmaxPart> log_softmaxes_;  // by their last node
  std::vector<std::string> in_training_mode_;       // BatchNormalization nodes
  std::string input_name_;
  std::int64_t fixed_batch_ = -1;
  double initializer_bytes_ = 0, made_bytes_ = 0;
};

// One node of the file. Inputs and outputs by position, attributes by name.
class Call {
 public:
  // stand_ins: what is read in place of the node's inputs, by their positions.
  Call(Importer& importer, const proto::Node& node, std::map<std::size_t, Value> stand_ins = {})
      : importer_(importer), node_(node), stand_ins_(std::move(stand_ins)) {}

  // Of another node, or of this one with other attributes, which must outlive it.
  Call with(const proto::Node& node, std::map<std::size_t, Value> stand_ins = {}) const {
    return {importer_, node, std::move(stand_ins)};
  }

  const proto::Node& node() const { return node_; }
  std::int64_t opset() const { return importer_.opset_; }
  const LoadOptions& options() const { return importer_.options_; }
  Model& model() { return importer_.model_; }
  // The open batch, or its size in a file that fixes it.
  bool is_batch(std::int64_t size) const {
    return size == kBatch || (size > 0 && size == importer_.fixed_batch_);
  }
  std::int64_t fixed_batch() const { return importer_.fixed_batch_; }  // -1: it is open
  [[noreturn]] void fail(const std::string& what) const;  // Error(unsupported_model) names the node
  [[noreturn]] void contradict(const std::string& what) const;  // the same as a ShapeError

  std::int64_t integer(const std::string& attribute, std::int64_t otherwise) const;
  double number(const std::string& attribute, double otherwise) const;
  std::string text(const std::string& attribute, const std::string& otherwise) const;
  std::optional<std::vector<std::int64_t>> integers(const std::string& attribute) const;
  std::optional<std::vector<double>> numbers(const std::string& attribute) const;
  std::optional<at::Tensor> tensor(const std::string& attribute) const;

  std::size_t inputs() const { return node_.inputs.size(); }
  bool has(std::size_t input) const { return input < inputs() && !node_.inputs[input].empty(); }
  // Error(bad_input): the node lacks that input, or nothing before it produces it.
  const std::string& input_name(std::size_t input) const;
  const Value& value(std::size_t input) const;
  bool is_constant(std::size_t input) const { return value(input).constant.defined(); }
  const at::Tensor& constant(std::size_t input) const;
  std::vector<std::int64_t> integers(std::size_t input) const;  // a constant, as a list
  double scalar(std::size_t input) const;                       // a constant of one element
  NodeId activation(std::size_t input) const;
  NodeId operand(std::size_t input);  // the same, or a constant as a Parameter node
  // A Parameter node of a constant that is made of the input.
  NodeId operand(std::size_t input, const at::Tensor& value);
  NodeId made_up(const at::Tensor& value);  // a Parameter node of a constant that no file names
  NodeId made_up(double value);
  const Shape& shape(NodeId node) const { return importer_.shape(node); }
  bool has_one_use(std::size_t input) const;  // under all names that stand for the same node
  bool is_initializer(std::size_t input) const;
  bool is_four_bit_initializer(std::size_t input) const;

  // A list that is an attribute up to some opset and an input after it; none: neither is there.
  std::optional<std::vector<std::int64_t>> integers_of(const std::string& attribute,
                                                       std::size_t input) const;

  // Before a constant is made whose size is not that of one input: Importer::charge().
  void charge(double elements, at::ScalarType type) const;
  void charge_broadcast(const at::Tensor& a, const at::Tensor& b) const;

  // The name in the file, unless another layer already has that tensor: then "<layer>.<role>".
  std::string parameter(const std::string& layer, const std::string& role, std::size_t input,
                        const at::Tensor& value);
  // The module that a weight "<module>.weight" belongs to, else the node's own name.
  std::string layer_name(std::size_t weight);
  std::string name() const;  // as in the file, or made up where it has none
  std::string unique_name() { return unique_name(name()); }
  std::string unique_name(const std::string& wanted) { return importer_.unique_name(wanted); }

  NodeId append(const std::string& name, Op op, std::vector<NodeId> inputs,
                std::map<std::string, std::string> params = {});
  void bind(Value value, std::size_t output = 0);   // what the node's output stands for
  NodeId result() const;                            // what output 0 is bound to
  const Value* bound(std::size_t output) const;     // null: nothing is bound to it
  NodeId part(Op op, std::vector<NodeId> inputs) {  // append under a name of its own
    return append(unique_name(), std::move(op), std::move(inputs));
  }
  NodeId emit(Op op, std::vector<NodeId> inputs);  // append and bind under the node's own name
  void remember_training_mode(const std::string& layer) {
    importer_.in_training_mode_.push_back(layer);
  }
  void remember_log_softmax(NodeId last, LogSoftmaxPart part) {
    importer_.log_softmaxes_[last] = part;
  }

 private:
  Importer& importer_;
  const proto::Node& node_;
  const std::map<std::size_t, Value> stand_ins_;
};

using Convert = void (*)(Call&);
using Fold = at::Tensor (*)(const Call&);

// How an operator is read: `fold` where all its inputs are constants, else `convert`.
struct Rule {
  Convert convert = nullptr;
  Fold fold = nullptr;
};
const std::map<std::string, Rule>& registry();

}  // namespace zsq::models::onnx
