// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "formats/script_syntax.h"
#include "tests/formats/helpers.h"

namespace zsq::formats::script_parser_test {
namespace {

using Kind = Expression::Kind;

constexpr std::string_view kSource = R"py(class Net(Module):
  __parameters__ = ["weight", ]
  weight : Tensor
  size : Final[Tuple[int, int]] = (3, 3)
  __annotations__["0"] = __torch__.torch.nn.modules.conv.Conv2d
  def forward(self: __torch__.net.Net,
    x: Tensor,
    scale: float=-1.0000000000000001e-05) -> Tuple[Tensor, int]:
    weight = self.weight  # a comment
    a, b, = torch.chunk(x, 2, 1)

    _0 = (getattr(self, "0")).forward(torch.add(a, b, alpha=1), )
    if torch.ne(torch.dim(x), 4):
      ops.prim.RaiseException("expected \"4\" ({})")
    else:
      pass
    for i in range(3):
      sizes = annotate(List[int], [1, -2, size[0]])
    while True:
      return (_0, None)
    return _0
def helper(x: Optional[Tensor]=None) -> Tensor:
  return x
)py";

TEST(ScriptParser, ReadsWhatTorchScriptPrints) {
  const auto file = parse_script(kSource);
  ASSERT_EQ(file.size(), 2u);
  ASSERT_TRUE(file.count("helper"));
  EXPECT_EQ(file.at("helper").parameters[0].otherwise->kind, Kind::none);
  const auto& forward = file.at("Net.forward");
  EXPECT_EQ(forward.line, 6);
  ASSERT_EQ(forward.parameters.size(), 3u);
  EXPECT_EQ(forward.parameters[1].name, "x");
  EXPECT_FALSE(forward.parameters[1].otherwise);
  EXPECT_EQ(forward.parameters[2].otherwise->real, -1e-5);
  const auto& body = forward.body;
  ASSERT_EQ(body.size(), 7u);
  EXPECT_EQ(body[0].kind, Statement::Kind::assign);
  EXPECT_FALSE(body[0].unpacks);
  EXPECT_EQ(body[0].value.kind, Kind::attribute);
  EXPECT_EQ(body[0].value.text, "weight");
  EXPECT_EQ(body[1].targets, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(body[1].unpacks);
  EXPECT_EQ(body[2].line, 12);
  const auto& call = body[2].value;
  ASSERT_EQ(call.kind, Kind::call);
  ASSERT_EQ(call.items.size(), 2u);
  EXPECT_EQ(call.items[0].text, "forward");
  EXPECT_EQ(call.items[1].keywords, (std::vector<std::string>{"", "", "alpha"}));
  EXPECT_EQ(body[3].kind, Statement::Kind::branch);
  EXPECT_EQ(body[3].body[0].kind, Statement::Kind::evaluate);
  EXPECT_EQ(body[3].otherwise[0].kind, Statement::Kind::pass);
  EXPECT_EQ(body[4].kind, Statement::Kind::iterate);
  const auto& list = body[4].body[0].value.items[2];
  ASSERT_EQ(list.kind, Kind::list);
  EXPECT_EQ(list.items[1].integer, -2);
  EXPECT_EQ(list.items[2].kind, Kind::subscript);
  EXPECT_EQ(body[5].kind, Statement::Kind::repeat);
  EXPECT_EQ(body[5].body[0].value.kind, Kind::tuple);
  EXPECT_EQ(body[6].kind, Statement::Kind::give);
}

TEST(ScriptParser, ErrorsNameTheLineAndWhatWasExpected) {
  const auto refused = [](const std::string& source, std::string_view part) {
    expect_error([&] { parse_script(source); }, ErrorCode::bad_input, part);
  };
  refused("def f(x):\n  y = (x\n", "a bracket is never closed");
  refused("def f(x):\n  y = x)\n", "line 2: a bracket is closed");
  refused("def f(x):\n  y = 'x\n", "line 2: a string is never closed");
  refused("def f(x):\n  y = $\n", "line 2: character 36");
  refused("def f(x):\n    y = x\n  z = x\n", "line 3: its indentation");
  refused("def f(x):\n  y = x z\n", "line 2: the end of the statement was expected, but 'z'");
  refused("def f(x):\n  y = \n", "an expression was expected, but the end of the line");
  refused("def f(x)\n  y = x\n", "':' was expected");
  refused("def f(x):\nreturn x\n", "an indented block was expected");
  refused("def f(x):\n  return 1" + std::string(500, '0') + "e999999\n", "number of 64 bits");
  refused("def f(x):\n  return " + std::string(1000, '[') + std::string(1000, ']') + "\n",
          "a shallower expression");
  std::string chain = "x";
  for (int i = 0; i < 1000; ++i) chain += ".y";
  refused("def f(x):\n  return " + chain + "\n", "a shorter chain");
  std::string blocks = "def f(x):\n";
  for (int i = 1; i < 300; ++i) blocks += std::string(static_cast<std::size_t>(i), ' ') + "if x:\n";
  refused(blocks, "blocks are nested too deeply");
  expect_error([] { parse_script("def f(self):\n  self.x = 1\n"); }, ErrorCode::unsupported_model,
               "model.eval()");
}

TEST(ScriptParser, DamagedTextIsAnErrorOrHarmless) {
  std::mt19937 random(3);
  const std::string source(kSource);
  for (std::size_t length = 0; length < source.size(); ++length) {
    try {
      parse_script(std::string_view(source).substr(0, length));
    } catch (const Error&) {
    }
  }
  for (int i = 0; i < 20'000; ++i) {
    auto changed = source;
    for (int j = 0; j < 3; ++j) {
      const auto at = random() % changed.size();
      changed[at] = random() % 2 ? source[random() % source.size()] : static_cast<char>(random());
    }
    try {
      parse_script(changed);
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace zsq::formats::script_parser_test
