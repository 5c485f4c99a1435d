// Files and vectors of tests/data/image (its README says how they were made).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/image/rgb_image.hpp"

namespace cedar::test {

/// The bytes of a file of tests/data/image.
std::vector<std::byte> image_file(const std::string& name);

/// A JSON file below tests/data.
nlohmann::json image_vectors(const std::string& path);

/// A binary PPM of tests/data/image.
image::rgb_image ppm_file(const std::string& name);

/// FNV-1a of 64 bits over the pixels, in hexadecimal.
std::string digest(const image::rgb_image& picture);

/// Pixels from x -> 1664525 x + 1013904223 mod 2^32, the upper 8 bits of each state, beginning
/// with 1.
image::rgb_image noise(std::uint32_t width, std::uint32_t height);

/// Fails the test with the first pixel that differs.
void check_same(const image::rgb_image& actual, const image::rgb_image& expected);

}  // namespace cedar::test
