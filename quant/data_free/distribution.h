// SPDX-License-Identifier: Apache-2.0
// What is known of a tensor without images: for each of its values the distribution over images,
// as a function of one standard normal variable z. It is held in "rows": f32 [kNodes, ...], the
// shape of the tensor for one image after the first dimension; row k is the value at
//   z_k = -6 + k / 4,  with probability p_k proportional to exp(-z_k^2 / 2)  (trapezoid rule)
// A normal value N(m, s^2) is m + s z. A function of one value acts on each row alone, and so does
// a function of several that follow from the same z: x * sigmoid(x) is a function of x. A dimension
// along which a tensor does not vary has stride 0 ("expanded"), and is worked on once.
#pragma once
#include <functional>
#include <vector>

#include "models/graph.h"

namespace zsq::quant::distribution {

constexpr int kNodes = 49;
const at::Tensor& nodes();          // z_k, f64 [kNodes]
const at::Tensor& probabilities();  // p_k, f64 [kNodes]

// mean, variance [1, ...] -> rows
at::Tensor normal(const at::Tensor& mean, const at::Tensor& variance);
// f32 [1, ...]
at::Tensor mean(const at::Tensor& rows);
at::Tensor variance(const at::Tensor& rows);

// `function` of tensors that broadcast against each other, where expanded dimensions are narrowed
// to one before and expanded again afterwards. A tensor with fewer dimensions is a constant.
using Function = std::function<at::Tensor(const std::vector<at::Tensor>&)>;
at::Tensor elementwise(std::vector<at::Tensor> inputs, const Function& function);

// The same for expanded dimensions only, all others flattened: [kNodes, values].
at::Tensor distinct(const at::Tensor& rows);

// x + y or x y of independent x and y: quantiles of the values at all pairs of nodes (those of y in
// groups of four), brought to the exact mean and variance.
at::Tensor sum(const at::Tensor& x, const at::Tensor& y);
at::Tensor product(const at::Tensor& x, const at::Tensor& y);

// Rows of values [n, ...] with the probabilities f64 [n]: at z_k the quantile Phi(z_k), linear in z
// between the middles of the steps of their distribution function.
at::Tensor quantiles(const at::Tensor& values, const at::Tensor& probabilities);

// `function` of independent x and y where no law gives the moments: quantiles of its values at all
// pairs of nodes (those of y in pairs). Of more than 2^26 / kNodes values the mean of y is taken.
using PairFunction = std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>;
at::Tensor of_independent(const at::Tensor& x, const at::Tensor& y, const PairFunction& function);

// The largest of n independent values with one distribution: F_max = F^n. n need not be whole.
at::Tensor largest_of(const at::Tensor& rows, double n);
// The mean of n values with one distribution, of whose normal variables any two have this
// correlation: with z = sqrt(r) c + sqrt(1 - r) e, the mean over e, a function of the c that they
// share; the deviation is that of n values. So where many are at the least value of a function, as
// SiLU's -0.28, their mean is near it.
at::Tensor average_of(const at::Tensor& rows, double n, double correlation);
// Deviations from the mean times `factor`.
at::Tensor shrunk(const at::Tensor& rows, double factor);

// Values at nodes 1/64 apart, by linear interpolation: [values, ...] with the probabilities f32
// [values].
struct Values {
  at::Tensor values, probabilities;
};
Values interpolated(const at::Tensor& rows);

}  // namespace zsq::quant::distribution
