// Goal: the generator is NumPy's, rejections included. Method: values drawn with NumPy 1.24.2 as
// default_rng(seed).integers(0, bound, size=5, dtype=uint64); with the two large bounds a half and
// a quarter of all draws are rejected.
#include "runtime/model/numpy_random.hpp"

#include <array>
#include <boost/test/unit_test.hpp>

#include "kernels/base/check.hpp"

namespace cedar::model {
namespace {

struct drawn {
  std::uint64_t seed;
  std::uint64_t bound;
  std::array<std::uint64_t, 5> values;
};

BOOST_AUTO_TEST_SUITE(numpy_random)

BOOST_AUTO_TEST_CASE(integers_are_those_of_numpy) {
  const std::array<drawn, 12> cases = {
      {{0U, 4294967297U, {2735729616U, 1158725112U, 175979945U, 70985654U, 3492969080U}},
       {0U,
        9223372036854775809U,
        {2488343231644625808U, 152440531369162766U, 8418684267946577447U, 7524920857253125030U,
         7908158628957485816U}},
       {0U,
        13835058055282163711U,
        {8812401923082805702U, 3732514847466938712U, 566871082386747017U, 228660797053744149U,
         11251640973968981227U}},
       {10007U, 4294967297U, {3536058432U, 223327894U, 1659298245U, 3414020522U, 1843754792U}},
       {10007U,
        9223372036854775809U,
        {479593001838623258U, 3563315849468963733U, 6976413731397036916U, 5906307652790778431U,
         536409479770357733U}},
       {10007U,
        13835058055282163711U,
        {11390441492121949861U, 719389502757934887U, 5344973774203445599U, 10997329865140537969U,
         5939149901103836249U}},
       {140098U, 4294967297U, {3124677674U, 2376879038U, 1426813256U, 3812324438U, 2324134983U}},
       {140098U,
        9223372036854775809U,
        {5104308867516368318U, 3064058137012074761U, 8186904390910353999U, 3717651356639784311U,
         7361841324411119194U}},
       {140098U,
        13835058055282163711U,
        {7656463301274552476U, 4596087205518112141U, 12280356586365530997U, 5576477034959676466U,
         7840262061504385625U}},
       {1099511627779U,
        4294967297U,
        {3322827584U, 4277174880U, 2032287963U, 278531601U, 840318467U}},
       {1099511627779U,
        9223372036854775809U,
        {7135717901190316950U, 1804570168683419367U, 6139502466115366298U, 5178049263443716663U,
         1427822052195838695U}},
       {1099511627779U,
        13835058055282163711U,
        {13777744669865724527U, 6546457754080723301U, 897213088983150575U, 9209253699173049446U,
         7767073895165574993U}}}};
  for (const drawn& one : cases) {
    numpy_generator random(one.seed);
    for (const std::uint64_t value : one.values) BOOST_TEST(random.below(one.bound) == value);
  }
}

BOOST_AUTO_TEST_CASE(small_bounds_follow_another_rule_and_are_refused) {
  numpy_generator random(0);
  BOOST_CHECK_THROW(random.below(std::uint64_t{1} << 32), defect);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cedar::model
