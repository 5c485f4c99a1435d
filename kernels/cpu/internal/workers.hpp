// Dividing a kernel call among the threads of its backend.
//
// 1. What is divided are outputs that do not depend on each other (rows, columns, keys, channels),
//    never a sum: so the number of threads, and who computes what, changes no bit.
// 2. A division costs the caller time, and more while threads sleep: work is never divided into
//    pieces below the grain (kernels/cpu/README.md). Work is counted in elements of a weight row
//    times one row of x, decoding included: 0.06 to 0.1 ns each. Other work is counted in them
//    roughly.
// 3. Divisions do not nest: what runs inside a piece gets `workers{}`.
// Included by vector code: no inline function here is one that other code shares
// (internal/checks.hpp).
#pragma once

#include <cstddef>

namespace cedar::kernels::cpu {

class slot_arena;

class workers {
 public:
  /// The calling thread alone.
  workers() = default;
  /// The slots of `arena`, which lives longer; the calling thread alone if it is null.
  workers(const slot_arena* arena, std::size_t grain);

  std::size_t threads() const noexcept;

  /// Calls work(begin, end) for ranges that cover [0, count) once, each a multiple of `unit` long
  /// but for the last; from several threads if `cost` of each of the `count` is worth it. A
  /// defect that a piece throws is thrown here. work must not divide again.
  template <class Work>
  void split(std::size_t count, std::size_t unit, std::size_t cost, const Work& work) const {
    if (count == 0) return;
    const std::size_t pieces = arena_ == nullptr ? 1 : pieces_of(count, unit, cost);
    if (pieces == 1) return work(std::size_t{0}, count);
    run({count, unit, pieces,
         [](const void* context, std::size_t begin, std::size_t end) {
           (*static_cast<const Work*>(context))(begin, end);
         },
         &work});
  }

 private:
  struct division {
    std::size_t count;
    std::size_t unit;
    std::size_t pieces;
    void (*work)(const void* context, std::size_t begin, std::size_t end);
    const void* context;
  };
  struct shared_division;

  std::size_t pieces_of(std::size_t count, std::size_t unit, std::size_t cost) const;
  void run(const division& all) const;
  static void take_pieces(void* shared);

  const slot_arena* arena_ = nullptr;
  std::size_t threads_ = 1;
  std::size_t grain_ = 1;
};

}  // namespace cedar::kernels::cpu
