// SPDX-License-Identifier: Apache-2.0
// KL divergence: both implementations against its definition in double, also where student and
// teacher are far apart; and the launch of a kernel.
#include "cuda_kernels/cuda_common.cuh"
#include "cuda_kernels/kl_divergence_implementations.h"
#include "tests/cuda_kernels/emulated/raw_memory.h"

namespace zsq::cuda_kernels {
namespace {

using namespace zsq::test;

std::vector<double> log_softmax(const float* logits, std::int64_t classes, double tau) {
  const double peak = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) sum += std::exp((logits[c] - peak) / tau);
  std::vector<double> result(classes);
  for (std::int64_t c = 0; c < classes; ++c) result[c] = (logits[c] - peak) / tau - std::log(sum);
  return result;
}

struct KlCase {
  std::int64_t rows, classes;
  double tau;
  Memory<float> teacher, student;
  Memory<double> sums;
  Memory<float> difference;

  KlCase(std::int64_t rows, std::int64_t classes, double tau, float apart)
      : rows(rows),
        classes(classes),
        tau(tau),
        teacher(normal(rows * classes, 5)),
        student(normal(rows * classes, apart)),
        sums(rows),
        difference(rows * classes) {
    for (std::int64_t i = 0; i < student.size(); ++i) student[i] += teacher[i];
    for (std::int64_t n = 0; n < rows; ++n) {
      const auto ls = log_softmax(student + n * classes, classes, tau),
                 lp = log_softmax(teacher + n * classes, classes, tau);
      sums[n] = 0;
      for (std::int64_t c = 0; c < classes; ++c) {
        sums[n] += std::exp(lp[c]) * (lp[c] - ls[c]);
        difference[n * classes + c] = static_cast<float>(std::exp(ls[c]) - std::exp(lp[c]));
      }
    }
  }
};

TEST(EmulatedCuda, KlDivergence) {
  const auto expect = [](const KlCase& wanted) {
    SCOPED_TRACE(std::to_string(wanted.classes) + " classes, tau " + std::to_string(wanted.tau));
    const Memory<double> sums(wanted.rows);
    const Memory<float> difference(wanted.rows * wanted.classes);
    kl_rows_cuda(wanted.student, wanted.teacher, wanted.rows, wanted.classes, wanted.tau, sums,
                 difference, nullptr);
    EXPECT_TRUE(near(sums, wanted.sums, 1e-9, 1e-14));
    EXPECT_TRUE(near(difference, wanted.difference, 1e-6, 1e-9));
  };
  for (const std::int64_t classes : {1, 2, 10, 256, 257, 1000})
    for (const auto& [tau, apart] : {std::pair{20.0, 0.1f}, {1.0, 30.0f}}) {
      const KlCase wanted(5, classes, tau, apart);
      in_every_order([&] { expect(wanted); });
    }
  if (kManyThreads)
    expect({kMaxBlocks + 4, 2, 20, 0.1f});  // rows that blocks take in a second round
}

// 0 log 0 = 0: with student logits 1 and 2 the first class is left, of which KL = log(1 + e).
TEST(EmulatedCuda, KlDivergenceWithAnImpossibleClass) {
  const Memory<float> teacher(2), student(2), difference(2);
  teacher[0] = 0, teacher[1] = -INFINITY;
  student[0] = 1, student[1] = 2;
  const Memory<double> sum(1);
  kl_rows_cuda(student, teacher, 1, 2, 1, sum, difference, nullptr);
  EXPECT_NEAR(sum[0], std::log(1 + std::exp(1.0)), 1e-12);
  EXPECT_NEAR(difference[1], 1 / (1 + std::exp(-1.0)), 1e-6);
}

TEST(KlDivergenceOnCpu, MatchesTheDefinitionNearAndFarApart) {
  for (const std::int64_t classes : {1, 2, 10, 100, 1000})
    for (const auto& [tau, apart] : {std::pair{20.0, 0.1f}, {1.0, 7.0f}, {1.0, 30.0f}}) {
      SCOPED_TRACE(std::to_string(classes) + " classes, apart " + std::to_string(apart));
      const KlCase wanted(200, classes, tau, apart);
      const Memory<double> sums(wanted.rows);
      const Memory<float> difference(wanted.rows * classes);
      kl_rows_cpu(wanted.student, wanted.teacher, wanted.rows, classes, tau, sums, difference);
      EXPECT_TRUE(near(sums, wanted.sums, 1e-5, 1e-9));
      EXPECT_TRUE(near(difference, wanted.difference, 1e-5, 1e-7));
    }
}

void no_kernel() {}

TEST(Launch, RefusesAGridThatNoDeviceTakes) {
  const auto message_of = [](dim3 blocks) -> std::string {
    try {
      launch("an_op", no_kernel, blocks, nullptr);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::internal);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message_of(dim3(1, 2)), "");
  EXPECT_NE(message_of(dim3(0)).find("an_op: a grid of 0 x 1 x 1 blocks"), std::string::npos);
  EXPECT_NE(message_of(dim3(1, 65536)).find("1 x 65536 x 1"), std::string::npos);
  EXPECT_NE(message_of(dim3(0x80000000u)).find("2147483648"), std::string::npos);
}

TEST(Launch, ReportsWhatTheDeviceReports) {
  for (const auto& [error, code] : {std::pair{cudaErrorMemoryAllocation, ErrorCode::out_of_memory},
                                    {cudaErrorUnknown, ErrorCode::internal}}) {
    emulated_cuda::last_error = error;
    try {
      launch("an_op", no_kernel, 1, nullptr);
      ADD_FAILURE() << "no error";
    } catch (const Error& thrown) {
      EXPECT_EQ(thrown.code(), code);
      EXPECT_NE(std::string(thrown.what()).find("an_op: CUDA launch failed"), std::string::npos);
    }
    launch("an_op", no_kernel, 1, nullptr);  // reported once
  }
}

// A kernel takes its parameters one after the other, aligned.
static_assert(parameter_bytes<char, double, char>() == 17);
static_assert(parameter_bytes<int, int, double>() == 16);

}  // namespace
}  // namespace zsq::cuda_kernels
