// Goal: frames of scratch memory nest, never hand out the same bytes twice, and reuse what was
// freed.
#include "kernels/cpu/internal/scratch.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <thread>

using cedar::kernels::cpu::scratch;

BOOST_AUTO_TEST_SUITE(cpu_scratch)

BOOST_AUTO_TEST_CASE(takes_disjoint_aligned_memory) {
  scratch memory;
  auto* first = memory.take<float>(3);
  auto* second = memory.take<float>(5);
  BOOST_TEST(second - first >= 3);
  BOOST_TEST(reinterpret_cast<std::uintptr_t>(first) % 64 == 0U);
  BOOST_TEST(reinterpret_cast<std::uintptr_t>(second) % 64 == 0U);
}

BOOST_AUTO_TEST_CASE(a_frame_gives_back_what_it_took) {
  scratch outer;
  outer.take<float>(10);
  float* inside = nullptr;
  {
    scratch inner;
    inside = inner.take<float>(100);
  }
  BOOST_TEST(outer.take<float>(100) == inside);
}

BOOST_AUTO_TEST_CASE(growing_keeps_earlier_memory_in_place) {
  scratch memory;
  auto* first = memory.take<int>(4);
  first[3] = 7;
  for (int i = 0; i < 5; ++i) memory.take<std::byte>(std::size_t{3} << 20)[0] = std::byte{1};
  BOOST_TEST(first[3] == 7);
}

BOOST_AUTO_TEST_CASE(threads_do_not_share) {
  scratch memory;
  const auto* mine = memory.take<int>(4);
  const int* theirs = nullptr;
  std::thread([&] { theirs = scratch().take<int>(4); }).join();
  BOOST_TEST(mine != theirs);
}

BOOST_AUTO_TEST_SUITE_END()
