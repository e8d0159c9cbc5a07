// SPDX-License-Identifier: Apache-2.0
// libtorch's operators on tensors of the emulated device: their CPU implementations, on the same
// memory.
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include <set>

#include "tests/support/emulated_cuda/device_internals.h"
#include "tests/support/emulated_cuda/grid.h"

namespace zsq::test {
namespace {

const c10::Device kDevice(c10::kCUDA, 0);

// Operators whose CUDA implementation reads numbers back.
const std::set<std::string> kReadBack = {
    "aten::_local_scalar_dense", "aten::nonzero",  "aten::equal",
    "aten::masked_select",       "aten::_unique2", "aten::unique_dim",
    "aten::unique_consecutive",  "aten::bincount", "aten::repeat_interleave",
};

// The memory of a tensor on the device as a tensor of the host. Both own it.
at::Tensor host_of(const at::Tensor& memory) {
  const auto& storage = memory.storage();
  c10::DataPtr data(
      const_cast<void*>(storage.data()), new at::Tensor(memory),
      [](void* held) { delete static_cast<at::Tensor*>(held); }, c10::kCPU);
  at::Tensor host = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(c10::Storage::use_byte_size_t(), storage.nbytes(), std::move(data),
                   c10::GetAllocator(c10::kCPU), /*resizable=*/true),
      c10::DispatchKeySet(c10::DispatchKey::CPU), memory.dtype());
  auto* impl = host.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(memory.sizes(), memory.strides(), memory.storage_offset());
  if (memory.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  return host;
}

// f(tensor) for every tensor in an argument or result, in place of it.
template <class F>
c10::IValue map_tensors(const c10::IValue& value, const F& f) {
  if (value.isTensor()) return f(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& t : value.toTensorVector()) list.push_back(f(t));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& t : value.toOptionalTensorVector())
      list.push_back(t ? std::optional(f(*t)) : t);
    return list;
  }
  return value;
}

// One call: the device's tensors are exchanged for tensors of the host, and the results back.
class HostCall {
 public:
  c10::IValue to_host(const c10::IValue& value) {
    if (value.isDevice()) return c10::IValue(c10::Device(c10::kCPU));
    return map_tensors(value, [&](const at::Tensor& t) -> at::Tensor {
      if (!t.defined() || !t.is_cuda()) return t;
      return pairs_.emplace_back(t, host_of(t)).second;
    });
  }
  // An argument that comes back is itself, a view of one a view of it; all else is copied into
  // memory of the device. For each tensor `memory` gets that memory, or an undefined tensor.
  c10::IValue to_device(const c10::IValue& value, std::vector<at::Tensor>& memory) const {
    return map_tensors(value, [&](const at::Tensor& t) -> at::Tensor {
      at::Tensor& copied = memory.emplace_back();
      if (!t.defined()) return t;
      for (const auto& [own, host] : pairs_) {
        if (host.is_same(t)) {
          if (t.sizes() == own.sizes()) return own;
          own.resize_(t.sizes());  // an empty tensor for the result
          copied = host_of(own).copy_(t);
          return own;
        }
        if (host.is_alias_of(t))
          return at::as_strided(own, t.sizes(), t.strides(), t.storage_offset());
      }
      const at::Tensor dense = t.is_non_overlapping_and_dense() ? t : t.contiguous();
      const at::Tensor own =
          at::empty_strided(t.sizes(), dense.strides(), t.options().device(kDevice));
      copied = host_of(own).copy_(t);
      return own;
    });
  }

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs_;
};

// What the current stream does with the memory of arguments.
void touch_arguments(const c10::OperatorHandle& op, const torch::jit::Stack& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto* alias = op.schema().arguments()[i].alias_info();
    map_tensors(arguments[i], [&](const at::Tensor& t) {
      if (t.defined() && t.has_storage())
        touched(op.schema().name(), t.storage().data(), alias && alias->isWrite());
      return t;
    });
  }
}

// The same call again, on the same memory.
void keep_call(const c10::OperatorHandle& op, const torch::jit::Stack& arguments,
               const std::vector<at::Tensor>& memory) {
  emulated_cuda::recording->push_back([op, arguments, memory] {
    touch_arguments(op, arguments);
    for (const at::Tensor& written : memory)
      if (written.defined()) touched(op.schema().name(), written.storage().data(), true);
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    auto stack = arguments;
    op.callBoxed(&stack);
    auto place = memory.begin();
    for (const auto& result : stack)
      map_tensors(result, [&](const at::Tensor& t) {
        if (place->defined()) place->copy_(t);
        ++place;
        return t;
      });
  });
}

void run_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string& name = op.schema().name();
  if (kReadBack.contains(name)) {
    host_waits_for(now_on(current_stream()));
    count_wait(name.substr(name.find("::") + 2));
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  HostCall call;
  torch::jit::Stack arguments;
  for (const auto& value : torch::jit::pop(*stack, op.schema().arguments().size()))
    arguments.push_back(call.to_host(value));
  touch_arguments(op, arguments);
  auto results = arguments;
  op.callBoxed(&results);
  std::vector<at::Tensor> memory;
  for (const auto& value : results) stack->push_back(call.to_device(value, memory));
  if (emulated_cuda::recording) keep_call(op, arguments, memory);
}

at::Tensor empty(c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic_symint(size, c10::GetAllocator(c10::kCUDA),
                                          c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                          at::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                         std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_symint_generic(size, stride, c10::GetAllocator(c10::kCUDA),
                                                  c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                                  at::dtype_or_default(dtype));
}

const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef size,
                         std::optional<at::MemoryFormat>) {
  at::native::resize_impl_cpu_(self.unsafeGetTensorImpl(), size, std::nullopt);
  return self;
}

at::Tensor& copy(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  const bool queued = non_blocking && is_page_locked(source.storage().data());
  const bool waits = !self.is_cuda() || (!source.is_cuda() && !queued);
  if (waits) count_wait(self.is_cuda() ? "copy from the CPU" : "copy to the CPU");
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const auto host = [](const at::Tensor& t) { return t.is_cuda() ? host_of(t) : t; };
  const auto run = [to = host(self), from = host(source)] {
    touched("copy_", from.storage().data(), false);
    touched("copy_", to.storage().data(), true);
    to.copy_(from);
  };
  run();
  if (emulated_cuda::recording) emulated_cuda::recording->push_back(run);
  if (waits) host_waits_for(now_on(current_stream()));
  return self;
}

void record_stream(at::Tensor& self, c10::Stream stream) {
  used_by(self.storage().data(), stream.id());
}

TORCH_LIBRARY_IMPL(_, CUDA, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("resize_", &resize);
  library.impl("copy_", &copy);
  library.impl("record_stream", &record_stream);
  library.impl("view", &at::native::view);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("unfold", &at::native::unfold);
  // These choose an implementation by the device.
  for (const char* op : {"convolution", "convolution_backward"})
    library.impl(op, torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}

}  // namespace
}  // namespace zsq::test
