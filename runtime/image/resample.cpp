// Pillow's Resample.c for 8-bit pixels: coefficients in double, normalised, as integers of 22
// fractional bits; sums in 32 bits.
#include "runtime/image/resample.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "runtime/image/internal/fit.hpp"

namespace cedar::image {

namespace {

constexpr int fraction_bits = 32 - 8 - 2;  // eight of a pixel, two for sums beyond its range
constexpr double bicubic_support = 2.0;
constexpr std::uint8_t grey = 127;

double bicubic(double x) {
  constexpr double a = -0.5;
  x = std::fabs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
  return 0.0;
}

/// What an output pixel is made of.
struct taps {
  std::size_t first = 0;
  std::vector<std::int32_t> weights;
};

std::vector<taps> taps_of(std::uint32_t in, std::uint32_t out) {
  const double scale = static_cast<double>(in) / out;
  const double widened = std::max(scale, 1.0);
  const double support = bicubic_support * widened;
  std::vector<taps> all(out);
  std::vector<double> weights;
  for (std::uint32_t i = 0; i < out; ++i) {
    const double center = (i + 0.5) * scale;
    const int first = std::max(static_cast<int>(center - support + 0.5), 0);
    const int last = std::min(static_cast<int>(center + support + 0.5), static_cast<int>(in));
    weights.clear();
    double sum = 0;
    for (int x = first; x < last; ++x) {
      weights.push_back(bicubic((x - center + 0.5) * (1.0 / widened)));
      sum += weights.back();
    }
    all[i].first = static_cast<std::size_t>(first);
    for (double weight : weights) {
      if (sum != 0.0) weight /= sum;
      const double scaled = weight * (1 << fraction_bits);
      all[i].weights.push_back(static_cast<std::int32_t>(weight < 0 ? scaled - 0.5 : scaled + 0.5));
    }
  }
  return all;
}

std::uint8_t to_pixel(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> fraction_bits, 0, 255));
}

/// One output pixel from pixels `stride` bytes apart.
void mix(const taps& from, const std::uint8_t* in, std::size_t stride, std::uint8_t* out) {
  std::int32_t sums[3] = {1 << (fraction_bits - 1), 1 << (fraction_bits - 1),
                          1 << (fraction_bits - 1)};
  const std::uint8_t* pixel = in + from.first * stride;
  for (const std::int32_t weight : from.weights) {
    for (int c = 0; c < 3; ++c) sums[c] += weight * pixel[c];
    pixel += stride;
  }
  for (int c = 0; c < 3; ++c) out[c] = to_pixel(sums[c]);
}

rgb_image scale_columns(const rgb_image& in, std::uint32_t width) {
  const std::vector<taps> all = taps_of(in.width, width);
  rgb_image out(width, in.height);
  for (std::uint32_t y = 0; y < in.height; ++y)
    for (std::uint32_t x = 0; x < width; ++x) mix(all[x], in.row(y), 3, out.row(y) + 3 * x);
  return out;
}

rgb_image scale_rows(const rgb_image& in, std::uint32_t height) {
  const std::vector<taps> all = taps_of(in.height, height);
  rgb_image out(in.width, height);
  const std::size_t stride = std::size_t{3} * in.width;
  for (std::uint32_t y = 0; y < height; ++y)
    for (std::uint32_t x = 0; x < in.width; ++x)
      mix(all[y], in.pixels.data() + std::size_t{3} * x, stride, out.row(y) + 3 * x);
  return out;
}

}  // namespace

result<rgb_image> pad_to(const rgb_image& picture, std::uint32_t width, std::uint32_t height) {
  const internal::fitted inside = internal::fit(picture.width, picture.height, width, height);
  if (inside.width == 0 || inside.height == 0)
    return fail(errc::invalid_argument, "the image is too narrow to be scaled; crop it");
  rgb_image scaled = inside.width == picture.width ? picture : scale_columns(picture, inside.width);
  if (inside.height != scaled.height) scaled = scale_rows(scaled, inside.height);
  if (inside.width == width && inside.height == height) return scaled;
  rgb_image out(width, height);
  std::ranges::fill(out.pixels, grey);
  // Half of what is left, halves of a pixel to even.
  const auto left = static_cast<std::size_t>(std::nearbyint((width - inside.width) * 0.5));
  const auto top = static_cast<std::size_t>(std::nearbyint((height - inside.height) * 0.5));
  for (std::uint32_t y = 0; y < inside.height; ++y)
    std::memcpy(out.row(top + y) + 3 * left, scaled.row(y), std::size_t{3} * inside.width);
  return out;
}

}  // namespace cedar::image
