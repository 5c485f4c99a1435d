// The order in which the products of a row and a weight row are added, for every kernel alike
// (kernels/plan/linear_tiles.hpp).
#pragma once

#include "kernels/cuda/device/platform.cuh"
#include "kernels/plan/linear_tiles.hpp"

namespace cedar::kernels::cuda {

/// Columns [first, end), added up in one chain.
struct slice {
  unsigned first;
  unsigned end;
  bool ends_segment;
};

struct sum_order {
  unsigned columns;  ///< k
  unsigned segments = 1;  ///< equal parts, each a sum of its own

  CEDAR_ANYWHERE unsigned segment_columns() const { return columns / segments; }
  CEDAR_ANYWHERE unsigned slices_per_segment() const {
    return (segment_columns() + plan::slice_columns - 1) / plan::slice_columns;
  }
  CEDAR_ANYWHERE unsigned slices() const { return segments * slices_per_segment(); }

  CEDAR_ANYWHERE slice at(unsigned index) const {
    const unsigned segment = index / slices_per_segment();
    const unsigned within = index % slices_per_segment();
    const bool last = within + 1 == slices_per_segment();
    const unsigned begin = segment * segment_columns();
    const unsigned end = last ? segment_columns() : (within + 1) * plan::slice_columns;
    return {begin + within * plan::slice_columns, begin + end, last};
  }
};

/// Adds slices in ascending order: within the segment, then segment after segment.
struct ordered_sum {
  float segment = 0;
  float total = 0;

  CEDAR_DEVICE void add(float slice, bool ends_segment) {
    segment += slice;
    if (!ends_segment) return;
    total += segment;
    segment = 0;
  }
};

/// Walks over all slices in pieces of chunk_columns.
class chunk_walk {
 public:
  CEDAR_DEVICE explicit chunk_walk(const sum_order& order)
      : order_(order), slice_(order.at(0)), column_(slice_.first) {}

  CEDAR_DEVICE bool done() const { return index_ == order_.slices(); }
  CEDAR_DEVICE unsigned first() const { return column_; }
  /// That the chunk belongs to, and its number; its last chunk may be shorter than others.
  CEDAR_DEVICE const slice& within() const { return slice_; }
  CEDAR_DEVICE unsigned slice_index() const { return index_; }
  CEDAR_DEVICE bool begins_slice() const { return column_ == slice_.first; }
  CEDAR_DEVICE bool ends_slice() const { return column_ + plan::chunk_columns >= slice_.end; }

  CEDAR_DEVICE void advance() {
    column_ += plan::chunk_columns;
    if (column_ < slice_.end) return;
    if (++index_ == order_.slices()) return;
    slice_ = order_.at(index_);
    column_ = slice_.first;
  }

 private:
  sum_order order_;
  slice slice_;
  unsigned column_;
  unsigned index_ = 0;
};

}  // namespace cedar::kernels::cuda
