// SPDX-License-Identifier: Apache-2.0
// The batch may pass through unchanged (N * 1, N + 0); what would be calculated from it is refused.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "models/aten/program.h"

namespace zsq::models::aten {
namespace {

using Arguments = std::vector<Value>;

constexpr std::size_t kMaxList = 100'000;

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorCode::unsupported_model, what); }

[[noreturn]] void fail_of_batch(const std::string& what) {
  fail(what +
       " the batch size, which is open: save the program without run_decompositions(), or "
       "export the network as ONNX; if it moves channels into the dimension of the batch, as "
       "x.view(n * c // 2, 2, h * w) does, keep the two apart: x.view(n, c // 2, 2, h * w)");
}

struct Number {
  bool whole;
  std::int64_t integer;
  double real;
};

std::optional<Number> number_in(const Value& value) {
  if (const auto* flag = value.as<bool>()) return Number{true, *flag, *flag ? 1.0 : 0.0};
  if (const auto* whole = value.as<std::int64_t>())
    return Number{true, *whole, static_cast<double>(*whole)};
  if (const auto* real = value.as<double>()) return Number{false, 0, *real};
  return std::nullopt;
}

bool is_batch(const Number& number) { return number.whole && number.integer == onnx::kBatch; }

std::int64_t floored(std::int64_t a, std::int64_t b) {
  if (b == 0 || (b == -1 && a == std::numeric_limits<std::int64_t>::min())) fail("divides by zero");
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

Value whole_result(const std::string& op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflows = false;
  if (op == "add") overflows = __builtin_add_overflow(a, b, &result);
  if (op == "sub") overflows = __builtin_sub_overflow(a, b, &result);
  if (op == "mul") overflows = __builtin_mul_overflow(a, b, &result);
  if (op == "floordiv") result = floored(a, b);
  if (op == "remainder") result = a - floored(a, b) * b;
  if (overflows) fail("leaves the range of 64 bits");
  return {result};
}

Value real_result(const std::string& op, double a, double b) {
  if (op == "add") return {a + b};
  if (op == "sub") return {a - b};
  if (op == "mul") return {a * b};
  if (op == "div") return {a / b};
  if (op == "floordiv") return {std::floor(a / b)};
  return {a - std::floor(a / b) * b};
}

std::optional<Value> arithmetic(std::string op, const Number& a, const Number& b) {
  if (op == "floor_divide") op = "floordiv";
  if (op == "truediv") op = "div";
  if (op == "fmod" || op == "mod") op = "remainder";
  if (op != "add" && op != "sub" && op != "mul" && op != "div" && op != "floordiv" &&
      op != "remainder") {
    return std::nullopt;
  }
  const bool neutral = op == "add"   ? a.real == 0 || b.real == 0
                       : op == "mul" ? a.real == 1 || b.real == 1
                       : op == "sub" ? b.real == 0
                                     : b.real == 1 && op == "floordiv";
  if (is_batch(a) || is_batch(b)) {
    if (!neutral) fail_of_batch("calculates with");
    return Value{onnx::kBatch};
  }
  if (a.whole && b.whole && op != "div") return whole_result(op, a.integer, b.integer);
  return real_result(op, a.real, b.real);
}

std::optional<Value> comparison(const std::string& op, const Number& a, const Number& b) {
  const bool known =
      op == "eq" || op == "ne" || op == "lt" || op == "le" || op == "gt" || op == "ge";
  if (!known) return std::nullopt;
  if (is_batch(a) != is_batch(b)) fail_of_batch("depends on");
  if (op == "eq") return Value{a.real == b.real};
  if (op == "ne") return Value{a.real != b.real};
  if (op == "lt") return Value{a.real < b.real};
  if (op == "le") return Value{a.real <= b.real};
  if (op == "gt") return Value{a.real > b.real};
  return Value{a.real >= b.real};
}

std::optional<Value> of_two_numbers(const std::string& op, const Number& a, const Number& b) {
  if (op == "min" || op == "max") {
    if (is_batch(a) != is_batch(b)) fail_of_batch("depends on");
    const bool first = (a.real <= b.real) == (op == "min");
    const auto& taken = first ? a : b;
    return taken.whole ? Value{taken.integer} : Value{taken.real};
  }
  if (op == "pow") {
    if (is_batch(a) || is_batch(b)) fail_of_batch("calculates with");
    const double power = std::pow(a.real, b.real);
    const bool whole = a.whole && b.whole && b.integer >= 0 && std::abs(power) < 9e15;
    return whole ? Value{static_cast<std::int64_t>(power)} : Value{power};
  }
  if (op == "__and__") return Value{a.real != 0 && b.real != 0};
  if (op == "__or__") return Value{a.real != 0 || b.real != 0};
  if (auto result = comparison(op, a, b)) return result;
  return arithmetic(op, a, b);
}

Value to_whole(const Number& number) {
  if (number.whole) return {number.integer};
  if (!(std::abs(number.real) < 9e18)) fail("makes a whole number of what has none");
  return {static_cast<std::int64_t>(number.real)};
}

// ceil, floor, ...: whole numbers stay; sqrt, exp and log are real.
std::optional<Value> function_of(const std::string& op, const Number& a) {
  const bool rounds = op == "ceil" || op == "floor" || op == "round" || op == "trunc";
  if (rounds && a.whole) return Value{a.integer};
  if (op == "ceil") return to_whole({false, 0, std::ceil(a.real)});
  if (op == "floor") return to_whole({false, 0, std::floor(a.real)});
  if (op == "round") return to_whole({false, 0, std::nearbyint(a.real)});
  if (op == "trunc") return to_whole(a);
  const bool real = op == "sqrt" || op == "exp" || op == "log" || op == "abs";
  if (!real) return std::nullopt;
  if (is_batch(a)) fail_of_batch("calculates with");
  if (op == "abs")
    return a.whole && a.integer < 0 ? whole_result("sub", 0, a.integer)
           : a.whole                ? Value{a.integer}
                                    : Value{std::abs(a.real)};
  return Value{op == "sqrt"  ? std::sqrt(a.real)
               : op == "exp" ? std::exp(a.real)
                             : std::log(a.real)};
}

std::optional<Value> of_one_number(const std::string& op, const Number& a) {
  if (op == "int" || op == "Int" || op == "IntImplicit") return to_whole(a);
  if (op == "float" || op == "Float" || op == "FloatImplicit") {
    if (is_batch(a)) fail_of_batch("calculates with");
    return Value{a.real};
  }
  if (op == "bool" || op == "Bool") return Value{a.real != 0};
  if (op == "__not__") return Value{a.real == 0};
  if (op == "neg" && !is_batch(a))
    return a.whole ? whole_result("sub", 0, a.integer) : Value{-a.real};
  if (op == "NumToTensor" || op == "ScalarImplicit" || op == "tensor" || op == "scalar_tensor") {
    return a.whole ? Value{a.integer} : Value{a.real};
  }
  return function_of(op, a);
}

std::size_t index_in(const std::vector<Value>& list, std::int64_t index) {
  const auto size = static_cast<std::int64_t>(list.size());
  if (index < -size || index >= size) fail("index " + std::to_string(index) + " is out of range");
  return static_cast<std::size_t>(index < 0 ? index + size : index);
}

Value sliced(const std::vector<Value>& list, const Arguments& arguments) {
  const auto size = static_cast<std::int64_t>(list.size());
  const auto bound = [&](std::size_t at, std::int64_t otherwise) {
    const auto* given = at < arguments.size() ? arguments[at].as<std::int64_t>() : nullptr;
    const auto index = given ? *given : otherwise;
    return std::clamp(index < 0 ? index + size : index, std::int64_t{0}, size);
  };
  const auto* step = arguments.size() > 3 ? arguments[3].as<std::int64_t>() : nullptr;
  if (step && *step != 1) fail("only steps of 1 are known on lists");
  const auto start = bound(1, 0), end = std::max(start, bound(2, size));
  return make_list({list.begin() + start, list.begin() + end});
}

bool same(const Value& a, const Value& b) {
  const auto x = number_in(a), y = number_in(b);
  if (x && y) return x->real == y->real;
  const auto *s = a.as<std::string>(), *t = b.as<std::string>();
  return (s && t && *s == *t) || (a.is_none() && b.is_none());
}

std::optional<Value> on_lists(const std::string& op, const Arguments& arguments) {
  const auto* list = arguments[0].list();
  if (!list) return std::nullopt;
  if (op == "len") return Value{static_cast<std::int64_t>(list->size())};
  if (op == "slice") return sliced(*list, arguments);
  if (op == "list") return make_list(*list);
  if (arguments.size() < 2) return std::nullopt;
  if (op == "__getitem__" || op == "getitem" || op == "select") {
    const auto* index = arguments[1].as<std::int64_t>();
    if (!index) fail("the index must be a whole number");
    return (*list)[index_in(*list, *index)];
  }
  if (op == "__contains__") {
    return Value{std::any_of(list->begin(), list->end(),
                             [&](const auto& item) { return same(item, arguments[1]); })};
  }
  if (op == "append") {
    if (list->size() >= kMaxList) fail("makes a list too long");
    (*arguments[0].as<Value::List>())->push_back(arguments[1]);
    return arguments[0];
  }
  const auto* other = arguments[1].list();
  if (!other || (op != "add" && op != "eq" && op != "ne")) return std::nullopt;
  if (op == "add") {
    if (list->size() + other->size() > kMaxList) fail("makes a list too long");
    auto joined = *list;
    joined.insert(joined.end(), other->begin(), other->end());
    return make_list(std::move(joined));
  }
  return Value{std::equal(list->begin(), list->end(), other->begin(), other->end(), same) ==
               (op == "eq")};
}

std::optional<Value> on_tensors(const std::string& op, const Arguments& arguments,
                                const ShapeOf& shape_of) {
  const auto* tensor = arguments[0].tensor();
  if (!tensor) return std::nullopt;
  if (op == "requires_grad" || op == "is_cuda" || op == "is_floating_point") {
    return Value{op == "is_floating_point"};
  }
  if (op == "device") return Value{};
  if (op != "size" && op != "sym_size" && op != "dim" && op != "numel") return std::nullopt;
  const auto shape = shape_of(*tensor);
  if (op == "dim") return Value{static_cast<std::int64_t>(shape.size())};
  Arguments sizes;
  for (const auto size : shape) sizes.push_back({size});
  if (op == "numel") {
    Value product{std::int64_t{1}};
    for (const auto& size : sizes)
      product = *arithmetic("mul", *number_in(product), *number_in(size));
    return product;
  }
  const auto* axis = arguments.size() > 1 ? arguments[1].as<std::int64_t>() : nullptr;
  return axis ? sizes[index_in(sizes, *axis)] : make_list(std::move(sizes));
}

}  // namespace

namespace {

// ATen's codes of whole types are 0 to 4.
Value as_type(const Number& a, const Arguments& arguments) {
  const auto* type = arguments.size() > 1 ? arguments[1].as<std::int64_t>() : nullptr;
  if (type && *type >= 0 && *type <= 4) return to_whole(a);
  if (type && *type >= 5 && *type <= 7 && !is_batch(a)) return {a.real};
  return a.whole ? Value{a.integer} : Value{a.real};
}

}  // namespace

std::optional<Value> run_on_scalars(const std::string& op, const Arguments& arguments,
                                    const ShapeOf& shape_of) {
  if (op == "format" || op == "warn") return Value{std::string("text")};
  if (op == "device" && arguments.size() <= 2 && !arguments.empty() &&
      arguments[0].as<std::string>())
    return arguments[0];
  if (op == "is_grad_enabled" || op == "is_autocast_enabled") return Value{false};
  if (arguments.empty()) return std::nullopt;
  const auto a = number_in(arguments[0]);
  if (arguments.size() == 1 && a) return of_one_number(op, *a);
  if (a && (op == "to" || op == "_to_copy")) return as_type(*a, arguments);
  if (auto result = on_lists(op, arguments)) return result;
  if (auto result = on_tensors(op, arguments, shape_of)) return result;
  if (arguments.size() < 2) return std::nullopt;
  if (op == "__is__" || op == "__isnot__") {
    const bool none = arguments[0].is_none() && arguments[1].is_none();
    return Value{none == (op == "__is__")};
  }
  const auto b = number_in(arguments[1]);
  if (a && b) return of_two_numbers(op, *a, *b);
  const auto *s = arguments[0].as<std::string>(), *t = arguments[1].as<std::string>();
  if (s && t && (op == "eq" || op == "ne")) return Value{(*s == *t) == (op == "eq")};
  return std::nullopt;
}

}  // namespace zsq::models::aten
