// SPDX-License-Identifier: Apache-2.0
#include "pipeline/session/boundary.h"

#include <c10/util/Exception.h>

#include <filesystem>
#include <new>
#include <string>

#include "core/error.h"

namespace zsq::pipeline {
namespace {

constexpr const char* kOutOfMemory =
    "out of memory; --memory_limit makes batches that fit (others: finetune.batch_size, "
    "data.eval_batch_size, generate.images.batch_size)";

}  // namespace

void rethrow_translated() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory, kOutOfMemory);
  } catch (const c10::OutOfMemoryError&) {
    throw Error(ErrorCode::out_of_memory, kOutOfMemory);
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    // libtorch's CPU allocator reports with a plain c10::Error.
    if (text.find("DefaultCPUAllocator") != std::string::npos)
      throw Error(ErrorCode::out_of_memory, kOutOfMemory);
    // Its words are about tensors that the user has never seen.
    throw Error(ErrorCode::internal,
                "a step met tensors that do not fit together, which is a fault of zsq: please "
                "report it with the command and, if you can, the network");
  } catch (const std::filesystem::filesystem_error& error) {
    throw Error(ErrorCode::bad_input,
                "'" + error.path1().string() + "': " + error.code().message());
  } catch (const std::exception& error) {
    // oneDNN's words if there is no memory for the code of an operator.
    if (std::string(error.what()).find("could not create a primitive") == std::string::npos) throw;
    throw Error(ErrorCode::out_of_memory, kOutOfMemory);
  }
}

}  // namespace zsq::pipeline
