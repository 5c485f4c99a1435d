// The shadow of a block's shared memory: for every byte, who wrote and who read it, and when.
//
// 1. Two threads may touch a byte, one of them writing, only with a barrier in between: of the
//    block, or of the warp if both belong to it. Shuffles, votes and matrix operations are no
//    barriers.
// 2. A byte may be read once it has been written since the block began.
// 3. A byte that an asynchronous copy is on its way to may not be touched until the thread that
//    started the copy has waited for it; for other threads it is a write of that thread then.
//
// Which interleaving the emulation runs makes no difference: the rules are about what is ordered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cedar::kernels::cuda::emulation {

enum class access_problem : std::uint8_t {
  none,
  uninitialised,  ///< read before any write
  read_after_write,  ///< the other thread wrote it, nothing orders the two
  write_after_read,  ///< the other thread read it (several may have)
  write_after_write,
  copy_in_flight,  ///< the other thread (or this one) has not waited for its copy
};

/// Outcome of an access: the first byte that something is wrong with, and who else is involved.
struct access_verdict {
  access_problem problem = access_problem::none;
  std::size_t byte = 0;
  unsigned other = 0;
};

class shared_shadow {
 public:
  /// A thread at a moment: how many barriers its warp has passed.
  struct actor {
    unsigned thread = 0;
    std::uint32_t warp_barriers = 0;
  };

  /// Forgets everything; `bytes` bytes, none of them written. No copy may be in flight.
  void begin_block(std::size_t bytes);

  /// All threads of the block have met.
  void pass_block_barrier() { ++now_; }

  access_verdict read(std::size_t first, std::size_t bytes, actor by);
  access_verdict write(std::size_t first, std::size_t bytes, actor by);
  /// A copy to these bytes starts: judged like a write, in flight from here on.
  access_verdict start_copy(std::size_t first, std::size_t bytes, actor by);
  /// The thread that started it has waited: written now, by it.
  void finish_copy(std::size_t first, std::size_t bytes, actor by);

 private:
  enum class readers : std::uint8_t { one_thread, one_warp, several_warps };

  struct byte_state {
    std::uint32_t written = 0;  ///< block barriers passed by then; before block_began_: not yet
    std::uint32_t read = 0;  ///< the same of the latest read
    std::uint32_t written_at = 0;  ///< warp_barriers of the writer
    std::uint32_t read_at = 0;  ///< warp_barriers of the latest reader
    std::uint16_t writer = 0;
    std::uint16_t reader = 0;  ///< one of them
    readers read_by = readers::one_thread;
    bool in_flight = false;
  };

  access_problem judge_write(const byte_state& state, actor by, unsigned& other) const;
  void note_read(byte_state& state, actor by) const;

  std::vector<byte_state> bytes_;
  std::uint32_t now_ = 1;
  std::uint32_t block_began_ = 1;
};

}  // namespace cedar::kernels::cuda::emulation
