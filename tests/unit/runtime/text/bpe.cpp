// Goal: merges happen by rank, leftmost first, in bounded time. Method: against a search that scans
// the whole word for every merge, on random merges and words; and one very long word.
#include "runtime/text/internal/bpe.hpp"

#include <boost/test/unit_test.hpp>
#include <map>
#include <random>
#include <string>
#include <utility>

namespace cedar::text {
namespace {

std::array<token_id, 256> identity_bytes() {
  std::array<token_id, 256> tokens;
  for (std::size_t byte = 0; byte < 256; ++byte) tokens[byte] = static_cast<token_id>(byte);
  return tokens;
}

bpe make_bpe(const std::vector<bpe_merge>& merges) {
  bpe_merge_table table(merges.size());
  for (std::size_t rank = 0; rank < merges.size(); ++rank)
    BOOST_REQUIRE(table.insert(merges[rank], static_cast<std::uint32_t>(rank)));
  return {identity_bytes(), std::move(table)};
}

std::vector<token_id> encode_slowly(const std::vector<bpe_merge>& merges, std::string_view word) {
  std::vector<token_id> tokens;
  for (const char byte : word) tokens.push_back(static_cast<unsigned char>(byte));
  for (;;) {
    std::size_t best_rank = merges.size();
    std::size_t best_at = 0;
    for (std::size_t at = 0; at + 1 < tokens.size(); ++at)
      for (std::size_t rank = 0; rank < best_rank; ++rank)
        if (merges[rank].left == tokens[at] && merges[rank].right == tokens[at + 1])
          best_rank = rank, best_at = at;
    if (best_rank == merges.size()) return tokens;
    tokens[best_at] = merges[best_rank].result;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

BOOST_AUTO_TEST_SUITE(bpe_merging)

BOOST_AUTO_TEST_CASE(random_merges_and_words_agree_with_a_full_search) {
  std::mt19937_64 random(7);
  bpe::workspace space;
  for (int round = 0; round < 300; ++round) {
    std::vector<bpe_merge> merges;
    std::map<std::pair<token_id, token_id>, bool> seen;
    token_id next = 256;
    for (int i = 0; i < 40; ++i) {
      const auto draw = [&] {
        const std::uint64_t some = random();
        return some % 2 == 0 || next == 256
                   ? static_cast<token_id>('a' + some / 2 % 3)
                   : static_cast<token_id>(256 + some / 2 % static_cast<std::uint64_t>(next - 256));
      };
      const token_id left = draw();
      const token_id right = draw();
      if (seen[{left, right}]) continue;
      seen[{left, right}] = true;
      merges.push_back({left, right, next++});
    }
    std::shuffle(merges.begin(), merges.end(), random);
    const bpe merger = make_bpe(merges);
    for (int word = 0; word < 20; ++word) {
      std::string text;
      for (std::size_t i = random() % 40; i > 0; --i)
        text += static_cast<char>('a' + static_cast<char>(random() % 3));
      std::vector<token_id> tokens;
      merger.encode(text, space, tokens);
      const std::vector<token_id> expected = encode_slowly(merges, text);
      BOOST_REQUIRE_EQUAL_COLLECTIONS(tokens.begin(), tokens.end(), expected.begin(),
                                      expected.end());
    }
  }
}

BOOST_AUTO_TEST_CASE(equal_ranks_merge_from_the_left) {
  const bpe merger = make_bpe({{'a', 'a', 256}});
  bpe::workspace space;
  std::vector<token_id> tokens;
  merger.encode("aaaaa", space, tokens);
  const std::vector<token_id> expected = {256, 256, 'a'};
  BOOST_TEST(tokens == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_pair_is_inserted_once) {
  bpe_merge_table table(2);
  BOOST_TEST(table.insert({1, 2, 3}, 0));
  BOOST_TEST(!table.insert({1, 2, 4}, 1));
  BOOST_TEST(table.insert({2, 1, 5}, 1));
  BOOST_TEST(table.find(2, 1)->result == 5);
  BOOST_TEST(table.find(1, 2)->rank == 0U);
  BOOST_TEST(table.find(1, 1) == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cedar::text
