// Goal: a transition between sublayers moves each stream once in and once out: activation traffic
// of 10 d elements of two bytes per row at four streams, within 15 %. Method: the pages of the
// activations are closed; touching one opens it, as a cache of 4 MiB would take it in, first in
// first out. A page that is read while it is outside counts as read, one that leaves changed counts
// as written.
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <cstdlib>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/ops/backend.hpp"

#if defined(__linux__) && defined(__x86_64__)

namespace {

using namespace cedar::kernels;

constexpr std::size_t page_bytes = 4096;
/// What a core has of the second and third level together, at least: streams of a tile of rows and
/// all projection weights fit.
constexpr std::size_t cache_bytes = std::size_t{4} << 20;

/// Memory whose use is counted. One at a time; for one thread.
class watched_memory {
 public:
  enum class state : std::uint8_t { outside, clean, changed };

  explicit watched_memory(std::size_t bytes)
      : pages_((bytes + page_bytes - 1) / page_bytes),
        begin_(static_cast<std::byte*>(mmap(nullptr, pages_.size() * page_bytes,
                                            PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                                            0))) {
    BOOST_REQUIRE(begin_ != MAP_FAILED);
    inside_.resize(cache_bytes / page_bytes);
    counted_.resize(pages_.size());
  }
  ~watched_memory() { munmap(begin_, pages_.size() * page_bytes); }
  watched_memory(const watched_memory&) = delete;

  /// Room for elements that begin on a page of their own. Those that do not count take up space in
  /// the cache, but their bytes are not counted.
  template <class T>
  matrix_view<T> take(std::size_t rows, std::size_t cols, bool counts = true) {
    const std::size_t first = used_;
    used_ += (rows * cols * sizeof(T) + page_bytes - 1) / page_bytes;
    BOOST_REQUIRE(used_ <= pages_.size());
    std::fill_n(counted_.begin() + static_cast<std::ptrdiff_t>(first), used_ - first, counts);
    return {reinterpret_cast<T*>(begin_ + first * page_bytes), rows, cols};
  }

  /// Bytes that `run` moves, beginning and ending with everything outside.
  template <class Run>
  std::size_t bytes_of(const Run& run) {
    watched = this;
    std::ranges::fill(inside_, std::size_t{0});
    struct sigaction handler = {};
    struct sigaction before = {};
    handler.sa_sigaction = on_fault;
    handler.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &handler, &before);
    mprotect(begin_, pages_.size() * page_bytes, PROT_NONE);
    run();
    for (std::size_t page = 0; page < used_; ++page) leave(page);
    mprotect(begin_, pages_.size() * page_bytes, PROT_READ | PROT_WRITE);
    sigaction(SIGSEGV, &before, nullptr);
    return std::exchange(moved_pages_, 0) * page_bytes;
  }

 private:
  static void on_fault(int, siginfo_t* info, void* context) {
    constexpr long long write_bit = 2;  // of the processor's page fault code
    const auto* machine = static_cast<const ucontext_t*>(context);
    const bool writes = (machine->uc_mcontext.gregs[REG_ERR] & write_bit) != 0;
    watched->fault(static_cast<std::byte*>(info->si_addr), writes);
  }

  void fault(std::byte* at, bool writes) {
    const auto page = static_cast<std::size_t>(at - begin_) / page_bytes;
    if (at < begin_ || page >= used_) std::abort();  // not ours: a real fault
    if (pages_[page] == state::outside) {
      if (!writes && counted_[page]) ++moved_pages_;
      std::size_t& slot = inside_[next_++ % inside_.size()];
      if (slot != 0) leave(slot - 1);
      slot = page + 1;
    }
    pages_[page] = writes ? state::changed : state::clean;
    protect(page, writes ? PROT_READ | PROT_WRITE : PROT_READ);
  }

  void leave(std::size_t page) {
    if (pages_[page] == state::changed && counted_[page]) ++moved_pages_;
    pages_[page] = state::outside;
    protect(page, PROT_NONE);
  }

  void protect(std::size_t page, int how) { mprotect(begin_ + page * page_bytes, page_bytes, how); }

  static inline watched_memory* watched = nullptr;
  std::vector<state> pages_;
  std::vector<bool> counted_;
  std::vector<std::size_t> inside_;  ///< page + 1, by arrival; 0: none yet
  std::size_t next_ = 0;
  std::byte* begin_;
  std::size_t used_ = 0;
  std::size_t moved_pages_ = 0;
};

constexpr std::size_t rows = 256, streams = 4, width = 5120;

}  // namespace

BOOST_AUTO_TEST_SUITE(cpu_traffic)

BOOST_AUTO_TEST_CASE(a_transition_moves_every_stream_once_in_and_once_out) {
  watched_memory memory(rows * streams * width * 2 + 3 * rows * width * 2 +
                        24 * streams * width * 4 + (std::size_t{1} << 20));
  const auto x = memory.take<bf16>(rows, streams * width);
  const auto y = memory.take<bf16>(rows, width);
  const auto input = memory.take<bf16>(rows, width);
  const auto codes = memory.take<std::uint8_t>(rows, width);
  const auto scales = memory.take<std::uint8_t>(rows, width / 32);
  const auto fn = memory.take<float>(24, streams * width, false);
  std::vector<float> mix(rows * 16, 0.25F);
  const auto of_mix = [&](std::size_t cols) { return matrix_view<float>(mix.data(), rows, cols); };
  std::vector<float> pre(rows * 4), post(rows * 4), combine(rows * 16), base(24), scale(3, 1);
  const std::vector<bf16> norm(width, to_bf16(1));
  const matrix_view<float> next_pre(pre.data(), rows, 4), next_post(post.data(), rows, 4),
      next_combine(combine.data(), rows, 16);
  const auto cpu = make_cpu_backend();
  const hc_expand_arguments expand{x, x, y, of_mix(4), of_mix(16)};
  const auto fused = [&] {
    cpu->hc_transition({expand, of_mix(4), norm, 1e-20F, input, codes, scales, fn, base, scale, 20,
                        1e-6F, next_pre, next_post, next_combine});
  };
  const auto separate = [&] {
    cpu->hc_expand(expand);
    cpu->hc_collapse({input, x, of_mix(4)});
    cpu->rms_norm_quantize({{input, input, norm, 1e-20F}, codes, scales});
    cpu->hc_coefficients(
        {x, fn, base, scale, 20, 1e-6F, 1e-20F, next_pre, next_post, next_combine});
  };
  const double ideal = 10.0 * width * 2 * rows;
  const double moved = static_cast<double>(memory.bytes_of(fused)) / ideal;
  const double apart = static_cast<double>(memory.bytes_of(separate)) / ideal;
  BOOST_TEST_MESSAGE("of 10 d * 2 bytes a row: fused " << moved << ", separate " << apart);
  // Codes and scales of the input are 5.2 % more than the ideal counts; the rest is whole pages.
  BOOST_TEST(moved >= 1.0);
  BOOST_TEST(moved <= 1.15);
  BOOST_TEST(apart >= 1.8);
}

BOOST_AUTO_TEST_SUITE_END()

#endif
