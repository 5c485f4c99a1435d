#include "runtime/synthetic/random_tensor.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>

#include "kernels/base/check.hpp"
#include "kernels/base/dtype.hpp"

namespace cedar::synthetic {
namespace {

using kernels::dtype;

/// SplitMix64 (Steele, Lea, Flood 2014): the same on every machine, and fast enough for gigabytes.
class generator {
 public:
  explicit generator(std::uint64_t state) : state_(state) {}

  std::uint64_t next() noexcept {
    std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15U;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31);
  }
  /// Mean 0, variance 1, never beyond 3.5: the sum of four uniform numbers, in integers but for the
  /// last multiplication.
  float bell() noexcept {
    const std::uint64_t bits = next();
    std::int32_t sum = -2 * 0xffff;
    for (int i = 0; i < 4; ++i) sum += static_cast<std::int32_t>((bits >> (16 * i)) & 0xffffU);
    return static_cast<float>(sum) * (1.7320508F / 65535.0F);
  }

 private:
  std::uint64_t state_;
};

/// FNV-1a.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char letter : text)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  return hash;
}

bool names(const model::expected_tensor& tensor, std::string_view part) {
  return tensor.name.find(part) != std::string::npos;
}

/// What its product is added to the streams.
bool writes(const model::expected_tensor& tensor) {
  return names(tensor, "wo_b") || names(tensor, ".w2") || names(tensor, "engram.wkv");
}

/// Standard deviation of a tensor of plain values.
float deviation(const model::expected_tensor& tensor) {
  // A table's row is read, not multiplied: the streams' own size, whatever the width.
  if (tensor.part == model::component::embedding || tensor.shape.size() < 2) return 0.125F;
  return 1.0F / std::sqrt(static_cast<float>(tensor.shape.back()));
}

/// The least exponent byte of a scale. Codes are about 2^1.7 in size, scales spread over three
/// exponents add 2^1.4, and a sum of `inner` products grows by its root.
std::uint64_t scale_code(const model::expected_tensor& tensor) {
  const auto inner = static_cast<double>(tensor.shape.back() * 32);
  const int growth = 3 + static_cast<int>(std::lround(std::log2(inner) / 2));
  return static_cast<std::uint64_t>(127 - growth - (writes(tensor) ? 5 : 2));
}

/// Fills with 8 bytes from each call of `eight`.
template <class Eight>
void fill_words(std::span<std::byte> bytes, Eight eight) {
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    const std::uint64_t word = eight();
    std::memcpy(bytes.data() + at, &word, std::min<std::size_t>(8, bytes.size() - at));
  }
}

template <class Value, class Next>
void fill_values(std::span<std::byte> bytes, Next next) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(Value)) {
    const Value value = next();
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
}

}  // namespace

void fill_random(const model::expected_tensor& tensor, std::uint64_t seed,
                 std::span<std::byte> bytes) {
  CEDAR_REQUIRE(bytes.size() == tensor.bytes(), "the tensor's bytes");
  static_assert(std::endian::native == std::endian::little, "files are little-endian");
  generator random(hash_of(tensor.name) ^ generator(seed).next());
  const bool norm = names(tensor, "norm");
  const float size = norm ? 0.1F : deviation(tensor);
  const auto value = [&] { return (norm ? 1.0F : 0.0F) + size * random.bell(); };
  switch (tensor.dtype) {
    case dtype::f32:
      return fill_values<float>(bytes, value);
    case dtype::bf16:
      return fill_values<kernels::bf16>(bytes, [&] { return kernels::to_bf16(value()); });
    case dtype::f8_e4m3:
      // Either sign, exponents of 1/2 to 4: 0.5 to 7.5.
      return fill_words(bytes, [&] {
        const std::uint64_t bits = random.next();
        return (bits & 0x8080808080808080U) | (0x3030303030303030U + (bits & 0x1f1f1f1f1f1f1f1fU));
      });
    case dtype::f8_e8m0:
      return fill_values<std::uint8_t>(bytes, [&, least = scale_code(tensor)] {
        return static_cast<std::uint8_t>(least + random.next() % 3);
      });
    case dtype::i8:  // two E2M1 codes, all of which are values
      return fill_words(bytes, [&] { return random.next(); });
    default:
      CEDAR_ASSERT(false, "no checkpoint has tensors of this type");
  }
}

}  // namespace cedar::synthetic
