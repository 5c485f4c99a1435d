#include "runtime/base/link_shape.hpp"

#include <array>
#include <charconv>

namespace cedar {

namespace {

constexpr double bits_per_byte = 8;
/// Digits that people write; hides what a division leaves in the last ones.
constexpr int digits = 6;
/// From here on `digits` would take an exponent.
constexpr double large = 1e6;

std::string number(double value) {
  std::array<char, 32> text{};
  char* const begin = text.data();
  char* const limit = begin + text.size();
  const auto end = value < large
                       ? std::to_chars(begin, limit, value, std::chars_format::general, digits)
                       : std::to_chars(begin, limit, value, std::chars_format::fixed, 0);
  return {begin, end.ptr};
}

std::string milliseconds(std::chrono::nanoseconds time) {
  return number(std::chrono::duration<double, std::milli>(time).count()) + " ms";
}

}  // namespace

std::chrono::nanoseconds link_shape::occupancy(std::uint64_t bytes) const {
  if (bytes_per_second <= 0) return std::chrono::nanoseconds(0);
  const std::chrono::duration<double> time(static_cast<double>(bytes) / bytes_per_second);
  return std::chrono::round<std::chrono::nanoseconds>(time);
}

std::string to_string(const link_shape& shape) {
  std::string text = milliseconds(shape.latency);
  if (shape.bytes_per_second > 0)
    text += ", " + number(shape.bytes_per_second * bits_per_byte / 1e6) + " Mbit/s";
  if (shape.jitter.count() > 0) text += ", jitter " + milliseconds(shape.jitter);
  if (shape.loss > 0) text += ", loss " + number(shape.loss * 100) + " %";
  return text;
}

}  // namespace cedar
