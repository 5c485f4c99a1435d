// NumPy's default random generator, of which the released Engram hash draws its multipliers.
//
// PCG64 (128-bit congruential state, XSL-RR output) seeded through SeedSequence, bitwise equal to
// numpy.random.default_rng. Only what that hash needs. Source: NumPy 1.17 and later,
// numpy/random/bit_generator.pyx and src/pcg64, after M. O'Neill's PCG and seed_seq_fe.
#pragma once

#include <cstdint>

namespace cedar::model {

class numpy_generator {
 public:
  /// default_rng(seed).
  explicit numpy_generator(std::uint64_t seed);

  /// The next of integers(0, bound): uniform in [0, bound) by Lemire's rejection. `bound` exceeds
  /// 2^32 (below, NumPy draws 32 bits at a time).
  std::uint64_t below(std::uint64_t bound);

 private:
  __extension__ using uint128 = unsigned __int128;

  void step();
  std::uint64_t next();

  uint128 state_ = 0;
  uint128 increment_ = 0;
};

}  // namespace cedar::model
