// The canonical order of summation, written as plainly as possible.
//
// Every sum over the elements of a tensor row (dot products, means of squares, softmax
// denominators) has a fixed order, so that every machine gets the same bits:
// 1. Element k belongs to virtual lane k mod 16, k counted from the start of the segment.
// 2. A lane adds its products in ascending k, each with one fused multiply-add in binary32. Inputs
//    are dequantised first: code * scale is exact in binary32 for every E4M3, E2M1 and bf16 code
//    and every scale from 2^-127 to 2^119, so where the scale is multiplied in changes no bit.
// 3. At the end of a segment the lanes are added by a fixed tree: l += l+8, l += l+4, l += l+2,
//    l += l+1.
// 4. Segments are added in ascending order. One segment, or four equal ones for a matrix that may
// be
//    split by columns, so that the holder of one segment computes exactly the partial sum that the
//    whole adds.
// Missing elements of the last sixteen count as zeros.
//
// This is the definition; the vector kernels are tested against it bit for bit. It is not fast.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace cedar::kernels::canonical {

inline constexpr std::size_t lanes_count = 16;

/// One segment of a sum. Elements are given in ascending order.
class lane_sum {
 public:
  /// Adds a * b to the next lane.
  void add_product(float a, float b);
  /// Adds a value to the next lane.
  void add(float value);
  /// The lanes added by the tree; +0 if nothing was added.
  float total() const;

 private:
  std::array<float, lanes_count> lanes_{};
  std::size_t next_ = 0;
};

/// a . b in `segments` equal segments. a and b have the same size, a multiple of `segments`.
float dot(std::span<const float> a, std::span<const float> b, std::size_t segments = 1);

}  // namespace cedar::kernels::canonical
