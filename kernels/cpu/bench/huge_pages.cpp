// What huge pages are worth where entries of a cache are read here and there: 512 of a million
// entries of 288 bytes, in ascending order, from pages of 4 KiB and from huge ones. Thread CPU
// time; the two take turns.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <vector>

namespace {

constexpr std::size_t entries = std::size_t{1} << 20;
constexpr std::size_t entry_bytes = 288;
constexpr std::size_t chosen = 512;
constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
constexpr std::size_t runs = 101;

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Filled memory for all entries; kept until the program ends.
const char* make_cache(int advice) {
  const std::size_t bytes = entries * entry_bytes;
  void* memory = std::aligned_alloc(huge_page_bytes, bytes);
  if (memory == nullptr || madvise(memory, bytes, advice) != 0) std::abort();
  std::memset(memory, 1, bytes);
  return static_cast<const char*>(memory);
}

}  // namespace

int main() {
  static_assert(entries * entry_bytes % huge_page_bytes == 0);
  const std::array<const char*, 2> caches = {make_cache(MADV_NOHUGEPAGE),
                                             make_cache(MADV_HUGEPAGE)};
  std::array<std::vector<double>, 2> times;
  std::mt19937 random(1);
  std::vector<std::size_t> places(chosen);
  long sum = 0;
  for (std::size_t run = 0; run < runs; ++run) {
    for (std::size_t& place : places) place = random() % entries;
    std::ranges::sort(places);
    for (std::size_t kind = 0; kind < 2; ++kind) {
      const double begin = thread_seconds();
      for (const std::size_t place : places)
        for (std::size_t i = 0; i < entry_bytes; i += 64)
          sum += caches[kind][place * entry_bytes + i];
      times[kind].push_back(thread_seconds() - begin);
    }
  }
  for (std::size_t kind = 0; kind < 2; ++kind) {
    std::ranges::sort(times[kind]);
    std::printf("%-12s median %.1f us, best %.1f us\n", kind == 0 ? "4 KiB pages" : "huge pages",
                1e6 * times[kind][runs / 2], 1e6 * times[kind][0]);
  }
  return sum > 0 ? 0 : 1;
}
